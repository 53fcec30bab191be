// SPDX-License-Identifier: GPL-2.0
//! What is asked of `run` and `profile` on the command line.

use std::path::PathBuf;

use clap::Args;
use pbs_history::Kind;
use pbs_text::Quantity;

use crate::complete;
use crate::files;
use crate::history_file::HistoryFile;
use crate::jobs::{JobFiles, MachineFile};

const RUN_HELP: &str = "\
Examples:
  pbsctl run plan.toml
  pbsctl run job.toml other-job.toml         Plan them, and replan what fails
  pbsctl run                                 All that was submitted
  pbsctl run --resume                        Take over from one that died
  pbsctl run --cosched a.toml b.toml         Task graphs: decide what each runs as
  pbsctl run plan.toml --report report.json --gantt plan.svg
  pbsctl --json run plan.toml | jq '.tasks[] | select(.preemptions > 0)'

All programs of the plan are started at once and held before they begin; then
the plan is written, each program is attached to its process, and all are
released together. Ctrl-C drops the plan and ends the programs.

Jobs are admitted one after the other or declined, with the reason and the earliest
deadline that would do. When the node signals a prediction failure, what is left is
planned anew. What was used goes into the history, from which the next run is
planned.

At the end stands a table: each task with its planned and its retired
instructions, how often it was preempted, the lateness of its process when it
ended, and its peak memory.";

#[derive(Args, Debug)]
#[command(after_help = RUN_HELP)]
pub(crate) struct RunOptions {
    /// A plan or jobs in TOML; - reads standard input. Without any, the jobs that
    /// were submitted
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// Take over the jobs of a pbsctl run that died
    #[arg(long, conflicts_with_all = ["files", "machine", "report", "gantt"])]
    pub(crate) resume: bool,

    /// The files are task graphs: decide together what their tasks run as and where, then
    /// run them
    #[arg(long, conflicts_with = "resume", requires = "files")]
    pub(crate) cosched: bool,

    /// Plan with who slows whom, as a file says (pbsctl interference) or, with the word
    /// history, as earlier runs tell
    #[arg(long, value_name = "FILE", conflicts_with = "resume", requires = "files")]
    pub(crate) slowdowns: Option<PathBuf>,

    /// Make at most N new plans after the first; prediction failures beyond are
    /// left to the node
    #[arg(long, value_name = "N", default_value_t = u64::MAX, hide_default_value = true)]
    pub(crate) max_replans: u64,

    /// Lease the CPUs: should pbsctl die, each takes its plan away after so many
    /// seconds (0.1 to 3600), and the programs go on as normal ones. Without it, a plan
    /// goes on to its end, unless its file has lease_ns
    #[arg(long, value_name = "SECONDS", value_parser = lease_ns)]
    pub(crate) lease: Option<u64>,

    /// Set a number of the policy in the plans of jobs, as in [config] of a plan; with
    /// dispatch=thesis slots stay where they are planned
    #[arg(long, value_name = "KEY=VALUE", add = complete::config_keys())]
    pub(crate) config: Vec<String>,

    /// Record who runs beside whom, for pbsctl interference; on 2 to 16 CPUs
    #[arg(long)]
    pub(crate) learn_slowdowns: bool,

    #[arg(skip = Kind::Plan)]
    pub(crate) kind: Kind,

    #[command(flatten)]
    pub(crate) history: HistoryFile,

    #[command(flatten)]
    pub(crate) machine: MachineFile,

    /// Write the facts of the run to FILE, as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,

    /// Draw the plan and what became of it to FILE, as SVG
    #[arg(long, value_name = "FILE")]
    pub(crate) gantt: Option<PathBuf>,
}

/// A lease in seconds, or with a unit, as nanoseconds.
fn lease_ns(text: &str) -> Result<u64, String> {
    let ns = Quantity::Ns.parse_with(text, 1_000_000_000).ok();
    let ns = ns.filter(|ns| pbs_plan::LEASE_NS.contains(ns));
    ns.ok_or_else(|| {
        "it must be 0.1 to 3600 seconds, or such a time with its unit, as 500ms".into()
    })
}

impl RunOptions {
    /// What what is run is called in messages.
    pub(crate) fn name(&self) -> String {
        let first = self.files.first();
        first.map_or("what was submitted".into(), |file| files::name(file))
    }
}

const PROFILE_HELP: &str = "\
Examples:
  pbsctl profile job.toml                    Measure it once
  pbsctl history sort                        ... and see what that predicts
  pbsctl run job.toml                        ... which it is planned from then

The figures of the job file are those of the first plan. They may be far off: a
task goes on after its slots. What is measured takes their place.";

#[derive(Args, Debug)]
#[command(after_help = PROFILE_HELP)]
pub(crate) struct ProfileOptions {
    #[command(flatten)]
    pub(crate) files: JobFiles,

    /// Write the facts of the run to FILE, as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
}

impl From<ProfileOptions> for RunOptions {
    fn from(options: ProfileOptions) -> Self {
        Self {
            files: options.files.jobs,
            resume: false,
            cosched: false,
            slowdowns: None,
            // A profile is to see what happens, not to change it.
            max_replans: 0,
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
