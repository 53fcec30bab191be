// SPDX-License-Identifier: GPL-2.0
//! What became of the jobs, and what was learnt from them.

use pbs_history::{JobHistory, Kind, Outcome, RunFigures, Source};
use pbs_report::{columns, grouped};
use serde::Serialize;

use super::jobs::ActiveJob;
use crate::jobs;
use crate::output::{counted, ms, share};

/// What became of a job.
#[derive(Debug, Serialize)]
pub(super) struct JobOutcome {
    name: String,
    /// Its number in the history, if it is there.
    run: Option<u64>,
    kind: Kind,
    /// How it was planned first; `None`: by another pbsctl.
    strategy: Option<String>,
    /// From when it was submitted.
    planned_end_ns: Option<u64>,
    /// `None`: it was to be measured, and had none.
    deadline_ns: Option<u64>,
    /// `None`: not all of it has ended.
    ended_ns: Option<u64>,
    /// It has ended, and before its deadline if it had one.
    pub(super) kept: bool,
    /// Prediction failures that the node has signalled.
    signals: u64,
    /// Plans that were made anew for it.
    replans: u64,
    /// How it ended; `None`: it could not be recorded.
    outcome: Option<Outcome>,
    /// By how much its tasks were off what was planned, of that.
    plan_error_permille: Option<u64>,
    tasks: Vec<TaskOutcome>,
}

/// A task: what was predicted, what it retired, and what is predicted now.
#[derive(Debug, Serialize)]
struct TaskOutcome {
    process: String,
    task: String,
    planned_insns: u64,
    /// From how many runs that came; 0: it is the user's figure.
    planned_from_runs: Option<usize>,
    low_insns: Option<u64>,
    high_insns: Option<u64>,
    source: Option<Source>,
    retired_insns: u64,
    peak_memory_bytes: u64,
    outcome: Outcome,
    /// What is planned for it the next time.
    next_insns: Option<u64>,
}

/// The outcome of a run whose figures are recorded, `history` having them;
/// `completed`: all its processes have ended all their tasks.
pub(super) fn of(
    active: &ActiveJob,
    kind: Kind,
    figures: Option<&RunFigures>,
    history: &JobHistory,
    completed: bool,
) -> JobOutcome {
    let since = |ns: u64| ns.saturating_sub(active.submitted_ns);
    let outcome = figures.and_then(|figures| figures.run.outcome);
    // What the events of its ends would have told may be lost.
    let whole = outcome.is_none_or(|outcome| match outcome {
        Outcome::Complete => true,
        Outcome::Unknown => completed,
        _ => false,
    });
    let ended_ns = active.ended_ns.filter(|_| whole);
    let deadline_ns = Some(active.job.deadline_ns).filter(|_| kind == Kind::Plan);
    JobOutcome {
        name: active.job.name.clone(),
        run: active.id.map(|id| id.0),
        kind,
        strategy: active
            .planned
            .as_ref()
            .map(|planned| planned.strategy.to_string()),
        planned_end_ns: active.planned.as_ref().map(|planned| since(planned.end_ns)),
        deadline_ns: deadline_ns.map(since),
        ended_ns: ended_ns.map(since),
        kept: ended_ns.is_some_and(|ns| deadline_ns.is_none_or(|deadline_ns| ns <= deadline_ns)),
        signals: active.signals,
        replans: active.replans,
        outcome,
        plan_error_permille: active.id.and_then(|id| history.error_permille(id)),
        tasks: tasks(active, figures, history),
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
    let (_, next) = jobs::predict(&active.job, history);
    let job = &active.job;
    let mut tasks = Vec::new();
    for process in &figures.processes {
        for task in &process.tasks {
            let of = |forecast: &&jobs::Forecast| {
                let known = &job.tasks[forecast.task];
                known.id == task.task && job.processes[known.process].id == process.process
            };
            let planned = active.forecasts.iter().find(of).map(|f| f.prediction);
            let next = next.iter().find(of).map(|f| f.prediction);
            let number = task.task.to_string();
            tasks.push(TaskOutcome {
                process: process
                    .name
                    .clone()
                    .unwrap_or_else(|| process.process.to_string()),
                task: task
                    .name
                    .as_ref()
                    .map_or(number.clone(), |name| format!("{number} {name}")),
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

/// The jobs as a table, and below it what was learnt.
pub(super) fn text(jobs: &[JobOutcome]) -> String {
    let header = [
        "JOB",
        "RUN",
        "STRATEGY",
        "PLANNED ms",
        "ENDED ms",
        "DEADLINE ms",
        "KEPT",
        "SIGNALS",
        "REPLANS",
        "PLAN ERROR",
    ];
    let mut rows = vec![header.map(String::from).to_vec()];
    let dash = || "-".to_string();
    for job in jobs {
        rows.push(vec![
            job.name.clone(),
            job.run.map_or_else(dash, |run| run.to_string()),
            job.strategy.clone().unwrap_or_else(dash),
            job.planned_end_ns.map_or_else(dash, ms),
            job.ended_ns.map_or_else(dash, ms),
            job.deadline_ns.map_or_else(dash, ms),
            match (job.kept, job.deadline_ns) {
                (true, None) => dash(),
                (true, Some(_)) => "yes".into(),
                (false, _) => "NO".into(),
            },
            grouped(job.signals),
            grouped(job.replans),
            job.plan_error_permille.map_or_else(dash, share),
        ]);
    }
    let mut out = format!("\n{}", columns(&rows, 3));
    for job in jobs.iter().filter(|job| !job.tasks.is_empty()) {
        out.push_str(&format!("\nWhat job {} has taught:\n", job.name));
        let header = [
            "PROCESS",
            "TASK",
            "PLANNED",
            "FROM",
            "RETIRED",
            "OFF",
            "NEXT TIME",
        ];
        let mut rows = vec![header.map(String::from).to_vec()];
        for task in &job.tasks {
            rows.push(task.row());
        }
        out.push_str(&columns(&rows, 2));
    }
    out
}

impl TaskOutcome {
    fn row(&self) -> Vec<String> {
        let ended = self.outcome == Outcome::Complete;
        let off = self.retired_insns.abs_diff(self.planned_insns);
        let planned = u128::from(self.planned_insns);
        let permille = (u128::from(off) * 1000 + planned / 2).checked_div(planned);
        let sign = match self.retired_insns.cmp(&self.planned_insns) {
            std::cmp::Ordering::Less => "−",
            std::cmp::Ordering::Equal => "",
            std::cmp::Ordering::Greater => "+",
        };
        vec![
            self.process.clone(),
            self.task.clone(),
            grouped(self.planned_insns),
            match self.planned_from_runs {
                None => "-".into(),
                Some(0) => "user".into(),
                Some(runs) => counted(runs as u64, "run", "runs"),
            },
            grouped(self.retired_insns),
            match permille {
                Some(permille) if ended => format!("{sign}{}", share(permille as u64)),
                _ => self.outcome.to_string(),
            },
            self.next_insns.map_or_else(|| "-".into(), grouped),
        ]
    }
}
