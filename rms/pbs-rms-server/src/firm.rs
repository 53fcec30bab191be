// SPDX-License-Identifier: GPL-2.0
//! Nodes that a session may have at once for requests that run to completion.

use std::collections::HashMap;

use pbs_rms::{Ask, Kind, Relation, RequestId, Session};

/// Returns the largest number of nodes of a cluster that the requests of a session can have at
/// once, with one more if `new` is given. Of requests one after the other the largest counts.
/// Non-preemptible requests count as far as they exceed the pre-allocations.
pub(crate) fn firm_nodes(session: &Session, cluster: usize, new: Option<&Ask>) -> u64 {
    let live = session.requests.iter().map(|request| (Some(request.id), &request.ask));
    // The first request of the chain of each, and the largest of each chain.
    let mut firsts: HashMap<RequestId, Option<RequestId>> = HashMap::new();
    let (mut pre_allocated, mut non_preemptible) = (HashMap::new(), HashMap::new());
    for (id, ask) in live.chain(new.map(|ask| (None, ask))) {
        if ask.cluster != cluster {
            continue;
        }
        let largest = match ask.kind {
            Kind::PreAllocation => &mut pre_allocated,
            Kind::NonPreemptible => &mut non_preemptible,
            Kind::Preemptible => continue,
        };
        // A request depends only on older ones. One whose predecessor has ended is the first.
        let first = match ask.relation {
            Relation::Next(before) => firsts.get(&before).copied().unwrap_or(id),
            Relation::Free | Relation::Coalloc(_) => id,
        };
        if let Some(id) = id {
            firsts.insert(id, first);
        }
        let nodes = largest.entry(first).or_insert(0_u64);
        *nodes = (*nodes).max(ask.nodes);
    }
    let sum = |largest: HashMap<Option<RequestId>, u64>| {
        largest.into_values().fold(0, u64::saturating_add)
    };
    sum(pre_allocated).max(sum(non_preemptible))
}
