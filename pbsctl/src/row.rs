// SPDX-License-Identifier: GPL-2.0
//! A run, as it is listed.

use pbs_history::Outcome;
use pbs_node::queue::RunSummary;
use pbs_node_api::Job;
use serde::Serialize;

/// States of runs, in the order in which a run passes through them.
pub(crate) const STATES: [&str; 5] = ["held", "waiting", "planned", "running", "over"];

/// A run, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct RunRow {
    pub(crate) run: u64,
    pub(crate) job: String,
    /// User of the run, by number.
    pub(crate) uid: Option<u32>,
    /// Purpose of the run.
    pub(crate) kind: Option<String>,
    pub(crate) state: String,
    /// Reason why it waits, or did not reach its end.
    pub(crate) reason: Option<String>,
    pub(crate) outcome: Option<String>,
    pub(crate) priority: Option<u32>,
    /// Whether it is run as best effort, without a promise.
    pub(crate) best_effort: Option<bool>,
    /// The CPUs that it is confined to.
    pub(crate) cpus: Option<Vec<u32>>,
    pub(crate) submitted_unix_ns: u64,
    pub(crate) deadline_unix_ns: Option<u64>,
    pub(crate) expected_start_unix_ns: Option<u64>,
    pub(crate) expected_end_unix_ns: Option<u64>,
    pub(crate) started_unix_ns: Option<u64>,
    pub(crate) begun_unix_ns: Option<u64>,
    pub(crate) ended_unix_ns: Option<u64>,
    pub(crate) kept: Option<bool>,
    /// Exit status of the program that made it fail.
    pub(crate) exit_code: Option<i32>,
    /// Name of the signal that killed it.
    pub(crate) signal: Option<String>,
    /// Number of tasks of which something is known.
    pub(crate) tasks: Option<usize>,
    /// Number of those tasks that have ended.
    pub(crate) tasks_ended: Option<usize>,
}

impl RunRow {
    pub(crate) fn number(&self) -> u64 {
        self.run
    }

    pub(crate) fn name(&self) -> &str {
        &self.job
    }

    pub(crate) fn state(&self) -> &str {
        &self.state
    }

    /// Outcome of a process of the run, in the words of the run. Events do not tell the end of each
    /// process: such a one ended as its run did, and has no outcome before.
    pub(crate) fn process_outcome<'a>(&'a self, of_process: &'a str) -> Option<&'a str> {
        if of_process != Outcome::Unknown.name() {
            return Some(of_process);
        }
        if self.state != "over" {
            return None;
        }
        let of_run = self.outcome.as_deref();
        of_run.filter(|of_run| *of_run != Outcome::Complete.name()).or(Some(of_process))
    }
}

impl From<RunSummary> for RunRow {
    fn from(run: RunSummary) -> Self {
        let kind = run.kind.to_string();
        let (tasks, tasks_ended) = (run.tasks, run.tasks_ended);
        Self {
            kind: Some(kind),
            tasks: Some(tasks),
            tasks_ended: Some(tasks_ended),
            ..Self::from(Job::from(run))
        }
    }
}

impl From<Job> for RunRow {
    fn from(job: Job) -> Self {
        Self {
            run: job.number,
            job: job.name,
            uid: job.uid,
            kind: None,
            state: job.state,
            reason: job.reason,
            outcome: job.outcome,
            priority: job.priority,
            best_effort: job.best_effort,
            cpus: job.cpus,
            submitted_unix_ns: job.submitted_unix_ns,
            deadline_unix_ns: job.deadline_unix_ns,
            expected_start_unix_ns: job.expected_start_unix_ns,
            expected_end_unix_ns: job.expected_end_unix_ns,
            started_unix_ns: job.started_unix_ns,
            begun_unix_ns: job.begun_unix_ns,
            ended_unix_ns: job.ended_unix_ns,
            kept: job.kept,
            exit_code: job.exit_code,
            signal: job.signal,
            // The service tells them of one job at a time.
            tasks: None,
            tasks_ended: None,
        }
    }
}
