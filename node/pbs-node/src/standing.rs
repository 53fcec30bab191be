// SPDX-License-Identifier: GPL-2.0
//! Summaries of the runs of a node.

use pbs_history::{Last, RunFigures, RunId, RunUsage, State};

use crate::active::ActiveJob;
use crate::clock::monotonic_ns;
use crate::jobs::Jobs;
use crate::orders::{Noted, Waiting, Waits};
use crate::queue::{confined, RunSummary};
use crate::Error;

impl Jobs {
    /// The runs that are not over, and the last ones that are, the oldest first.
    pub(crate) fn standing(&self, last: &Last<'_>) -> Result<Vec<RunSummary>, Error> {
        let mut runs = Vec::new();
        for run in self.ledger.last_runs(last)? {
            let noted = self.ledger.order(run.id)?;
            let figures = RunFigures { run, processes: Vec::new(), usage: RunUsage::default() };
            runs.push(RunSummary::new(figures, noted.as_ref()));
        }
        runs.extend(self.backlog.iter().map(|waiting| self.of_waiting(waiting)));
        runs.extend(self.runs.iter().filter_map(|run| self.of_active(run)));
        runs.sort_by_key(|run| run.run);
        Ok(runs)
    }

    /// Returns the summary of a run.
    ///
    /// # Errors
    ///
    /// The run is not known.
    pub(crate) fn standing_of(&self, id: RunId) -> Result<RunSummary, Error> {
        if let Some(waiting) = self.backlog.find(id) {
            return Ok(self.of_waiting(waiting));
        }
        let active = self.runs.iter().find(|run| run.id == Some(id));
        if let Some(summary) = active.and_then(|run| self.of_active(run)) {
            return Ok(summary);
        }
        let noted = self.ledger.order(id)?;
        Ok(RunSummary::new(self.ledger.figures(id)?, noted.as_ref()))
    }

    /// Returns the figures of a run's processes.
    pub(crate) fn figures_of(&self, id: RunId) -> Result<RunFigures, Error> {
        self.ledger.figures(id)
    }

    /// Returns the record of a run's order, and, while it is not over, the job as it was requested.
    pub(crate) fn noted(&self, id: RunId) -> Result<(Option<Noted>, Option<String>), Error> {
        let noted = self.ledger.order(id)?.and_then(|order| Noted::of(&order));
        Ok((noted, self.ledger.request(id)?))
    }

    fn of_waiting(&self, waiting: &Waiting) -> RunSummary {
        let job = &waiting.order.submission.job;
        let terms = &waiting.order.terms;
        let waits = waiting.order.waits(|id| self.ended(id));
        let drained = self.backlog.is_drained().then(|| "draining".to_string());
        RunSummary {
            state: if terms.hold { "held" } else { "waiting" },
            reason: match waits {
                Waits::For(what) | Waits::Never(what) => Some(what),
                Waits::No => drained.or_else(|| waiting.not_started.clone()),
            },
            uid: Some(terms.owner.uid),
            priority: Some(job.priority),
            best_effort: Some(job.best_effort),
            cpus: confined(&job.cpus),
            allocation: terms.allocation,
            deadline_unix_ns: Some(waiting.deadline_unix_ns()),
            ..RunSummary::begun(waiting.id, &job.name, waiting.submitted_unix_ns)
        }
    }

    fn of_active(&self, active: &ActiveJob) -> Option<RunSummary> {
        let state = self.controller.run(active.run)?;
        let unix_ns = |ns| active.unix_ns(ns);
        // Before the start of the job, its programs sleep in slots that they are granted.
        let has_slot = state.has_executed && monotonic_ns() >= active.job.start_ns;
        let has_begun = active.begun_ns.is_some() || has_slot;
        let is_running = has_begun || state.planned_start_ns.is_none();
        let tasks = active.job.tasks.iter().filter(|task| task.insns > 0);
        let ended = state.measured.iter().map(Vec::len).sum();
        Some(RunSummary {
            state: if is_running { State::Running.name() } else { State::Planned.name() },
            reason: match (&active.cancelled, state.planned_end_ns) {
                (Some(why), _) => Some(format!("ending: {why}")),
                (None, None) if !state.ends.iter().all(Option::is_some) => {
                    Some("the plan has no place for it any more".into())
                }
                _ => None,
            },
            kind: active.kind,
            uid: active.uid(),
            priority: Some(active.job.priority),
            best_effort: Some(active.job.best_effort),
            cpus: confined(&active.job.cpus),
            allocation: active.allocation(),
            deadline_unix_ns: active.deadline_ns().map(unix_ns),
            // Of a run that has begun, the plan has only the tasks that remain.
            expected_start_unix_ns: (if has_begun {
                active.expected_start_ns
            } else {
                state.planned_start_ns
            })
            .map(unix_ns),
            expected_end_unix_ns: state.planned_end_ns.map(unix_ns),
            started_unix_ns: active.started_ns.map(unix_ns),
            begun_unix_ns: active.begun_ns.map(unix_ns),
            tasks: tasks.count(),
            tasks_ended: ended,
            ..RunSummary::begun(active.id?, &active.job.name, active.submitted_unix_ns)
        })
    }
}
