// SPDX-License-Identifier: GPL-2.0
//! Wants and grants of preemptible requests.

use pbs_profile::view::{Cap, Steps, FOREVER};

use crate::place::Anchor;
use crate::session::Tree;
use crate::share::Shares;
use crate::{AppId, Kind, Session};

/// Returns the nodes that a session wants of a cluster: for started requests, and for those whose
/// begin is known. `None`: no nodes.
///
/// A request that hangs on no other one wants nodes from now on if it has no end, since it starts
/// as soon as there is one for it. With an end, it waits until there are as many for all of its
/// time. Meanwhile it wants none: its part would be used by nobody, and paid by nobody.
pub(crate) fn wants_of(
    session: &Session,
    waiting: &[(AppId, Tree)],
    cluster: usize,
    now_ns: u64,
) -> Option<Steps> {
    let booked = &session.booked[cluster].preemptible;
    let is_any = |steps: &Steps| steps.stretches().any(|(over, _)| over.end > now_ns);
    if waiting.is_empty() {
        return is_any(booked).then(|| booked.clone());
    }
    let mut wants = booked.clone();
    for (_, tree) in waiting {
        let begin_ns = match Anchor::of(session, tree, now_ns) {
            Anchor::At(ns) => ns,
            Anchor::None => Some(now_ns).filter(|_| waits_for_nothing(session, tree)),
        };
        let Some(begin_ns) = begin_ns else {
            continue;
        };
        for &(place, offset_ns) in &tree.members {
            let request = &session.requests[place];
            if request.ask.cluster == cluster {
                let span = request.span_from(begin_ns.saturating_add(offset_ns));
                wants.add(span, request.ask.nodes);
            }
        }
    }
    is_any(&wants).then_some(wants)
}

/// Whether a tree has, at each time, the nodes of that time, however few.
fn waits_for_nothing(session: &Session, tree: &Tree) -> bool {
    session.requests[tree.root].ask.duration_ns == FOREVER
}

/// Determines the number of nodes that preemptible requests get which have started, or start now.
/// `taken`: nodes of each cluster for requests that were not divided for, and have started in this
/// pass. Returns whether one has started.
pub(crate) fn grant(
    app: AppId,
    session: &mut Session,
    waiting: &[(AppId, Tree)],
    shares: &[Shares],
    taken: &mut [u64],
    now_ns: u64,
) -> bool {
    let is_open = |r: &&crate::Request| r.ask.kind == Kind::Preemptible && !r.is_notified;
    if !session.requests.iter().any(|request| is_open(&request)) {
        return false;
    }
    let mut left: Vec<u64> = shares.iter().map(|shares| shares.at(app, now_ns)).collect();
    for request in &session.requests {
        if request.ask.kind == Kind::Preemptible && request.is_notified {
            let left = &mut left[request.ask.cluster];
            *left = left.saturating_sub(request.granted);
        }
    }
    for request in &mut session.requests {
        if request.started_ns.is_some() && is_open(&&*request) {
            request.take_of(&mut left[request.ask.cluster]);
        }
    }
    let mut spare = vec![None; shares.len()];
    let mut has_started = false;
    for (_, tree) in waiting {
        let anchor = Anchor::of(session, tree, now_ns);
        let ask = &session.requests[tree.root].ask;
        let cluster = ask.cluster;
        let is_divided = !matches!(anchor, Anchor::None) || waits_for_nothing(session, tree);
        let begins = match anchor {
            Anchor::At(ns) => ns.is_some_and(|ns| ns <= now_ns),
            // Perhaps with fewer than it wants: it would wait for others who wait.
            Anchor::None if is_divided => left[cluster] > 0,
            Anchor::None if left[cluster] < ask.nodes.saturating_add(taken[cluster]) => false,
            Anchor::None => {
                let end_ns = now_ns.saturating_add(ask.duration_ns);
                let own = &session.booked[cluster].preemptible;
                let spare = spare[cluster]
                    .get_or_insert_with(|| spare_of(&shares[cluster].cap(app), own, now_ns));
                let place = spare.partition_point(|step| step.0 < end_ns);
                let least = place.checked_sub(1).map(|place| spare[place].1);
                least.is_some_and(|nodes| nodes >= ask.nodes)
            }
        };
        if begins {
            tree.schedule(session, now_ns, now_ns);
            has_started = true;
            for &(place, _) in &tree.members {
                let request = &mut session.requests[place];
                if request.started_ns.is_some() {
                    request.take_of(&mut left[request.ask.cluster]);
                    if !is_divided {
                        taken[request.ask.cluster] += request.granted;
                    }
                }
            }
        } else if let Anchor::At(ns) = anchor {
            session.requests[tree.root].scheduled_ns = ns;
        }
    }
    has_started
}

/// Returns the number of additional nodes that a session could have from now up to each change of
/// its cap; it never grows. The list is as long as all requests together, therefore it is made once
/// for all trees of a session.
fn spare_of(cap: &Cap, own: &Steps, now_ns: u64) -> Vec<(u64, u64)> {
    let mut least = u64::MAX;
    let steps = cap.times(now_ns, FOREVER).map(|ns| {
        least = least.min(cap.at(ns).saturating_sub(own.at(ns)));
        (ns, least)
    });
    steps.collect()
}
