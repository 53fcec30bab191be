// SPDX-License-Identifier: GPL-2.0
//! Command-line options of `run` and `profile`.

use std::path::PathBuf;

use clap::Args;
use pbs_history::Kind;
use pbs_text::Quantity;

use crate::admission::AdmissionOptions;
use crate::complete;
use crate::files;
use crate::history_file::HistoryFile;
use crate::jobs::{JobFiles, MachineFile};
use crate::run::scheduler::SchedulerOptions;

const RUN_HELP: &str = "\
Examples:
  pbsctl run plan.toml
  pbsctl run job.toml other-job.toml         Plan jobs, and replan after prediction failures
  pbsctl run                                 Run all submitted jobs
  pbsctl run --resume                        Take over from a pbsctl run that died
  pbsctl run --cosched a.toml b.toml         Choose the variants of task graphs, and run them
  pbsctl run job.toml --admission \"command ./admit\"
  pbsctl run job.toml --scheduler \"command ./plan-anew\"
  pbsctl run plan.toml --report report.json --gantt plan.svg
  pbsctl --json run plan.toml | jq '.tasks[] | select(.preemptions > 0)'

All programs of the plan are started at once and stopped before they begin. Then the plan is
written, each program is attached to its process, and all are released together. Ctrl-C drops the
plan and ends the programs.

Jobs are admitted one after the other. A declined job is reported with the reason and the
earliest deadline that would be admitted. When the node signals a prediction failure, the rest is
planned again. The measured figures go into the history, with which the next run is planned.

With --admission, a command plans the jobs (pbsctl job explain --help). They run on its CPUs and in
the order of its slots, at times and with buffers of the built-in planner. Where it gives no usable
answer in time, the built-in planner decides.

With --scheduler, a command answers prediction failures. It gets the questions and gives the answers
of pbsctl sim --scheduler (Documentation/own-planner.rst). pbsctl goes on meanwhile. Where it gives
no usable answer in time, the built-in planner answers; after three such questions in a row, always.

The run ends with a table: for each task its planned and retired instructions, its preemptions,
the lateness of its process at its end, and its peak memory.";

#[derive(Args, Debug)]
#[command(after_help = RUN_HELP)]
pub(crate) struct RunOptions {
    /// Plan or jobs in TOML or JSON; - reads standard input. Without files, runs the submitted jobs
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// Take over the jobs of a pbsctl run that died
    #[arg(long, conflicts_with_all = ["files", "machine", "report", "gantt", "admission"])]
    pub(crate) resume: bool,

    /// Read task graphs: choose the variants and CPUs of their tasks together, then run them
    #[arg(long, conflicts_with_all = ["resume", "admission"], requires = "files")]
    pub(crate) cosched: bool,

    /// Run jobs as best effort: behind all jobs with a promise, and without one
    #[arg(long, conflicts_with_all = ["resume", "cosched"], requires = "files")]
    pub(crate) best_effort: bool,

    /// Plan with slow-downs from this file (pbsctl cosched interference), or from earlier runs with
    /// the word history
    #[arg(long, value_name = "FILE", conflicts_with_all = ["resume", "admission"],
          requires = "files")]
    pub(crate) slowdowns: Option<PathBuf>,

    /// Make at most N new plans after the first; the node handles further prediction failures alone
    #[arg(long, value_name = "N", default_value_t = u64::MAX, hide_default_value = true)]
    pub(crate) max_replans: u64,

    #[command(flatten)]
    pub(crate) admission: AdmissionOptions,

    #[command(flatten)]
    pub(crate) scheduler: SchedulerOptions,

    /// Lease the CPUs: if pbsctl dies, each CPU drops its plan after this time, in seconds (0.1 to
    /// 3600), and the programs continue as normal ones. Without a lease a plan continues to its
    /// end, unless its file has lease_ns
    #[arg(long, value_name = "SECONDS", value_parser = lease_ns)]
    pub(crate) lease: Option<u64>,

    /// Set a number of the policy in the plans of jobs, as in [config] of a plan; with
    /// dispatch=thesis slots stay where they are planned
    #[arg(long, value_name = "KEY=VALUE", add = complete::config_keys())]
    pub(crate) config: Vec<String>,

    /// Record which tasks run at the same time, for pbsctl cosched interference; on 2 to 16 CPUs
    #[arg(long)]
    pub(crate) learn_slowdowns: bool,

    #[arg(skip = Kind::Plan)]
    pub(crate) kind: Kind,

    #[command(flatten)]
    pub(crate) history: HistoryFile,

    #[command(flatten)]
    pub(crate) machine: MachineFile,

    /// Write a recording and report of the run to FILE, as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,

    /// Draw the plan and the actual run to FILE, as SVG
    #[arg(long, value_name = "FILE", value_parser = files::picture())]
    pub(crate) gantt: Option<PathBuf>,
}

/// A lease in seconds, or with a unit, as nanoseconds.
fn lease_ns(text: &str) -> Result<u64, String> {
    // The refusal below says what to write instead.
    let ns = Quantity::Ns.parse_with(text, 1_000_000_000).ok();
    let ns = ns.filter(|ns| pbs_plan::LEASE_NS.contains(ns));
    ns.ok_or_else(|| "write 0.1 to 3600 seconds, or such a time with a unit, such as 500ms".into())
}

impl RunOptions {
    /// Name of the work in messages.
    pub(crate) fn name(&self) -> String {
        let first = self.files.first();
        first.map_or("the submitted jobs".into(), |file| files::name(file))
    }
}

const PROFILE_HELP: &str = "\
Examples:
  pbsctl job profile job.toml                Measure a job once
  pbsctl job history sort                    ... show the prediction
  pbsctl run job.toml                        ... and plan the job with it

The figures of the job file are used for the first plan. They may be far off, since a task
continues after its slots. The measured figures replace them.";

#[derive(Args, Debug)]
#[command(after_help = PROFILE_HELP)]
pub(crate) struct ProfileOptions {
    #[command(flatten)]
    pub(crate) files: JobFiles,

    /// Write a recording and report of the run to FILE, as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
}

impl From<ProfileOptions> for RunOptions {
    fn from(options: ProfileOptions) -> Self {
        Self {
            files: options.files.jobs,
            resume: false,
            cosched: false,
            best_effort: false,
            slowdowns: None,
            // A profile measures, and does not replan.
            max_replans: 0,
            admission: AdmissionOptions::default(),
            scheduler: SchedulerOptions::default(),
            lease: None,
            config: Vec::new(),
            learn_slowdowns: false,
            kind: Kind::Profile,
            history: options.files.history,
            machine: options.files.machine,
            report: options.report,
            gantt: None,
        }
    }
}
