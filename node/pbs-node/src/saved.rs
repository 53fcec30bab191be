// SPDX-License-Identifier: GPL-2.0
//! Saved data of a run that is under way, for a planner that takes over.

use std::path::PathBuf;

use pbs_history::Expected;
use pbs_job::{job_from_toml, job_to_toml, machine_from_toml, machine_to_toml, Job, Machine};
use serde::{Deserialize, Serialize};

use crate::predict::expected;

/// A run as it was planned first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Saved {
    /// With the figures that were predicted; its times count from its submission.
    pub(crate) job: Job,
    /// Time of its submission, on the monotonic clock of this boot; 0: it was before the boot.
    pub(crate) submitted_ns: u64,
    /// Time since 1970 of that clock's zero; `None`: a version before wrote this.
    pub(crate) zero_unix_ns: Option<u64>,
    /// The number of each of its processes in plans.
    pub(crate) numbers: Vec<u32>,
    /// The machine that was planned for.
    pub(crate) machine: Machine,
    /// The file that says whether its programs were let go.
    pub(crate) commit: PathBuf,
    /// Time of that release, on the same clock; before it, the planned one.
    pub(crate) started_ns: u64,
    /// Time of its first instruction in a slot, on the same clock.
    pub(crate) begun_ns: Option<u64>,
    /// End of its last process, on the same clock.
    pub(crate) ended_ns: Option<u64>,
    /// Reason for which it was cancelled.
    pub(crate) cancelled: Option<String>,
}

/// Record of the run in the history.
#[derive(Debug, Deserialize, Serialize)]
struct Text {
    submitted_ns: u64,
    #[serde(default)]
    zero_unix_ns: Option<u64>,
    numbers: Vec<u32>,
    job: String,
    machine: String,
    commit: PathBuf,
    started_ns: u64,
    #[serde(default)]
    begun_ns: Option<u64>,
    ended_ns: Option<u64>,
    #[serde(default)]
    cancelled: Option<String>,
}

impl Saved {
    pub(crate) fn to_text(&self) -> String {
        let text = Text {
            submitted_ns: self.submitted_ns,
            zero_unix_ns: self.zero_unix_ns,
            numbers: self.numbers.clone(),
            job: job_to_toml(&self.job),
            machine: machine_to_toml(&self.machine),
            commit: self.commit.clone(),
            started_ns: self.started_ns,
            begun_ns: self.begun_ns,
            ended_ns: self.ended_ns,
            cancelled: self.cancelled.clone(),
        };
        // Numbers, texts and lists always have a JSON text.
        serde_json::to_string(&text).unwrap_or_default()
    }

    /// `None`: it is not what [`Saved::to_text`] wrote.
    pub(crate) fn from_text(text: &str) -> Option<Self> {
        let text: Text = serde_json::from_str(text).ok()?;
        let job = job_from_toml(&text.job).ok()?;
        (job.processes.len() == text.numbers.len()).then_some(())?;
        Some(Self {
            job,
            submitted_ns: text.submitted_ns,
            zero_unix_ns: text.zero_unix_ns,
            numbers: text.numbers,
            machine: machine_from_toml(&text.machine).ok()?,
            commit: text.commit,
            started_ns: text.started_ns,
            begun_ns: text.begun_ns,
            ended_ns: text.ended_ns,
            cancelled: text.cancelled,
        })
    }

    /// Returns the time since 1970 of the monotonic clock's zero. Without a record of it, it counts
    /// from the submission, at that time.
    pub(crate) fn zero_unix_ns(&self, submitted_unix_ns: u64) -> u64 {
        self.zero_unix_ns.unwrap_or(submitted_unix_ns.saturating_sub(self.submitted_ns))
    }

    /// Returns a time of the monotonic clock since 1970. The run was submitted at that time.
    pub(crate) fn unix_ns(&self, time_ns: u64, submitted_unix_ns: u64) -> u64 {
        self.zero_unix_ns(submitted_unix_ns).saturating_add(time_ns)
    }

    /// Returns the deadline on the monotonic clock.
    pub(crate) fn deadline_ns(&self) -> u64 {
        self.submitted_ns.saturating_add(self.job.deadline_ns)
    }

    /// Returns the expected lengths of its tasks, for the collector of their figures.
    pub(crate) fn expected(&self) -> Vec<Expected> {
        expected(&self.job, |process| self.numbers[process])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pbs_job::with_values;

    #[test]
    fn what_was_saved_comes_back() {
        let job = include_str!("../../../samples/jobs/stages.toml");
        let machine = include_str!("../../../samples/machines/vm.toml");
        let without_lines = |text: &str| job_from_toml(&job_to_toml(&job_from_toml(text).unwrap()));
        let job = with_values(job, &[("cpus", "[0, 3]".into())]);
        let saved = Saved {
            job: without_lines(&job).unwrap(),
            submitted_ns: 5,
            zero_unix_ns: Some(70),
            numbers: vec![41, 42],
            machine: machine_from_toml(&machine_to_toml(&machine_from_toml(machine).unwrap()))
                .unwrap(),
            commit: "history.db-start-7".into(),
            started_ns: 8,
            begun_ns: Some(8),
            ended_ns: Some(9),
            cancelled: Some("cancelled by user 7".into()),
        };
        let text = saved.to_text();
        assert_eq!(Saved::from_text(&text), Some(saved));
        assert_eq!(Saved::from_text(&text.replace("[41,42]", "[41]")), None);
        assert_eq!(Saved::from_text(&text[1..]), None);
    }
}
