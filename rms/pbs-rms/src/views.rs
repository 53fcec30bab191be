// SPDX-License-Identifier: GPL-2.0
//! Views: what they are, and whose have changed.
//!
//! What a session sees for its non-preemptible requests is what nobody has for good, less what
//! is planned for those that come before it, and what it has itself. That is as long as all
//! requests together, for each session: it is made only for whom it is asked, and whether it
//! has changed follows from what has changed of its parts.

use std::collections::BTreeMap;
use std::ops::Range;

use pbs_profile::view::{Cap, Steps, FOREVER};

use crate::session::LastView;
use crate::share::Shares;
use crate::{AppId, Event, Notice, PlacementOrder, Rms};

/// The views of a cluster, from the time of the last pass or message on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Views {
    /// Nodes that pre-allocations and non-preemptible requests could get.
    pub non_preemptible: Cap,
    /// Nodes that preemptible requests could get. They must give back any more than these.
    pub preemptible: Cap,
}

impl Rms {
    /// The views of a session on a cluster, if there are both.
    pub fn views(&self, app: AppId, cluster: usize) -> Option<Views> {
        let session = self.sessions.get(app)?;
        let nobodys = self.profiles.get(cluster).filter(|_| cluster < self.sizes.len())?;
        let mut changes = Vec::with_capacity(2 * nobodys.step_count());
        let mut before = 0;
        for step in nobodys.steps_from(self.now_ns) {
            changes.push((step.from.max(self.now_ns), i128::from(step.value) - before));
            before = i128::from(step.value);
        }
        let others = self.sessions.iter().filter(|&(other, _, _)| match self.policy.order {
            PlacementOrder::Connection => other < app,
            PlacementOrder::Request => other != app,
        });
        let others = others.map(|(_, other, _)| (&other.planned[cluster], -1));
        let own = std::iter::once((&session.booked[cluster].outer, 1));
        for (steps, sign) in own.chain(others).filter(|(steps, _)| !steps.is_zero()) {
            for (over, nodes) in steps.stretches() {
                let nodes = sign * i128::from(nodes);
                changes.push((over.start.max(self.now_ns), nodes));
                changes.push((over.end.max(self.now_ns), -nodes));
            }
        }
        changes.sort_unstable_by_key(|change| change.0);
        let shares = self.shares.get(cluster);
        Some(Views {
            non_preemptible: cap(&changes, self.now_ns, self.policy.limits.nodes),
            preemptible: shares.map(|shares| shares.cap(app)).unwrap_or_default(),
        })
    }

    /// Returns the number of nodes of a cluster that preemptible requests of a session may have
    /// now. This is one point of its view, and cheaper than the view.
    pub fn preemptible_now(&self, app: AppId, cluster: usize) -> u64 {
        let shares = self.shares.get(cluster);
        shares.map_or(0, |shares| shares.at(app, self.now_ns))
    }

    /// Notifies the sessions of which a view has changed since the last pass. Under limits, or
    /// after many changes, the view may be unchanged all the same.
    pub(crate) fn changed_views(&mut self, before: &[Shares], notices: &mut Vec<Notice>) {
        let gone = std::mem::take(&mut self.gone);
        // Who comes first is told of what comes later only when that has started.
        let is_first = self.policy.order == PlacementOrder::Connection;
        for (cluster, before) in before.iter().enumerate() {
            let mut changes = Changes::new(self.now_ns);
            for (_, session, _) in self.sessions.iter().filter(|it| it.2.is_stale) {
                let (told, booked) = (&session.told[cluster], &session.booked[cluster]);
                changes.add_difference(&told.outer, &booked.outer);
                if !is_first {
                    changes.add_difference(&told.planned, &session.planned[cluster]);
                }
            }
            for (_, told) in &gone {
                changes.add_steps(&told[cluster].outer, 1);
                if !is_first {
                    changes.add_steps(&told[cluster].planned, 1);
                }
            }
            let now = &self.shares[cluster];
            let (mut wants, mut wanted) = (now.wants_in_order(), before.wants_in_order());
            let mut gone = gone.iter().filter(|_| is_first).peekable();
            let times = now.changed_since(before, self.now_ns);
            // All that have never wanted anything see the same.
            let others = now.is_changed_for_others(before, &times);
            if others {
                // With the starts that follow.
                notices.reserve(2 * self.sessions.len());
            }
            for (app, session, marks) in self.sessions.iter_mut() {
                while let Some((_, told)) = gone.next_if(|gone| gone.0 < app) {
                    changes.add_steps(&told[cluster].planned, 1);
                }
                let mut is_changed = !changes.is_none();
                if marks.is_stale {
                    let (outer, planned) =
                        (&session.booked[cluster].outer, &session.planned[cluster]);
                    let told = &mut session.told[cluster];
                    changes.add_difference(outer, &told.outer);
                    if !is_first {
                        changes.add_difference(planned, &told.planned);
                    }
                    is_changed = !changes.is_none() || !told.is_any;
                    changes.add_difference(&told.outer, outer);
                    changes.add_difference(&told.planned, planned);
                    *told =
                        LastView { is_any: true, outer: outer.clone(), planned: planned.clone() };
                }
                is_changed = is_changed
                    || match [wants(app), wanted(app)] {
                        [None, None] => others,
                        both => now.is_changed_with(both, before, app, &times),
                    };
                if is_changed {
                    let event = Event::Views { cluster };
                    notices.push(Notice { app, event });
                }
            }
        }
        for (_, _, marks) in self.sessions.iter_mut() {
            marks.is_stale = false;
        }
    }
}

/// A step function from a time on, by what changes when.
struct Changes {
    now_ns: u64,
    /// Nowhere 0.
    at: BTreeMap<u64, i128>,
}

impl Changes {
    fn new(now_ns: u64) -> Self {
        Self { now_ns, at: BTreeMap::new() }
    }

    fn is_none(&self) -> bool {
        self.at.is_empty()
    }

    fn change(&mut self, time_ns: u64, by: i128) {
        let sum = self.at.entry(time_ns).or_default();
        *sum += by;
        if *sum == 0 {
            self.at.remove(&time_ns);
        }
    }

    fn add(&mut self, over: Range<u64>, nodes: i128) {
        let start_ns = over.start.max(self.now_ns);
        if start_ns < over.end && nodes != 0 {
            self.change(start_ns, nodes);
            if over.end < FOREVER {
                self.change(over.end, -nodes);
            }
        }
    }

    fn add_steps(&mut self, steps: &Steps, sign: i128) {
        for (over, nodes) in steps.stretches() {
            self.add(over, sign * i128::from(nodes));
        }
    }

    /// Adds the difference of the first and the second.
    fn add_difference(&mut self, first: &Steps, second: &Steps) {
        if first != second {
            self.add_steps(first, 1);
            self.add_steps(second, -1);
        }
    }
}

/// Builds the cap that results from changes, clipped to the limit.
fn cap(changes: &[(u64, i128)], now_ns: u64, limit: u64) -> Cap {
    let mut nodes = 0;
    let steps = changes.iter().enumerate().map(|(place, change)| {
        nodes += change.1;
        let end_ns = changes.get(place + 1).map_or(FOREVER, |next| next.0);
        (end_ns, u64::try_from(nodes).unwrap_or(0).min(limit))
    });
    Cap::of_ends(now_ns, steps)
}
