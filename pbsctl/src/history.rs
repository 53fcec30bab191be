// SPDX-License-Identifier: GPL-2.0
//! The command that prints figures of earlier runs, and the prediction for the next one.

use std::collections::HashMap;
use std::process::ExitCode;

use clap::Args;
use pbs_history::{
    to_csv, Error, JobHistory, JobSummary, Options, Prediction, RatePrediction, RunFigures, Store,
    TaskKey, User,
};
use pbs_node::queue::{self, RunSummary};
use pbs_text::{bytes, columns, grouped};
use serde::Serialize;
use serde_json::json;

use crate::complete;
use crate::failure::Failure;
use crate::history_file::HistoryFile;
use crate::output::{counted, share, Output};
use crate::times::local;

const HISTORY_HELP: &str = "\
Examples:
  pbsctl job history                      List the jobs with known runs
  pbsctl job history sort                 Show the runs of a job, and the prediction
  pbsctl job history sort --csv           Print all figures of all its runs
  pbsctl --json job history sort | jq '.tasks[] | {task, insns, high_insns}'
  pbsctl job history --history old.db     Read another file

PLAN ERROR is the sum of the deviations of the tasks of a run, up or down, in percent of their
planned lengths. It falls as runs are recorded.

INSNS PER MS is the predicted number of instructions that a process retires in a millisecond on
a CPU. Its time is planned with it. Programs that pbsctl has attached report it when they end.

INSNS is the predicted number of instructions of a task, with which its next run is planned.
Nine of ten runs are within the following two bounds. PEAK MEMORY is the largest peak so far.
Predictions use runs of the same command: a process whose command was changed starts again.";

#[derive(Args, Debug)]
#[command(after_help = HISTORY_HELP)]
pub(crate) struct HistoryOptions {
    /// Name of the job; without it, all jobs are listed
    #[arg(add = complete::known_jobs())]
    pub(crate) job: Option<String>,

    /// Print a row for each task of each run, as CSV
    #[arg(long)]
    pub(crate) csv: bool,

    #[command(flatten)]
    pub(crate) history: HistoryFile,
}

pub(crate) fn history(out: Output, options: &HistoryOptions) -> Result<ExitCode, Failure> {
    if options.csv && out.json {
        return Err(Failure::Usage(
            "--csv and --json select two formats; write one of them".into(),
        ));
    }
    let store = Store::open_read_only(&options.history.path(), Options::DEFAULT)?;
    let jobs = store.jobs()?;
    match &options.job {
        Some(job) if jobs.iter().all(|known| known.job != *job) => {
            return Err(Failure::Failed(unknown(job, &jobs)));
        }
        Some(job) if options.csv => {
            let figures = store.figures(job)?;
            out.print(&(), || to_csv(&figures))?;
        }
        Some(job) => {
            let view = JobView::new(job, &store)?;
            out.print(&view, || view.text())?;
        }
        None if options.csv => {
            let figures = jobs.iter().map(|job| store.figures(&job.job));
            let figures: Vec<_> = figures.collect::<Result<_, _>>()?;
            out.print(&(), || to_csv(&figures.concat()))?;
        }
        None => out.print(&json!({ "jobs": jobs }), || jobs_text(&jobs))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn unknown(job: &str, jobs: &[JobSummary]) -> String {
    match jobs {
        [] => format!("no run of \"{job}\" is known, nor of any other job; run the job first"),
        _ => format!("no run of \"{job}\" is known; pbsctl job history lists the known jobs"),
    }
}

fn jobs_text(jobs: &[JobSummary]) -> String {
    if jobs.is_empty() {
        return "No run of any job is known.\n".into();
    }
    let header = ["JOB", "LAST SUBMITTED", "RUNS", "COMPLETE", "OPEN"];
    let mut rows = vec![header.map(String::from).to_vec()];
    for job in jobs {
        rows.push(vec![
            job.job.clone(),
            local(job.last_submitted_unix_ns),
            grouped(job.runs),
            grouped(job.complete),
            grouped(job.open),
        ]);
    }
    columns(&rows, 2)
}

/// A job with all that is known of it.
#[derive(Serialize)]
struct JobView<'a> {
    job: &'a str,
    runs: Vec<RunView>,
    tasks: Vec<TaskView>,
    rates: Vec<RateView>,
}

/// A process, as the last runs of it predict.
#[derive(Serialize)]
struct RateView {
    process: u32,
    process_name: Option<String>,
    #[serde(flatten)]
    rate: RatePrediction,
}

#[derive(Serialize)]
struct RunView {
    #[serde(flatten)]
    figures: RunFigures,
    plan_error_permille: Option<u64>,
    /// Whether it did all that it was to do before its deadline.
    kept: Option<bool>,
    /// Reason for which it did not.
    reason: Option<String>,
    exit_code: Option<i32>,
    signal: Option<String>,
}

/// A task, as the last runs of it predict.
#[derive(Serialize)]
struct TaskView {
    #[serde(flatten)]
    key: TaskKey,
    process_name: Option<String>,
    task_name: Option<String>,
    #[serde(flatten)]
    prediction: Prediction,
    last_planned_insns: Option<u64>,
    last_retired_insns: Option<u64>,
    /// Runs in which its process executed something else.
    runs_of_others: usize,
}

impl<'a> JobView<'a> {
    fn new(job: &'a str, store: &Store) -> Result<Self, Error> {
        let figures = store.figures(job)?;
        let mut history = JobHistory::default();
        for run in &figures {
            history.add(run.run.id, run.run.kind, &run.processes);
        }
        // What each process executed in the last run that had it.
        let processes = figures.iter().flat_map(|run| &run.processes);
        let names = processes.clone().map(|p| (p.process, p.name.clone()));
        let names: HashMap<_, _> = names.collect();
        let current: HashMap<_, _> = processes.map(|p| (p.process, p.fingerprint)).collect();
        let rates = current.iter().filter_map(|(&process, &fingerprint)| {
            Some(RateView {
                process,
                process_name: names.get(&process).cloned().flatten(),
                rate: history.rate(process, fingerprint)?,
            })
        });
        let mut rates: Vec<_> = rates.collect();
        rates.sort_by_key(|view| view.process);
        let tasks =
            history.tasks().filter(|key| current.get(&key.process) == Some(&key.fingerprint));
        let tasks = tasks.filter_map(|key| TaskView::new(&history, key)).collect();
        let runs = figures.into_iter().map(|figures| {
            let RunSummary { kept, reason, exit_code, signal, .. } =
                queue::recorded(store, &figures.run)?;
            let plan_error_permille = history.error_permille(figures.run.id);
            Ok(RunView { figures, plan_error_permille, kept, reason, exit_code, signal })
        });
        let runs = runs.collect::<Result<_, Error>>()?;
        Ok(Self { job, rates, tasks, runs })
    }

    fn text(&self) -> String {
        if self.runs.is_empty() {
            return "No run of this job has ended yet.\n".into();
        }
        let header =
            ["RUN", "SUBMITTED", "FOR", "OUTCOME", "KEPT", "REASON", "TASKS", "PLAN ERROR"];
        let mut rows = vec![header.map(String::from).to_vec()];
        for view in &self.runs {
            let run = &view.figures.run;
            let processes = view.figures.processes.iter();
            rows.push(vec![
                run.id.to_string(),
                local(run.submitted_unix_ns),
                run.kind.to_string(),
                run.outcome.map_or(String::new(), |outcome| outcome.to_string()),
                view.kept.map_or("-", |kept| if kept { "yes" } else { "NO" }).into(),
                view.reason.clone().unwrap_or_else(|| "-".into()),
                grouped(processes.map(|p| p.tasks.len() as u64).sum::<u64>()),
                view.plan_error_permille.map_or("none ended".into(), share),
            ]);
        }
        let mut out = columns(&rows, 6);
        out.push('\n');
        let header = [
            "PROCESS",
            "TASK",
            "RUNS",
            "INSNS",
            "FROM",
            "TO",
            "LAST PLANNED",
            "LAST RETIRED",
            "PEAK MEMORY",
        ];
        let mut rows = vec![header.map(String::from).to_vec()];
        for task in &self.tasks {
            rows.push(task.row());
        }
        out.push_str(&columns(&rows, 2));
        if !self.rates.is_empty() {
            let header = ["PROCESS", "RUNS", "INSNS PER MS", "FROM", "TO"];
            let mut rows = vec![header.map(String::from).to_vec()];
            rows.extend(self.rates.iter().map(RateView::row));
            out.push('\n');
            out.push_str(&columns(&rows, 1));
        }
        let mut told = Vec::new();
        for task in self.tasks.iter().filter(|task| task.runs_of_others > 0) {
            if !told.contains(&task.key.process) {
                told.push(task.key.process);
                out.push_str(&format!(
                    "Process {} executed another command in {}, which the prediction leaves out.\n",
                    task.process(),
                    counted(task.runs_of_others as u64, "run", "runs")
                ));
            }
        }
        out
    }
}

impl RateView {
    fn row(&self) -> Vec<String> {
        let number = self.process.to_string();
        vec![
            self.process_name.clone().unwrap_or(number),
            grouped(self.rate.runs as u64),
            grouped(self.rate.rate_insns_per_ms),
            grouped(self.rate.low_insns_per_ms),
            grouped(self.rate.high_insns_per_ms),
        ]
    }
}

impl TaskView {
    /// `None` where it never ended.
    fn new(history: &JobHistory, key: TaskKey) -> Option<Self> {
        let prediction = history.predict(key, User::default())?;
        let (process_name, task_name) = history.names(key);
        let last = history.last(key);
        Some(Self {
            key,
            process_name: process_name.map(Into::into),
            task_name: task_name.map(Into::into),
            prediction,
            last_planned_insns: last.map(|(planned, _)| planned),
            last_retired_insns: last.map(|(_, retired)| retired),
            runs_of_others: history.runs_of_others(key.process, key.fingerprint),
        })
    }

    fn process(&self) -> String {
        let number = self.key.process.to_string();
        self.process_name.clone().unwrap_or(number)
    }

    fn row(&self) -> Vec<String> {
        let number = self.key.task.to_string();
        let insns = |insns: Option<u64>| insns.map_or(String::new(), grouped);
        vec![
            self.process(),
            match &self.task_name {
                Some(name) => format!("{number} {name}"),
                None => number,
            },
            grouped(self.prediction.runs as u64),
            grouped(self.prediction.insns),
            grouped(self.prediction.low_insns),
            grouped(self.prediction.high_insns),
            insns(self.last_planned_insns),
            insns(self.last_retired_insns),
            self.prediction.peak_memory_bytes.map_or("not seen".into(), bytes),
        ]
    }
}
