// SPDX-License-Identifier: GPL-2.0
//! Runs for which others wait, since they hold memory or resources that the others need.
//!
//! A late run goes behind all others. Behind a run that waits for what it holds it would never
//! end: it has its place before the most urgent of those that wait.

use std::collections::{BTreeMap, BTreeSet};

use pbs_planner::{Budget, Progress, RunId};

use super::answering::{Claim, Claims};
use super::Controller;

/// Memory and resources that the runs of a new plan hold and need.
pub(super) struct Holders {
    needs: Vec<RunNeeds>,
    /// Memory of the node.
    all_bytes: u64,
    /// Steps of work that it takes to find who waits.
    steps: u64,
}

/// Memory and resources of a run.
struct RunNeeds {
    run: RunId,
    deadline_ns: u64,
    /// Memory that it holds now.
    held_bytes: u64,
    /// The most memory that a process needs which has not begun.
    awaited_bytes: u64,
    /// Resources that it holds now.
    held: BTreeSet<String>,
    /// Resources that processes need which have not begun.
    awaited: BTreeSet<String>,
}

/// Deadlines of the runs that wait for late ones.
pub(super) struct Waiting<'a> {
    for_memory: Earliest,
    for_resources: BTreeMap<&'a str, Earliest>,
}

/// The two earliest deadlines, each with its run.
#[derive(Clone, Copy, Default)]
struct Earliest([Option<(u64, RunId)>; 2]);

impl Earliest {
    fn add(&mut self, deadline_ns: u64, run: RunId) {
        let new = (deadline_ns, run);
        let [first, second] = &mut self.0;
        if first.is_none_or(|first| new < first) {
            *second = first.replace(new);
        } else if second.is_none_or(|second| new < second) {
            *second = Some(new);
        }
    }

    fn other_than(&self, run: RunId) -> Option<u64> {
        let mut others = self.0.iter().flatten().filter(|(_, of)| *of != run);
        others.next().map(|(deadline_ns, _)| *deadline_ns)
    }
}

impl Holders {
    /// Returns the deadlines of the runs that wait. A run that goes behind all others counts without
    /// its deadline, unless others wait for it in turn.
    pub(super) fn waiting(&self, claims: &Claims, work: Option<&Budget>) -> Waiting<'_> {
        if let Some(work) = work {
            work.add(self.steps);
        }
        let is_late = |run| matches!(claims.get(&run), Some(Claim::Behind | Claim::Late));
        // What the innocent hold comes back in time.
        let late = self.needs.iter().filter(|needs| is_late(needs.run));
        let late_bytes = late.fold(0_u64, |sum, needs| sum.saturating_add(needs.held_bytes));
        let left_bytes = self.all_bytes.saturating_sub(late_bytes);
        let mut waiting =
            Waiting { for_memory: Earliest::default(), for_resources: BTreeMap::new() };
        for needs in self.needs.iter().filter(|it| claims.get(&it.run) != Some(&Claim::Nowhere)) {
            let holds = needs.held_bytes > 0 || !needs.held.is_empty();
            let is_behind = is_late(needs.run) && !holds;
            let deadline_ns = if is_behind { u64::MAX } else { needs.deadline_ns };
            if needs.awaited_bytes > left_bytes {
                waiting.for_memory.add(deadline_ns, needs.run);
            }
            for name in &needs.awaited {
                waiting.for_resources.entry(name).or_default().add(deadline_ns, needs.run);
            }
        }
        waiting
    }

    /// Returns the earliest deadline of the others that wait for a late run; `None`: nobody does.
    pub(super) fn awaited_by_ns(&self, waiting: &Waiting<'_>, run: RunId) -> Option<u64> {
        let place = self.needs.binary_search_by_key(&run, |needs| needs.run).ok()?;
        let needs = &self.needs[place];
        let for_resources = needs.held.iter().filter_map(|name| {
            waiting.for_resources.get(name.as_str()).and_then(|earliest| earliest.other_than(run))
        });
        let for_memory = waiting.for_memory.other_than(run).filter(|_| needs.held_bytes > 0);
        for_resources.chain(for_memory).min()
    }
}

impl Controller {
    /// Returns what the promised runs hold and need.
    pub(super) fn holders(
        &self,
        progress: &BTreeMap<RunId, Vec<Progress>>,
        work: Option<&Budget>,
    ) -> Holders {
        let store = &self.store;
        let nodes = store.machine().nodes.iter();
        let all_bytes = nodes.map(|node| store.balancing().memory_bytes(node)).min();
        let mut steps = 0_u64;
        let promised = self.runs.iter().filter(|(_, active)| active.is_promised());
        let needs = promised.map(|(&run, active)| {
            let request = active.request(run, progress);
            let awaited = request.awaited_resources();
            steps = steps.saturating_add(1 + awaited.len() as u64);
            if let Some(work) = work {
                work.add(active.job.processes.len() as u64);
            }
            RunNeeds {
                run,
                deadline_ns: active.job.deadline_ns,
                held_bytes: request.held_bytes(),
                awaited_bytes: request.awaited_bytes(),
                held: request.held_resources(),
                awaited,
            }
        });
        let needs = needs.collect();
        Holders { needs, all_bytes: all_bytes.unwrap_or(u64::MAX), steps }
    }
}
