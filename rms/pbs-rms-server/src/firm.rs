// SPDX-License-Identifier: GPL-2.0
//! Nodes that a session may have at once for requests that run to completion.

use pbs_rms::{chains, Ask, Kind, Session};

/// Returns the largest number of nodes of a cluster that the requests of a session can have at
/// once, with one more if `new` is given. Of requests one after the other the largest counts.
/// Non-preemptible requests count as far as they exceed the pre-allocations.
pub(crate) fn firm_nodes(session: &Session, cluster: usize, new: Option<&Ask>) -> u64 {
    let live = session.requests.iter().map(|request| (Some(request.id), &request.ask));
    let asks = live.chain(new.map(|ask| (None, ask)));
    let sum = |kind| {
        let all = chains(asks.clone(), cluster, kind);
        all.fold(0, |sum: u64, chain| sum.saturating_add(chain.nodes))
    };
    sum(Kind::PreAllocation).max(sum(Kind::NonPreemptible))
}
