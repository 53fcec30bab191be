// SPDX-License-Identifier: GPL-2.0
//! The commands of the queue: submit a job, and show the runs that there are.

use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use pbs_history::RunId;
use pbs_node::device::rate_insns_per_ms;
use pbs_node::queue::{self, Submitted};
use pbs_text::span;
use serde_json::json;

use crate::admission::{report_built_in, AdmissionOptions};
use crate::column::column_names;
use crate::complete;
use crate::failure::Failure;
use crate::hints::report_hints;
use crate::history_file::{is_root, HistoryFile};
use crate::jobs::{self, JobFiles};
use crate::listing::ListingOptions;
use crate::output::{report, Output};
use crate::row::RunRow;
use crate::service;
use crate::socket::Socket;
use crate::source::Source;
use crate::terms::Terms;
use crate::{quantities, watch};

const SUBMIT_HELP: &str = "\
Examples:
  pbsctl job submit sort.toml pack.toml    Submit two jobs
  pbsctl job list                          List waiting, running and ended jobs
  pbsctl run                               Plan and run all jobs that wait

  pbsctl job submit sort.toml --afterok 12    Plan it when job 12 has succeeded
  pbsctl job submit sort.toml --array 1-10    Submit it ten times

  pbsctl job submit sort.toml --admission \"command ./admit\"    Without a service: let a command decide

  pbsctl job submit sort.toml --best-effort   Run it behind all jobs with a promise
  pbsctl job submit sort.toml --deadline 2026-11-27T08:00    Choose another deadline

If the service pbsd runs, a job is added to the running plan, or declined if it would miss its
deadline, which counts from now. It runs as you, in this directory, with this environment, umask
and limits.

Without the service, each job is queued behind waiting jobs of the same or a higher priority, and
declined in the same way. Nothing runs it until root calls pbsctl run, which plans it again, with
what was learnt by then. The queue of a user other than root is a file of that user's own. Programs and files are looked for in the directory of pbsctl run; use absolute paths if
that directory may differ.";

const WITHDRAW_HELP: &str = "\
Examples:
  pbsctl job list            List the waiting runs
  pbsctl job withdraw 12     Remove one from the queue

A planned run ends with its pbsctl run.";

#[derive(Args, Debug)]
#[command(after_help = WITHDRAW_HELP)]
pub(crate) struct WithdrawOptions {
    /// Number of a waiting run
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
    admission: AdmissionOptions,

    #[command(flatten)]
    pub(crate) socket: Socket,
}

const JOBS_HELP: &str = "\
Examples:
  pbsctl job list                             List waiting and running jobs, and the last ten
  pbsctl job list --state running --watch     List running jobs again every two seconds
  pbsctl job list --name 'sort*' --last 3     List the last three runs of some jobs
  pbsctl job list --sort deadline --columns run,job,deadline,left,reason
  pbsctl job list --columns help              List the columns
  pbsctl --json job list | jq '.runs[] | select(.state == \"running\")'

A run is held, waiting, planned (admitted, and about to start), running, or over. DONE of a
running job is what the planner knew a moment ago. Unknown values are shown as -.

The list comes from the service pbsd if it runs, unless --history names another file. The service
lists the last 1,000 ended runs, for operators 10,000, and has no DONE in lists (see pbsctl job
show).

Times are in the local time zone (TZ), with their offset from UTC. TIME and LEFT are durations:
minutes and seconds 1:05, with hours 1:02:03, with days 4-05:06:07.";

#[derive(Args, Debug)]
#[command(after_help = JOBS_HELP)]
pub(crate) struct JobsOptions {
    #[command(flatten)]
    pub(crate) listing: ListingOptions,

    /// Repeat the list until Ctrl-C, at this interval in seconds or with a unit, such as 250ms
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "2",
          value_parser = quantities::interval)]
    pub(crate) watch: Option<u64>,

    /// Stop after this many lists
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
    let admission = options.admission.command();
    if options.socket.is_there() {
        if admission.is_some() {
            return Err(Failure::Usage(
                "the service asks the command of its own configuration (pbsd --admission); leave \
                 --admission out"
                    .into(),
            ));
        }
        return service::submit(out, &options.socket, jobs, &options.terms);
    }
    let of_service = options.terms.only_of_service();
    if !of_service.is_empty() {
        return Err(Failure::Usage(format!(
            "only the service can serve {}, and there is none at {}; start it with systemctl start \
             pbsd, or leave that out",
            of_service.join(" and "),
            options.socket.path.display()
        )));
    }
    let values = options.terms.values()?;
    let submissions = jobs::read(jobs)?
        .into_iter()
        .inspect(|job| report_hints(out, &job.request, &job.file))
        .map(|submission| submission.with_request_values(&values)?.with_programs());
    let submissions: Vec<_> = submissions.collect::<Result<_, pbs_node::Error>>()?;
    let machine = machine.read(|| rate_insns_per_ms(device))?;
    let mut store = queue::open(&history.path())?;
    let mut told = |job: &str, why: &str| {
        if let Some(command) = &admission {
            report_built_in(command, job, why);
        }
    };
    let waiting = queue::submit(&mut store, machine, submissions, admission.as_ref(), &mut told)?;
    let history = history.path();
    let answer = json!({ "submitted": waiting, "service": false, "queue": history });
    out.print(&answer, || {
        let line = |job: &Submitted| {
            if job.best_effort {
                return format!(
                    "Run {} of job {} waits, as best effort. It would end in {}.\n",
                    job.run,
                    job.job,
                    span(job.planned_end_ns)
                );
            }
            format!(
                "Run {} of job {} waits. Behind the jobs before it, it would end in {}; its deadline \
                 is in {}.\n",
                job.run,
                job.job,
                span(job.planned_end_ns),
                span(job.deadline_ns)
            )
        };
        waiting.iter().map(line).collect()
    })?;
    let run = if options.files.history.is_usual() && is_root() {
        "pbsctl run".to_string()
    } else {
        format!("pbsctl run --history {}", history.display())
    };
    report(&format!(
        "pbsctl: nothing runs this yet: no service listens at {}.\n\
         Deadlines count from now. As root, run what waits with {run}; or start the service with \
         systemctl start pbsd, and submit again.",
        options.socket.path.display()
    ));
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn withdraw(out: Output, options: &WithdrawOptions) -> Result<ExitCode, Failure> {
    let mut store = queue::open(&options.history.path())?;
    let id = RunId(options.run);
    let run = queue::withdraw(&mut store, id)?;
    out.print(&json!({ "withdrawn": id }), || {
        format!("Run {id} of job {} is withdrawn.\n", run.job)
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
        [] => "There are no such runs. Submit a job with pbsctl job submit.\n".into(),
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
