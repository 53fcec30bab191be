// SPDX-License-Identifier: GPL-2.0
//! Order between runs that were arranged together, in answers to prediction failures.
//!
//! An answer plans one run after the other, and would thereby execute all of a run before the next
//! one. A caller that has chosen the order of the tasks of several runs wants that order to remain.

use std::collections::BTreeSet;

use pbs_planner::{Request, RunId, Turn};

use super::best_effort::set_aside;
use super::Controller;

impl Controller {
    /// Lets what is left of the runs that were arranged come in their order again, where each of
    /// them thereby keeps its deadline, or ends no later than by the answer. A run with a rogue, or
    /// one that is behind all others, has lost its place in the order.
    pub(super) fn keep_turns(&mut self, start_ns: u64) {
        // Where slots float, the node has an order of its own.
        if self.turns.is_empty() || self.floats() {
            return;
        }
        let (runs, store) = (&self.runs, &self.store);
        self.turns.retain(|turn| {
            let is_left = |run: &pbs_planner::Run| {
                run.tasks.binary_search_by_key(&turn.task, |task| task.task).is_ok()
            };
            runs.contains_key(&turn.run) && store.run(turn.run).is_some_and(is_left)
        });
        let is_innocent = |run: &RunId| {
            let active = &runs[run];
            active.is_promised() && !active.has_rogue() && !active.is_behind
        };
        let turns: Vec<Turn> =
            self.turns.iter().filter(|turn| is_innocent(&turn.run)).copied().collect();
        let named: BTreeSet<RunId> = turns.iter().map(|turn| turn.run).collect();
        // The tasks of one run alone have their order anyway.
        if named.len() < 2 {
            return;
        }
        let progress = self.progress(start_ns);
        let requests = named.into_iter().map(|run| {
            let request: Request<'_> = self.runs[&run].request(run, &progress);
            let end_ns = self.store.run(run).map_or(0, pbs_planner::Run::end_ns);
            let deadline_ns = request.deadline_ns.max(end_ns);
            Request { deadline_ns, ..request.not_before(start_ns) }
        });
        let requests: Vec<_> = requests.collect();
        set_aside(&mut self.store, &self.runs, &progress, start_ns);
        // Where the order does not keep the deadlines, the answer stays as it is.
        let _ = pbs_planner::arrange(&mut self.store, &requests, &turns);
        self.place_behind(start_ns);
    }
}
