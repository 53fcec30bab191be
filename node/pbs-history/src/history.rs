// SPDX-License-Identifier: GPL-2.0
//! All that is known of the tasks of a job, and what it predicts.

use std::collections::BTreeMap;

use pbs_random::estimate::{estimate, Config};
use serde::Serialize;

use crate::usage::all_programs;
use crate::{Fingerprint, Kind, Outcome, ProcessRun, RunId, RunUsage};

/// A task of a job, by what it executes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct TaskKey {
    /// The number of its process in the job.
    pub process: u32,
    /// Fingerprint of the program that the process executes.
    pub fingerprint: Fingerprint,
    /// Number of the task in the process.
    pub task: u32,
}

/// Figures that the user gives for a task (Glaß 2024, 4.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// Instructions that the task retires.
    pub insns: Option<u64>,
    /// Largest resident size.
    pub peak_memory_bytes: Option<u64>,
}

/// Source of a prediction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The user's figures alone: the task has not ended in a run yet.
    User,
    /// Runs that were made to measure it.
    Profile,
    /// Runs, not all of them made to measure it.
    History,
}

impl Source {
    /// The name in tables and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Profile => "profile",
            Self::History => "history",
        }
    }
}

/// Predicted needs of the next run of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Prediction {
    /// Instructions that it will retire; the value to plan with.
    pub insns: u64,
    /// One run of twenty retires less.
    pub low_insns: u64,
    /// One run of twenty retires more.
    pub high_insns: u64,
    /// Largest resident size: the observed maximum (Glaß 2024, 4.4), or the user's figure if none
    /// was observed. `None`: neither is known.
    pub peak_memory_bytes: Option<u64>,
    /// Probability that the next run needs more memory than any before, in thousandths, if no run
    /// is like another: one of the runs including the next is the largest. 1000: no run has
    /// measured it.
    pub more_memory_permille: u64,
    /// Runs in which it ended, from which the instructions are.
    pub runs: usize,
    /// Source of the predicted instructions.
    pub source: Source,
}

/// Predicted rate of a process, in instructions per millisecond in which it runs, on the machine of
/// its runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RatePrediction {
    /// To plan with.
    pub rate_insns_per_ms: u64,
    /// One run of twenty is slower.
    pub low_insns_per_ms: u64,
    /// One run of twenty is faster.
    pub high_insns_per_ms: u64,
    /// Runs that have come to their end and were measured.
    pub runs: usize,
}

/// Figures of a task in a run. A planner holds a million of them.
#[derive(Clone, Copy, Debug)]
struct Sample {
    retired_insns: u64,
    peak_memory_bytes: u64,
    kind: Kind,
    outcome: Outcome,
}

/// Everything that the history knows about a task.
#[derive(Clone, Debug, Default)]
struct TaskRecord {
    process_name: Option<String>,
    name: Option<String>,
    /// The oldest first.
    samples: Vec<Sample>,
    /// Planned length and retired instructions of the last run in which it ended.
    last: Option<(u64, u64)>,
}

/// Deviation of a run from its plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PlanError {
    /// Planned instructions of the tasks that ended.
    pub planned_insns: u64,
    /// Sum of their deviations, up or down.
    pub off_insns: u64,
}

impl PlanError {
    /// Returns the deviation in thousandths of the plan; `None`: no planned task has ended.
    pub fn permille(self) -> Option<u64> {
        let off = u128::from(self.off_insns) * 1000 + u128::from(self.planned_insns) / 2;
        let permille = off.checked_div(self.planned_insns.into())?;
        Some(u64::try_from(permille).unwrap_or(u64::MAX))
    }
}

/// The runs of a job, to predict from.
#[derive(Clone, Debug, Default)]
pub struct JobHistory {
    config: Config,
    tasks: BTreeMap<TaskKey, TaskRecord>,
    /// The runs in which a process executed something.
    executed: BTreeMap<(u32, Fingerprint), usize>,
    /// Rates of a process in the runs that have measured it, the oldest first.
    rates: BTreeMap<(u32, Fingerprint), Vec<u64>>,
    errors: BTreeMap<RunId, PlanError>,
    /// Greatest memory of runs whose programs have started others, by all programs of the run.
    group_peaks: BTreeMap<Fingerprint, u64>,
}

impl JobHistory {
    /// Creates a history without runs.
    pub fn new(config: Config) -> Self {
        Self { config, ..Self::default() }
    }

    /// Adds a run, which must be younger than all before it.
    pub fn add(&mut self, run: RunId, kind: Kind, processes: &[ProcessRun]) {
        let error = self.errors.entry(run).or_default();
        for process in processes {
            let (number, fingerprint) = (process.process, process.fingerprint);
            *self.executed.entry((number, fingerprint)).or_default() += 1;
            if let Some(rate) = process.rate_insns_per_ms() {
                let rates = self.rates.entry((number, fingerprint));
                rates.or_default().push(rate);
            }
            for task in &process.tasks {
                let key = TaskKey { process: number, fingerprint, task: task.task };
                let known = self.tasks.entry(key).or_default();
                known.process_name.clone_from(&process.name);
                known.name.clone_from(&task.name);
                known.samples.push(Sample {
                    retired_insns: task.retired_insns,
                    peak_memory_bytes: task.peak_memory_bytes,
                    kind,
                    outcome: task.outcome,
                });
                if task.outcome == Outcome::Complete {
                    let (planned, retired) = (task.planned_insns, task.retired_insns);
                    error.planned_insns = error.planned_insns.saturating_add(planned);
                    let off = retired.abs_diff(planned);
                    error.off_insns = error.off_insns.saturating_add(off);
                    known.last = Some((planned, retired));
                }
            }
        }
    }

    /// Adds the resources of a run as a whole; `processes` are those of the run.
    pub fn add_usage(&mut self, processes: &[ProcessRun], usage: &RunUsage) {
        if let Some(bytes) = usage.needed_bytes() {
            let programs = processes.iter().map(|run| (run.process, run.fingerprint));
            let known = self.group_peaks.entry(all_programs(programs)).or_default();
            *known = bytes.max(*known);
        }
    }

    /// The greatest memory of all processes together in runs of the same programs that have started
    /// other processes, with these. `None`: no run has, or their memory was not counted.
    pub fn group_memory_bytes(
        &self,
        processes: impl Iterator<Item = (u32, Fingerprint)>,
    ) -> Option<u64> {
        if self.group_peaks.is_empty() {
            return None;
        }
        self.group_peaks.get(&all_programs(processes)).copied()
    }

    /// Predicts the needs of the next run of a task; `None` if neither a run nor the user has given
    /// its instructions.
    ///
    /// Instructions are predicted from the runs in which the task ended, memory from all runs:
    /// memory that was resident before the end was needed as well.
    pub fn predict(&self, key: TaskKey, user: User) -> Option<Prediction> {
        let known = self.tasks.get(&key);
        let samples = known.map_or(&[][..], |known| known.samples.as_slice());
        let ended = samples.iter().filter(|sample| sample.outcome == Outcome::Complete);
        let retired: Vec<_> = ended.clone().map(|sample| sample.retired_insns).collect();
        let of_runs = estimate(&self.config, user.insns, &retired)?;
        let peaks = samples.iter().map(|sample| sample.peak_memory_bytes);
        let peaks = peaks.filter(|&bytes| bytes > 0);
        Some(Prediction {
            insns: of_runs.centre,
            low_insns: of_runs.low,
            high_insns: of_runs.high,
            // Who did not get to the end has not shown all that it needs.
            peak_memory_bytes: if retired.is_empty() {
                peaks.clone().max().max(user.peak_memory_bytes)
            } else {
                peaks.clone().max().or(user.peak_memory_bytes)
            },
            more_memory_permille: 1000 / (peaks.count() as u64 + 1),
            runs: retired.len(),
            source: if retired.is_empty() {
                Source::User
            } else if ended.clone().all(|sample| sample.kind == Kind::Profile) {
                Source::Profile
            } else {
                Source::History
            },
        })
    }

    /// The rate that a process will have; `None` if no run says it. It is
    /// estimated as the length of a task is.
    pub fn rate(&self, process: u32, fingerprint: Fingerprint) -> Option<RatePrediction> {
        let rates = self.rates.get(&(process, fingerprint))?;
        let rate = estimate(&self.config, None, rates)?;
        let possible = |insns: u64| insns.clamp(1, u32::MAX.into());
        Some(RatePrediction {
            rate_insns_per_ms: possible(rate.centre),
            low_insns_per_ms: possible(rate.low),
            high_insns_per_ms: possible(rate.high),
            runs: rates.len(),
        })
    }

    /// The largest resident size of a process that was observed (Glaß 2024,
    /// 4.4).
    pub fn process_memory_bytes(&self, process: u32, fingerprint: Fingerprint) -> Option<u64> {
        let first = TaskKey { process, fingerprint, task: 0 };
        let last = TaskKey { task: u32::MAX, ..first };
        let known = self.tasks.range(first..=last);
        let samples = known.flat_map(|(_, known)| &known.samples);
        let peaks = samples.map(|sample| sample.peak_memory_bytes);
        peaks.filter(|&bytes| bytes > 0).max()
    }

    /// Runs in which the process executed something else, of which a
    /// prediction makes no use.
    pub fn runs_of_others(&self, process: u32, fingerprint: Fingerprint) -> usize {
        let (least, most) = (Fingerprint(0), Fingerprint(u64::MAX));
        self.executed
            .range((process, least)..=(process, most))
            .filter(|(&(_, executed), _)| executed != fingerprint)
            .map(|(_, runs)| runs)
            .sum()
    }

    /// The tasks of which something is known, ascending.
    pub fn tasks(&self) -> impl Iterator<Item = TaskKey> + '_ {
        self.tasks.keys().copied()
    }

    /// Returns the readable names of the process and the task, as in the last run.
    pub fn names(&self, key: TaskKey) -> (Option<&str>, Option<&str>) {
        match self.tasks.get(&key) {
            Some(known) => (known.process_name.as_deref(), known.name.as_deref()),
            None => (None, None),
        }
    }

    /// Returns the planned length and the retired instructions of the last run in which the task
    /// ended.
    pub fn last(&self, key: TaskKey) -> Option<(u64, u64)> {
        self.tasks.get(&key)?.last
    }

    /// Returns the deviation of a run from its plan; `None`: it is not known, or no task ended.
    pub fn error_permille(&self, run: RunId) -> Option<u64> {
        self.errors.get(&run)?.permille()
    }

    /// Returns the deviation of each run from its plan, the oldest first.
    pub fn errors(&self) -> impl Iterator<Item = (RunId, PlanError)> + '_ {
        self.errors.iter().map(|(&run, &error)| (run, error))
    }

    /// Returns the number of runs of tasks in it: the work of reading it.
    pub fn samples(&self) -> u64 {
        self.tasks.values().map(|known| known.samples.len() as u64).sum()
    }

    /// Returns the number of runs.
    pub fn runs(&self) -> usize {
        self.errors.len()
    }
}
