// SPDX-License-Identifier: GPL-2.0
//! Chains of requests that have their nodes one after the other.

use std::collections::HashMap;

use crate::{Ask, Kind, Relation, RequestId};

/// Requests of one type on one cluster, of which each begins when the one before ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chain {
    /// The largest number of nodes of a request.
    pub nodes: u64,
    /// Time that all of them take together, in nanoseconds.
    pub lasts_ns: u64,
}

/// Returns the chains of one type on a cluster, in no order. Requests come in the order of their
/// submission; one that is not submitted yet has no number. A request whose predecessor has ended
/// is the first of its chain.
pub fn chains<'a>(
    asks: impl Iterator<Item = (Option<RequestId>, &'a Ask)>,
    cluster: usize,
    kind: Kind,
) -> impl Iterator<Item = Chain> {
    // The first request of the chain of each.
    let mut firsts: HashMap<RequestId, Option<RequestId>> = HashMap::new();
    let mut chains: HashMap<Option<RequestId>, Chain> = HashMap::new();
    for (id, ask) in asks.filter(|(_, ask)| ask.cluster == cluster && ask.kind == kind) {
        let first = match ask.relation {
            Relation::Next(before) => firsts.get(&before).copied().unwrap_or(id),
            Relation::Free | Relation::Coalloc(_) => id,
        };
        if let Some(id) = id {
            firsts.insert(id, first);
        }
        let chain = chains.entry(first).or_default();
        chain.nodes = chain.nodes.max(ask.nodes);
        chain.lasts_ns = chain.lasts_ns.saturating_add(ask.duration_ns);
    }
    chains.into_values()
}
