// SPDX-License-Identifier: GPL-2.0
//! The commands of the queue: submit a job, and show the runs that there are.

use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use pbs_history::RunId;
use pbs_node::device::rate_insns_per_ms;
use pbs_node::queue::{self, Submitted};
use pbs_text::ms;
use serde_json::json;

use crate::column::column_names;
use crate::complete;
use crate::failure::Failure;
use crate::history_file::HistoryFile;
use crate::jobs::{self, JobFiles};
use crate::listing::ListingOptions;
use crate::output::Output;
use crate::row::RunRow;
use crate::service::{self, Terms};
use crate::socket::Socket;
use crate::source::Source;
use crate::{quantities, watch};

const SUBMIT_HELP: &str = "\
Examples:
  pbsctl submit sort.toml pack.toml    Have them wait
  pbsctl jobs                          What waits, what runs, what has run
  pbsctl run                           Plan and run all that waits

  pbsctl submit sort.toml --afterok 12    Plan it when job 12 has succeeded
  pbsctl submit sort.toml --array 1-10    Ten of them

  pbsctl submit sort.toml --best-effort   Run it behind all that has a promise

Where the service pbsd runs, a job is planned into what runs, or declined if it would
miss its deadline, which counts from now. It runs as you, here, with this environment,
umask and limits.

Without a service each job is planned behind those that wait already and are as
important, and declined likewise. Whether it is admitted is decided again when pbsctl
run runs it, with what has been learnt by then. Programs and files are looked for in
the directory of pbsctl run, so write whole paths where that may be another one.";

const WITHDRAW_HELP: &str = "\
Examples:
  pbsctl jobs            Which runs wait?
  pbsctl withdraw 12     Have one wait no more

A run that has a plan is ended with its pbsctl run.";

#[derive(Args, Debug)]
#[command(after_help = WITHDRAW_HELP)]
pub(crate) struct WithdrawOptions {
    /// The number of a run that waits
    #[arg(add = complete::waiting())]
    run: u64,

    #[command(flatten)]
    pub(crate) history: HistoryFile,
}

#[derive(Args, Debug)]
#[command(after_help = SUBMIT_HELP)]
pub(crate) struct SubmitOptions {
    #[command(flatten)]
    pub(crate) files: JobFiles,

    #[command(flatten)]
    pub(crate) terms: Terms,

    #[command(flatten)]
    pub(crate) socket: Socket,
}

const JOBS_HELP: &str = "\
Examples:
  pbsctl jobs                             What waits and runs, and the last ten
  pbsctl jobs --state running --watch     What runs, again every two seconds
  pbsctl jobs --name 'sort*' --last 3     The last three of some jobs
  pbsctl jobs --sort deadline --columns run,job,deadline,left,reason
  pbsctl jobs --columns help              Which columns there are
  pbsctl --json jobs | jq '.runs[] | select(.state == \"running\")'

A run is held, waiting, planned (admitted, and about to start), running, or over. Of
one that runs, DONE is what the planner knew a moment ago. What is not known of a run
is -. Where the service pbsd runs it is asked, unless --history names another file than
the usual one; it knows no DONE of a list, see pbsctl job, and of those that are over the
last 10,000.

Times are those of the local zone (TZ), with what it is off UTC. TIME and LEFT are
spans: minutes and seconds as 1:05, with hours 1:02:03, with days 4-05:06:07.";

#[derive(Args, Debug)]
#[command(after_help = JOBS_HELP)]
pub(crate) struct JobsOptions {
    #[command(flatten)]
    pub(crate) listing: ListingOptions,

    /// Show them again and again, until Ctrl-C: every so many seconds, or as 250ms
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "2",
          value_parser = quantities::interval)]
    pub(crate) watch: Option<u64>,

    /// Show them so many times and end
    #[arg(long, short = 'n', value_name = "N", requires = "watch",
          value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) count: Option<u64>,

    #[command(flatten)]
    pub(crate) source: Source,
}

pub(crate) fn submit(
    out: Output,
    device: &Path,
    options: &SubmitOptions,
) -> Result<ExitCode, Failure> {
    let JobFiles { jobs, machine, history } = &options.files;
    if options.socket.is_there() {
        return service::submit(out, &options.socket, jobs, &options.terms);
    }
    if options.terms.needs_service() {
        return Err(Failure::Usage(format!(
            "only the service can do that, and there is none at {}; start pbsd, or submit without",
            options.socket.path.display()
        )));
    }
    let submissions = jobs::read(jobs)?.into_iter().map(|submission| {
        let submission = submission.with_programs()?;
        let best_effort = options.terms.best_effort;
        Ok(if best_effort { submission.as_best_effort() } else { submission })
    });
    let submissions: Vec<_> = submissions.collect::<Result<_, pbs_node::Error>>()?;
    let machine = machine.read(|| rate_insns_per_ms(device))?;
    let mut store = queue::open(&history.path)?;
    let waiting = queue::submit(&mut store, machine, submissions)?;
    out.print(&json!({ "submitted": waiting }), || {
        let line = |job: &Submitted| {
            if job.best_effort {
                return format!(
                    "Run {} of job {} waits, as best effort. It would take until {} ms from now.\n",
                    job.run,
                    job.job,
                    ms(job.planned_end_ns)
                );
            }
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

pub(crate) fn jobs(out: Output, options: &JobsOptions) -> Result<ExitCode, Failure> {
    let listing = &options.listing;
    if let Some(help) = listing.help() {
        let columns: Vec<_> = column_names().collect();
        out.print(&json!({ "columns": columns }), || help)?;
        return Ok(ExitCode::SUCCESS);
    }
    let text = |runs: &[RunRow]| match runs {
        [] => "There are no such runs. Submit a job with pbsctl submit.\n".into(),
        runs => listing.table(runs),
    };
    if let Some(interval_ns) = options.watch {
        let clear = watch::clear(out);
        return watch::repeat(interval_ns, options.count, || {
            let runs = listing.choose(options.source.runs(listing.enough())?);
            out.print_view(&json!({ "runs": runs }), clear, || text(&runs))
        });
    }
    let runs = listing.choose(options.source.runs(listing.enough())?);
    out.print(&json!({ "runs": runs }), || text(&runs))?;
    Ok(ExitCode::SUCCESS)
}
