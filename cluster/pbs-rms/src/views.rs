// SPDX-License-Identifier: GPL-2.0
//! Views: what they are, and whose have changed.
//!
//! What a session sees for its non-preemptible requests is what nobody has for good, less what
//! is planned for those that come before it, and what it has itself. That is as long as all
//! requests together, for each session: it is made only for whom it is asked, and whether it
//! has changed follows from what has changed of its parts.

use std::collections::BTreeMap;
use std::ops::Range;

use pbs_view::{Cap, Steps, FOREVER};

use crate::session::Told;
use crate::share::Shares;
use crate::{AppId, Event, Notice, Order, Rms};

/// The views of a cluster, from the time of the last pass or message on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Views {
    /// What pre-allocations and non-preemptible requests could get.
    pub non_preemptible: Cap,
    /// What preemptible requests could get, and have to give back.
    pub preemptible: Cap,
}

impl Rms {
    /// The views of a session on a cluster, if there are both.
    pub fn views(&self, app: AppId, cluster: usize) -> Option<Views> {
        let session = self.sessions.get(&app)?;
        let nobodys = self
            .profiles
            .get(cluster)
            .filter(|_| cluster < self.sizes.len())?;
        let mut changes = Changes::new(self.now_ns);
        let mut before = 0;
        for step in nobodys.steps_from(self.now_ns) {
            changes.add(step.from..FOREVER, i128::from(step.value) - before);
            before = i128::from(step.value);
        }
        changes.add_steps(&session.booked[cluster].outer, 1);
        let others = self
            .sessions
            .iter()
            .filter(|&(&other, _)| match self.policy.order {
                Order::Connection => other < app,
                Order::Request => other != app,
            });
        for (_, other) in others {
            changes.add_steps(&other.planned[cluster], -1);
        }
        let shares = self.shares.get(cluster);
        Some(Views {
            non_preemptible: changes.cap(self.policy.limits.nodes),
            preemptible: shares.map(|shares| shares.cap(app)).unwrap_or_default(),
        })
    }

    /// The sessions of which a view has changed since the last pass. Where limits clip it, or
    /// much has changed, it may be the same all the same.
    pub(crate) fn changed_views(&mut self, before: &[Shares]) -> Vec<Notice> {
        let mut notices = Vec::new();
        let gone = std::mem::take(&mut self.gone);
        for cluster in 0..self.sizes.len() {
            let is_own_first = self.policy.order == Order::Connection;
            let mut changes = Changes::new(self.now_ns);
            for session in self.sessions.values() {
                let (told, booked) = (&session.told[cluster], &session.booked[cluster]);
                changes.add_difference(&told.outer, &booked.outer);
                if !is_own_first {
                    changes.add_difference(&told.planned, &session.planned[cluster]);
                }
            }
            for (_, told) in &gone {
                changes.add_steps(&told[cluster].outer, 1);
                if !is_own_first {
                    changes.add_steps(&told[cluster].planned, 1);
                }
            }
            let mut gone = gone.iter().peekable();
            let (now, before) = (&self.shares[cluster], &before[cluster]);
            let times = now.changed_since(before, self.now_ns);
            for (&app, session) in &mut self.sessions {
                while let Some((_, told)) = gone.next_if(|gone| gone.0 < app && is_own_first) {
                    changes.add_steps(&told[cluster].planned, 1);
                }
                let told = &mut session.told[cluster];
                let (outer, planned) = (&session.booked[cluster].outer, &session.planned[cluster]);
                changes.add_difference(outer, &told.outer);
                if !is_own_first {
                    changes.add_difference(planned, &told.planned);
                }
                let is_changed =
                    !session.is_told || !changes.is_none() || now.is_changed(before, app, &times);
                changes.add_difference(&told.outer, outer);
                changes.add_difference(&told.planned, planned);
                if told.outer != *outer || told.planned != *planned {
                    *told = Told {
                        outer: outer.clone(),
                        planned: planned.clone(),
                    };
                }
                if is_changed {
                    let event = Event::Views { cluster };
                    notices.push(Notice { app, event });
                }
            }
        }
        for session in self.sessions.values_mut() {
            session.is_told = true;
        }
        notices
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
        Self {
            now_ns,
            at: BTreeMap::new(),
        }
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

    /// What is more in the first than in the second.
    fn add_difference(&mut self, first: &Steps, second: &Steps) {
        if first != second {
            self.add_steps(first, 1);
            self.add_steps(second, -1);
        }
    }

    fn cap(&self, limit: u64) -> Cap {
        let ends = self
            .at
            .keys()
            .skip(usize::from(self.at.contains_key(&self.now_ns)));
        let ends = ends.copied().chain(std::iter::once(FOREVER));
        let mut nodes = self.at.get(&self.now_ns).copied().unwrap_or(0);
        let steps = ends.map(|end_ns| {
            let value = u64::try_from(nodes.max(0)).unwrap_or(u64::MAX).min(limit);
            nodes += self.at.get(&end_ns).copied().unwrap_or(0);
            (end_ns, value)
        });
        Cap::of_ends(self.now_ns, steps)
    }
}
