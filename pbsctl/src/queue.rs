// SPDX-License-Identifier: GPL-2.0
//! The commands of the queue: submit a job, and show the runs that there are.

use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use pbs_history::{Options, RunId, Store};
use pbs_node::device::rate_insns_per_ms;
use pbs_node::queue::{self, RunSummary, Submitted};
use pbs_node::Submission;
use pbs_report::{columns, grouped, ms};
use serde_json::json;

use crate::failure::Failure;
use crate::history::{utc, HistoryFile};
use crate::jobs::{self, JobFiles};
use crate::output::Output;

const SUBMIT_HELP: &str = "\
Examples:
  pbsctl submit sort.toml pack.toml    Have them wait
  pbsctl jobs                          What waits, what runs, what has run
  pbsctl run                           Plan and run all that waits

Each job is planned behind those that wait already and are as important, and declined
if it would miss its deadline, which counts from now. Whether it is admitted is
decided again when it is run, with what has been learnt by then.

Programs and files are looked for in the directory of pbsctl run, so write whole
paths where that may be another one.";

const WITHDRAW_HELP: &str = "\
Examples:
  pbsctl jobs            Which runs wait?
  pbsctl withdraw 12     Have one wait no more

A run that has a plan is ended with its pbsctl run.";

#[derive(Args, Debug)]
#[command(after_help = WITHDRAW_HELP)]
pub(crate) struct WithdrawOptions {
    /// The number of a run that waits
    run: u64,

    #[command(flatten)]
    pub(crate) history: HistoryFile,
}

#[derive(Args, Debug)]
#[command(after_help = SUBMIT_HELP)]
pub(crate) struct SubmitOptions {
    #[command(flatten)]
    pub(crate) files: JobFiles,
}

const JOBS_HELP: &str = "\
Examples:
  pbsctl jobs                The last runs
  pbsctl jobs --all          All that are known
  pbsctl --json jobs | jq '.runs[] | select(.state == \"running\")'

A run is submitted, planned (admitted, and about to start), running, or over. Of
one that runs, DONE is what the planner knew a moment ago.";

#[derive(Args, Debug)]
#[command(after_help = JOBS_HELP)]
pub(crate) struct JobsOptions {
    /// Show all runs instead of those that are not over and the last ten
    #[arg(long)]
    pub(crate) all: bool,

    #[command(flatten)]
    pub(crate) history: HistoryFile,
}

pub(crate) fn submit(
    out: Output,
    device: &Path,
    options: &SubmitOptions,
) -> Result<ExitCode, Failure> {
    let JobFiles {
        jobs,
        machine,
        history,
    } = &options.files;
    let submissions = jobs::read(jobs)?.into_iter();
    let submissions = submissions.map(Submission::with_programs);
    let submissions: Vec<_> = submissions.collect::<Result<_, _>>()?;
    let machine = machine.read(|| rate_insns_per_ms(device))?;
    let mut store = queue::open(&history.path)?;
    let waiting = queue::submit(&mut store, machine, submissions)?;
    out.print(&json!({ "submitted": waiting }), || {
        let line = |job: &Submitted| {
            format!(
                "Run {} of job {} waits. It would take until {} ms from now; its deadline is \
                 in {} ms.\n",
                job.run,
                job.job,
                ms(job.planned_end_ns),
                ms(job.deadline_ns)
            )
        };
        let mut text: String = waiting.iter().map(line).collect();
        text.push_str("pbsctl run plans and runs all that waits.\n");
        text
    })?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn withdraw(out: Output, options: &WithdrawOptions) -> Result<ExitCode, Failure> {
    let mut store = queue::open(&options.history.path)?;
    let id = RunId(options.run);
    let run = queue::withdraw(&mut store, id)?;
    out.print(&json!({ "withdrawn": id }), || {
        format!("Run {id} of job {} waits no more.\n", run.job)
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Runs that are over, of those that are shown without being asked for.
const LAST: usize = 10;

pub(crate) fn jobs(out: Output, options: &JobsOptions) -> Result<ExitCode, Failure> {
    let store = Store::open_read_only(&options.history.path, Options::DEFAULT)?;
    let last = (!options.all).then_some(LAST);
    let runs = queue::runs(&store, last)?;
    out.print(&json!({ "runs": runs }), || {
        if runs.is_empty() {
            return "There are no runs. Submit a job with pbsctl submit.\n".into();
        }
        let header = ["RUN", "JOB", "FOR", "STATE", "SUBMITTED", "DONE", "OUTCOME"];
        let mut rows = vec![header.map(String::from).to_vec()];
        rows.extend(runs.iter().map(row));
        columns(&rows, 5)
    })?;
    Ok(ExitCode::SUCCESS)
}

fn row(run: &RunSummary) -> Vec<String> {
    vec![
        run.run.to_string(),
        run.job.clone(),
        run.kind.to_string(),
        run.state.into(),
        utc(run.submitted_unix_ns),
        match run.tasks {
            0 => "-".into(),
            tasks => format!(
                "{}/{}",
                grouped(run.tasks_ended as u64),
                grouped(tasks as u64)
            ),
        },
        run.outcome
            .map_or_else(|| "-".into(), |outcome| outcome.to_string()),
    ]
}
