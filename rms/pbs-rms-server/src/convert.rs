// SPDX-License-Identifier: GPL-2.0
//! From what goes over the wire to what the manager takes, and back.

use pbs_rms::{Ask, Kind, Refusal, Relation, RequestId, FOREVER};
use pbs_rms_api as wire;

fn kind(name: &str) -> Option<Kind> {
    let all = [Kind::PreAllocation, Kind::NonPreemptible, Kind::Preemptible];
    all.into_iter().find(|kind| kind.name() == name)
}

pub(crate) fn refused(refusal: Refusal) -> wire::Refusal {
    wire::Refusal::Refused { why: refusal.to_string() }
}

fn because(why: &str) -> wire::Refusal {
    wire::Refusal::Refused { why: why.into() }
}

/// Account of a session that has ended.
pub(crate) use pbs_rms::Closed as Over;

/// After that there is nothing: an int of varlink has no more bits everywhere, and of a user's
/// request all hear.
const END_NS: u64 = i64::MAX as u64;

/// A time that may have no end.
pub(crate) fn duration_ns(ns: Option<u64>) -> u64 {
    ns.filter(|&ns| ns < END_NS).unwrap_or(FOREVER)
}

pub(crate) fn finite(ns: u64) -> Option<u64> {
    (ns < END_NS).then_some(ns)
}

pub(crate) fn ask(asked: wire::Asked) -> Result<Ask, wire::Refusal> {
    let kinds = || {
        let kind: String = asked.kind.chars().take(40).collect();
        because(&format!(
            "kind is {kind:?}; it must be pre-allocation, non-preemptible or preemptible"
        ))
    };
    let kind = kind(&asked.kind).ok_or_else(kinds)?;
    let relation = match (asked.coalloc, asked.next) {
        (None, None) => Relation::Free,
        (Some(of), None) => Relation::Coalloc(RequestId(of)),
        (None, Some(of)) => Relation::Next(RequestId(of)),
        (Some(_), Some(_)) => return Err(because("a request can depend on one other, not on two")),
    };
    let preferred = asked.preferred.unwrap_or_default();
    if preferred.len() as u64 > asked.nodes {
        return Err(because(&format!(
            "{} nodes are preferred and {} requested; prefer at most as many as are requested",
            preferred.len(),
            asked.nodes
        )));
    }
    Ok(Ask {
        cluster: usize::try_from(asked.cluster).unwrap_or(usize::MAX),
        nodes: asked.nodes,
        duration_ns: duration_ns(asked.duration_ns),
        kind,
        relation,
        preferred,
    })
}

pub(crate) fn update(update: wire::Change) -> pbs_rms::Update {
    pbs_rms::Update {
        of: RequestId(update.request),
        nodes: update.nodes,
        duration_ns: duration_ns(update.duration_ns),
        announce_ns: update.announce_ns.unwrap_or(0),
        released: update.released.unwrap_or_default(),
    }
}

fn cap(cap: &pbs_profile::view::Cap) -> wire::Cap {
    let mut end_ns = cap.from_ns();
    let steps = cap.steps().map_while(|step| {
        let is_before = end_ns < END_NS;
        end_ns = end_ns.saturating_add(step.duration_ns);
        is_before.then(|| wire::Step {
            duration_ns: finite(end_ns).map(|_| step.duration_ns),
            nodes: step.nodes,
        })
    });
    wire::Cap { from_unix_ns: cap.from_ns(), steps: steps.collect() }
}

pub(crate) fn views(cluster: usize, views: &pbs_rms::Views) -> wire::View {
    wire::View {
        cluster: cluster as u64,
        non_preemptible: cap(&views.non_preemptible),
        preemptible: cap(&views.preemptible),
    }
}

pub(crate) fn request(request: &pbs_rms::Request) -> wire::Held {
    wire::Held {
        request: request.id.0,
        cluster: request.ask.cluster as u64,
        kind: request.ask.kind.name().into(),
        nodes: request.ask.nodes,
        duration_ns: finite(request.ask.duration_ns),
        started_unix_ns: request.started_ns,
        scheduled_unix_ns: request.scheduled_ns.and_then(finite),
        held: request.nodes.clone(),
    }
}

/// In whole seconds; what does not fit is as much as does.
pub(crate) fn account(
    over: &Over,
    uid: u32,
    is_over: bool,
    prices: &pbs_rms::Prices,
) -> wire::Account {
    let whole = |value: u128| u64::try_from(value).unwrap_or(END_NS).min(END_NS);
    let seconds = |node_ns: u128| whole(node_ns / 1_000_000_000);
    let account = &over.account;
    wire::Account {
        session: over.app.0,
        name: over.name.clone(),
        uid,
        is_over,
        pre_allocated_node_s: seconds(account.pre_allocated_node_ns),
        idle_node_s: seconds(account.idle_node_ns),
        non_preemptible_node_s: seconds(account.all_non_preemptible_node_ns()),
        preemptible_node_s: seconds(account.all_preemptible_node_ns()),
        overstayed_node_s: seconds(account.overstayed_node_ns),
        wasted_node_s: seconds(account.wasted_node_ns),
        cost_micro: whole(account.cost_micro(prices)),
    }
}
