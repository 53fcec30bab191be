// SPDX-License-Identifier: GPL-2.0
//! Runs in the forms of the service's interface.

use pbs_history::{Outcome, ProcessRun};
use pbs_node_api::{Job, Process};

use crate::queue::RunSummary;

impl From<RunSummary> for Job {
    fn from(run: RunSummary) -> Self {
        Self {
            number: run.run.0,
            name: run.job,
            uid: run.uid,
            state: run.state.into(),
            reason: run.reason,
            outcome: run.outcome.map(|outcome| outcome.name().into()),
            priority: run.priority,
            best_effort: run.best_effort,
            cpus: run.cpus,
            allocation: run.allocation,
            submitted_unix_ns: run.submitted_unix_ns,
            deadline_unix_ns: run.deadline_unix_ns,
            expected_start_unix_ns: run.expected_start_unix_ns,
            expected_end_unix_ns: run.expected_end_unix_ns,
            started_unix_ns: run.started_unix_ns,
            begun_unix_ns: run.begun_unix_ns,
            ended_unix_ns: run.ended_unix_ns,
            kept: run.kept,
            exit_code: run.exit_code,
            signal: run.signal,
        }
    }
}

/// Figures of a process, without its tasks.
pub fn process_of(figures: &ProcessRun) -> Process {
    let tasks = figures.tasks.iter();
    let ended = tasks.clone().filter(|task| task.outcome == Outcome::Complete);
    Process {
        number: figures.process,
        name: figures.name.clone(),
        outcome: figures.outcome.name().into(),
        tasks: figures.tasks.len() as u64,
        ended_tasks: ended.count() as u64,
        planned_insns: tasks.clone().map(|task| task.planned_insns).sum(),
        retired_insns: tasks.map(|task| task.retired_insns).sum(),
        peak_memory_bytes: figures.peak_memory_bytes(),
    }
}
