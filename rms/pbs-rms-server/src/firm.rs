// SPDX-License-Identifier: GPL-2.0
//! Nodes that a session may have at once for requests that run to completion.

use std::collections::{BTreeMap, HashMap};

use pbs_rms::{Ask, Kind, Relation, RequestId, Session};

/// Returns the largest number of nodes of a cluster that the requests of a session can have at
/// once, with one more if `new` is given. Of requests one after the other the largest counts, and
/// what is inside a pre-allocation does not count beside it.
pub(crate) fn firm_nodes(session: &Session, cluster: usize, new: Option<&Ask>) -> u64 {
    let live = session.requests.iter().map(|request| (Some(request.id), &request.ask));
    let asks: Vec<(Option<RequestId>, &Ask)> = live.chain(new.map(|ask| (None, ask))).collect();
    let by_id: HashMap<RequestId, &Ask> =
        asks.iter().filter_map(|&(id, ask)| Some((id?, ask))).collect();
    let mut largest: BTreeMap<Option<RequestId>, u64> = BTreeMap::new();
    for &(id, ask) in &asks {
        if ask.cluster != cluster || ask.kind == Kind::Preemptible {
            continue;
        }
        let (mut first, mut is_inside) = (id, false);
        let (mut at, mut is_chain) = (ask, true);
        // A request depends only on older ones.
        while let Some((before, older)) =
            at.relation.parent().and_then(|before| Some((before, *by_id.get(&before)?)))
        {
            is_chain &= matches!(at.relation, Relation::Next(_)) && older.cluster == cluster;
            if is_chain {
                first = Some(before);
            }
            is_inside |= older.kind == Kind::PreAllocation && older.cluster == cluster;
            at = older;
        }
        if !(is_inside && ask.kind == Kind::NonPreemptible) {
            let nodes = largest.entry(first).or_default();
            *nodes = (*nodes).max(ask.nodes);
        }
    }
    largest.into_values().fold(0, u64::saturating_add)
}
