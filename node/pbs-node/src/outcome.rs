// SPDX-License-Identifier: GPL-2.0
//! Outcomes of jobs, and the predictions that follow from them.

use pbs_history::{JobHistory, Kind, Outcome, RunFigures, RunUsage, Source};
use pbs_report::Exit;
use serde::Serialize;

use crate::active::ActiveJob;
use crate::predict::{predict, Forecast};
use crate::result::{in_words, RunResult};

/// Outcome of a job.
#[derive(Debug, Serialize)]
pub struct JobOutcome {
    /// Name of the job.
    pub name: String,
    /// Number of the run in the history, if it is recorded.
    pub run: Option<u64>,
    /// Purpose of the run.
    pub kind: Kind,
    /// Strategy of the first plan; `None`: another planner made it.
    pub strategy: Option<String>,
    /// Time of submission, on the clock of the events.
    pub submitted_ns: u64,
    /// From when it was submitted.
    pub planned_end_ns: Option<u64>,
    /// Whether the run was best effort: its deadline was not promised.
    pub best_effort: bool,
    /// `None`: it was to be measured, and had none.
    pub deadline_ns: Option<u64>,
    /// `None`: not all of it has ended.
    pub ended_ns: Option<u64>,
    /// Whether the job did all that it was to do, before its deadline if it had one.
    pub kept: bool,
    /// Reason for which it did not.
    pub reason: Option<String>,
    /// Prediction failures that the node has signalled.
    pub signals: u64,
    /// Plans that were made anew for it.
    pub replans: u64,
    /// Kind of its end; `None`: it could not be recorded.
    pub outcome: Option<Outcome>,
    /// Deviation of its tasks' real lengths, relative to the planned lengths.
    pub plan_error_permille: Option<u64>,
    /// All of its tasks that were planned.
    pub tasks: Vec<TaskOutcome>,
    /// Exits of the programs that this node has started.
    #[serde(skip)]
    pub exits: Vec<Exit>,
    /// Resources of the job as a whole. Only jobs of the service have control groups.
    #[serde(skip)]
    pub usage: RunUsage,
}

impl JobOutcome {
    /// Returns the end of the job in words: its outcome, and the reason if it has one.
    pub fn in_words(&self) -> String {
        in_words(self.outcome.unwrap_or(Outcome::Unknown), self.reason.as_deref())
    }
}

/// A task: what was predicted, what it retired, and what is predicted now.
#[derive(Debug, Serialize)]
pub struct TaskOutcome {
    /// Process of the task: the name, or the number.
    pub process: String,
    /// Number of the task, and its name if it has one.
    pub task: String,
    /// Planned length.
    pub planned_insns: u64,
    /// From how many runs that came; 0: it is the user's figure.
    pub planned_from_runs: Option<usize>,
    /// Nine of ten runs were expected to be at or above.
    pub low_insns: Option<u64>,
    /// And at or below.
    pub high_insns: Option<u64>,
    /// Source of the planned length.
    pub source: Option<Source>,
    /// Instructions that the task retired.
    pub retired_insns: u64,
    /// The most memory that it had.
    pub peak_memory_bytes: u64,
    /// Kind of its end.
    pub outcome: Outcome,
    /// Planned length for the next run.
    pub next_insns: Option<u64>,
}

/// The outcome of a run whose figures are recorded, `history` having them.
pub(crate) fn of(
    active: &ActiveJob,
    figures: Option<&RunFigures>,
    history: &JobHistory,
    result: RunResult,
    (exits, usage): (Vec<Exit>, RunUsage),
) -> JobOutcome {
    let since = |ns: u64| ns.saturating_sub(active.submitted_ns);
    let outcome = figures.and_then(|figures| figures.run.outcome);
    // What the events of its ends would have told may be lost.
    let whole = outcome.is_none_or(|outcome| match outcome {
        Outcome::Complete => true,
        Outcome::Unknown => result.completed,
        _ => false,
    });
    let ended_ns = active.ended_ns().filter(|_| whole);
    let deadline_ns = active.deadline_ns();
    JobOutcome {
        name: active.job.name.clone(),
        run: active.id.map(|id| id.0),
        submitted_ns: active.submitted_ns,
        kind: active.kind,
        strategy: active.planned.as_ref().map(|planned| planned.strategy.to_string()),
        planned_end_ns: active.planned.as_ref().map(|planned| since(planned.end_ns)),
        best_effort: active.job.best_effort,
        deadline_ns: deadline_ns.map(since),
        ended_ns: ended_ns.map(since),
        kept: result.kept,
        reason: result.why,
        signals: active.signals,
        replans: active.replans,
        outcome,
        plan_error_permille: active.id.and_then(|id| history.error_permille(id)),
        tasks: tasks(active, figures, history),
        exits,
        usage,
    }
}

fn tasks(
    active: &ActiveJob,
    figures: Option<&RunFigures>,
    history: &JobHistory,
) -> Vec<TaskOutcome> {
    let Some(figures) = figures else {
        return Vec::new();
    };
    let (_, next) = predict(&active.job, history);
    let job = &active.job;
    let mut tasks = Vec::new();
    for process in &figures.processes {
        for task in &process.tasks {
            let of = |forecast: &&Forecast| {
                let known = &job.tasks[forecast.task];
                known.id == task.task && job.processes[known.process].id == process.process
            };
            let planned = active.forecasts.iter().find(of).map(|f| f.prediction);
            let next = next.iter().find(of).map(|f| f.prediction);
            let number = task.task.to_string();
            tasks.push(TaskOutcome {
                process: process.name.clone().unwrap_or_else(|| process.process.to_string()),
                task: task.name.as_ref().map_or(number.clone(), |name| format!("{number} {name}")),
                planned_insns: task.planned_insns,
                planned_from_runs: planned.map(|planned| planned.runs),
                low_insns: planned.map(|planned| planned.low_insns),
                high_insns: planned.map(|planned| planned.high_insns),
                source: planned.map(|planned| planned.source),
                retired_insns: task.retired_insns,
                peak_memory_bytes: task.peak_memory_bytes,
                outcome: task.outcome,
                next_insns: next.map(|next| next.insns),
            });
        }
    }
    tasks
}
