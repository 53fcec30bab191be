// SPDX-License-Identifier: GPL-2.0
//! From what goes over the wire to what the manager takes, and back.

use pbs_rms::{AppId, Ask, Kind, Refusal, Relation, RequestId, FOREVER};
use pbs_rms_wire as wire;

fn kind(name: &str) -> Option<Kind> {
    let all = [Kind::PreAllocation, Kind::NonPreemptible, Kind::Preemptible];
    all.into_iter().find(|kind| kind.name() == name)
}

pub(crate) fn refused(refusal: Refusal) -> wire::Refusal {
    wire::Refusal::Refused {
        why: refusal.to_string(),
    }
}

fn because(why: &str) -> wire::Refusal {
    wire::Refusal::Refused { why: why.into() }
}

/// A time that may have no end; one that is sent for ever has none either.
pub(crate) fn duration_ns(ns: Option<u64>) -> u64 {
    ns.unwrap_or(FOREVER)
}

pub(crate) fn finite(ns: u64) -> Option<u64> {
    (ns != FOREVER).then_some(ns)
}

pub(crate) fn ask(asked: wire::Asked) -> Result<Ask, wire::Refusal> {
    let kinds = "kind is pre-allocation, non-preemptible or preemptible";
    let relation = match (asked.coalloc, asked.next) {
        (None, None) => Relation::Free,
        (Some(of), None) => Relation::Coalloc(RequestId(of)),
        (None, Some(of)) => Relation::Next(RequestId(of)),
        (Some(_), Some(_)) => return Err(because("a request hangs on one other, not on two")),
    };
    let preferred = asked.preferred.unwrap_or_default();
    if preferred.len() as u64 > asked.nodes {
        return Err(because("no more nodes can be preferred than are asked for"));
    }
    Ok(Ask {
        cluster: usize::try_from(asked.cluster).unwrap_or(usize::MAX),
        nodes: asked.nodes,
        duration_ns: duration_ns(asked.duration_ns),
        kind: kind(&asked.kind).ok_or_else(|| because(kinds))?,
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

fn cap(cap: &pbs_view::Cap) -> wire::Cap {
    let steps = cap.steps().map(|step| wire::Step {
        duration_ns: finite(step.duration_ns),
        nodes: step.nodes,
    });
    wire::Cap {
        from_unix_ns: cap.from_ns(),
        steps: steps.collect(),
    }
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
        scheduled_unix_ns: request.scheduled_ns,
        held: request.nodes.clone(),
    }
}

pub(crate) fn account(
    app: AppId,
    name: &str,
    uid: u32,
    is_over: bool,
    account: &pbs_rms::Account,
    prices: &pbs_rms::Prices,
) -> wire::Account {
    let whole = |value: u128| u64::try_from(value).unwrap_or(u64::MAX);
    let seconds = |node_ns: u128| whole(node_ns / 1_000_000_000);
    wire::Account {
        session: app.0,
        name: name.into(),
        uid,
        is_over,
        pre_allocated_node_s: seconds(account.pre_allocated_node_ns),
        idle_node_s: seconds(account.idle_node_ns),
        non_preemptible_node_s: seconds(account.non_preemptible_node_ns),
        preemptible_node_s: seconds(account.preemptible_node_ns),
        overstayed_node_s: seconds(account.overstayed_node_ns),
        wasted_node_s: seconds(account.wasted_node_ns),
        cost_micro: whole(account.cost_micro(prices)),
    }
}
