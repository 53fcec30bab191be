// SPDX-License-Identifier: GPL-2.0
//! The command line.

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use clap_complete::Shell;

use crate::apps::AppsOptions;
use crate::cluster::ClusterOptions;
use crate::cosched::CoschedOptions;
use crate::csi::CsiOptions;
use crate::events::EventsOptions;
use crate::explain::ExplainOptions;
use crate::failure::{
    DEADLINE_MISSED, DECLINED, DIFFERS, FAILED, INCOMPLETE, INTERRUPTED, INVALID_PLAN, NOT_ENDED,
    USAGE,
};
use crate::gen::GenOptions;
use crate::history::HistoryOptions;
use crate::import::ImportOptions;
use crate::interference::InterferenceOptions;
use crate::plan_show::PlanCommand;
use crate::queue::{JobsOptions, SubmitOptions, WithdrawOptions};
use crate::record::RecordOptions;
use crate::replay::ReplayOptions;
use crate::report::ReportOptions;
use crate::rms::RmsOptions;
use crate::run::{ProfileOptions, RunOptions};
use crate::service::{AlterOptions, WatchOptions, Which};
use crate::sim::SimOptions;
use crate::socket::Socket;
use crate::step::StepOptions;
use crate::study::StudyOptions;
use crate::top::TopOptions;
use crate::trace::TraceOptions;

const EXAMPLES: &str = "\
Examples:
  pbsctl check plan.toml                  Is the plan or job valid, and why not?
  pbsctl run plan.toml                    Start its processes and see them through
  pbsctl run plan.toml --gantt plan.svg   ... and draw what became of it
  pbsctl sim plan.toml                    Run it in virtual time, without the kernel
  pbsctl study deadlines                  Run many, and see what the policy does
  pbsctl report run.json -o run.html      ... and look at a run that was kept
  pbsctl explain job.toml                 Would a job be admitted, and why not?
  pbsctl plan show job.toml               ... and what would its plan be?
  pbsctl import sim.log > plan.toml       Take over a plan of Leppert's simulation
  pbsctl gen one-over > plan.toml         Generate one, in which a process is late
  pbsctl events --follow                  Watch what happens
  pbsctl top                              ... as a table that is kept up to date
  pbsctl history sort                     What the runs of a job used, and the next will
  pbsctl stat                             The state of the node
  pbsctl drop --cpu 0                     Away with the plan of CPU 0

A plan gives each CPU an ordered list of slots. A small one:

  [[process]]
  id = 1
  name = \"sort\"
  command = [\"sort\", \"/data/a\"]
  tasks = [20_000_000]          # planned instructions

  [[cpu]]
  cpu = 0
  slots = [\"sort\", \"idle 5_000_000\"]";

/// The exit statuses: of which commands, none for all, and what each means.
pub(crate) const STATUSES: [(u8, &[&str], &str); 14] = [
    (0, &[], "all is well"),
    (FAILED, &[], "something failed: a file, the output, the device, or the kernel refused"),
    (USAGE, &[], "the command line is wrong"),
    (INVALID_PLAN, &[], "a plan, job or machine is not valid"),
    (INCOMPLETE, &["run", "profile"], "the plan ended, but a command failed or a task did not end"),
    (INCOMPLETE, &["sim"], "not all processes ended"),
    (INCOMPLETE, &["record"], "inputs were missed; if the command failed, its exit status"),
    (INCOMPLETE, &["replay"], "something is missing of the recording; the rest came out the same"),
    (
        INCOMPLETE,
        &["step"],
        "the job did not come to its end; if a program failed, its exit status",
    ),
    (NOT_ENDED, &["run", "profile"], "the plan was dropped or replaced, or its CPU went away"),
    (DECLINED, &[], "a job was declined"),
    (DEADLINE_MISSED, &["run", "profile", "step"], "a job ended after its deadline"),
    (DIFFERS, &["replay"], "something else came out than was recorded"),
    (INTERRUPTED, &["run", "profile", "step"], "interrupted"),
];

fn notes() -> String {
    let mut text = format!("{EXAMPLES}\n\nExit status:");
    let mut last = None;
    for (status, commands, meaning) in STATUSES {
        let number = if last == Some(status) { String::new() } else { status.to_string() };
        last = Some(status);
        let of = match commands {
            [] => String::new(),
            commands => format!("{}: ", commands.join(", ")),
        };
        text.push_str(&format!("\n  {number:<4} {of}{meaning}"));
    }
    text
}

/// Checks, loads, runs and watches plans of the SCHED_PBS scheduling class.
#[derive(Debug, Parser)]
#[command(version, after_help = notes(), max_term_width = 100)]
pub(crate) struct Cli {
    /// Print JSON instead of text
    #[arg(long, global = true)]
    pub(crate) json: bool,

    /// The device of the scheduling class
    #[arg(
        long,
        global = true,
        env = "PBS_DEVICE",
        value_name = "PATH",
        default_value = pbs_uapi::DEVICE_PATH
    )]
    pub(crate) device: PathBuf,

    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Say whether a plan, a job, a task graph or a machine is valid, and why not
    ///
    /// Plans go through the validator that the kernel runs, of jobs and task graphs the
    /// whole net is checked. Needs neither the device nor root. Each problem is printed
    /// as FILE:LINE: what is wrong and what to write instead.
    Check {
        /// The plan, job, task graph or machine in TOML; - reads standard input
        file: PathBuf,
    },

    /// Check a plan and write it to the kernel
    ///
    /// The processes are not started: they attach themselves, or somebody
    /// attaches them. A plan of the same CPUs is replaced.
    Load {
        /// The plan in TOML; - reads standard input
        file: PathBuf,
    },

    /// Run a plan, or jobs that are planned, and follow it to its end
    Run(RunOptions),

    /// Run jobs to measure them, without a deadline and without replanning
    Profile(ProfileOptions),

    /// Have jobs wait to be run
    Submit(SubmitOptions),

    /// Run a job as a step of a Slurm job, on the cores that it has on this node
    Step(StepOptions),

    /// Have a job that was submitted wait no more
    Withdraw(WithdrawOptions),

    /// Show the runs of jobs: those that wait, run, and have run
    Jobs(JobsOptions),

    /// Show all that the service knows of a job
    Job(Which),

    /// Have a job be over before its time
    ///
    /// One that waits never begins. The programs of one that runs are told to end
    /// (SIGTERM), and killed two seconds later with all that they have started.
    Cancel(Which),

    /// Have a job that waits not be planned until it is released
    Hold(Which),

    /// Have a job that is held be planned
    Release(Which),

    /// Change the deadline or the priority of a job, or a job that waits
    Alter(AlterOptions),

    /// Print what happens to jobs
    Watch(WatchOptions),

    /// Have the service plan nothing new; what is planned goes on
    Drain(Socket),

    /// Have the service plan what waits again
    Resume(Socket),

    /// Say how the service is
    Status(Socket),

    /// Run a plan in virtual time, on the code that the kernel runs
    Sim(SimOptions),

    /// Record all that the policy in the kernel is told
    Record(RecordOptions),

    /// Tell the policy once more what was recorded, and compare
    Replay(ReplayOptions),

    /// Make a page of pictures of a run or a simulation
    Report(ReportOptions),

    /// Make a trace of a run for ui.perfetto.dev
    Trace(TraceOptions),

    /// Run many generated plans in virtual time, to see what the policy does to
    /// deadlines
    Study(StudyOptions),

    /// Plan for many nodes: describe a cluster, replay traces of one
    Cluster(ClusterOptions),

    /// Manage nodes for applications that evolve, and see what they have
    Rms(RmsOptions),

    /// Measure, show and predict how tasks slow each other
    Interference(InterferenceOptions),

    /// Run models of applications that evolve, under the manager of rms
    Apps(AppsOptions),

    /// Co-schedule tasks of several processes that have several implementations
    Cosched(CoschedOptions),

    /// Show what co-scheduled processes share, and remove what is left of it
    Csi(CsiOptions),

    /// Print what happened
    Events(EventsOptions),

    /// Show the node as it runs, CPU by CPU
    Top(TopOptions),

    /// Say whether jobs would be admitted, and why not
    Explain(ExplainOptions),

    /// Show plans of jobs
    #[command(subcommand, arg_required_else_help = true)]
    Plan(PlanCommand),

    /// Print what jobs have used, and what that predicts
    History(HistoryOptions),

    /// Print the state of the node: limits, counting tier, and what
    /// /sys/kernel/pbs holds; or of one process
    Stat {
        /// The process, by its number in the plan that has it
        #[arg(long, value_name = "ID")]
        process: Option<u32>,
    },

    /// Print the plan of a CPU as the kernel has it, in TOML
    Show {
        /// The CPU
        #[arg(long, value_name = "N")]
        cpu: u32,
    },

    /// Turn a plan of Leppert's simulation, or a job and a machine of Glaß's
    /// prototype, into TOML
    Import(ImportOptions),

    /// Generate a plan, with what really happens in it
    Gen(GenOptions),

    /// Drop the plan of a CPU; its processes go on as normal ones
    Drop {
        /// The CPU
        #[arg(long, value_name = "N")]
        cpu: u32,
    },

    /// Print what a shell needs to complete pbsctl's command line
    #[command(after_help = COMPLETIONS_HELP)]
    Completions {
        /// The shell
        shell: Shell,
    },

    /// Write the manual pages of pbsctl, of its commands, and of the formats of files
    #[command(after_help = MAN_HELP)]
    Man {
        /// Where to; made if it is not there
        directory: PathBuf,
    },
}

const COMPLETIONS_HELP: &str = "\
Examples:
  pbsctl completions bash > /etc/bash_completion.d/pbsctl
  pbsctl completions zsh > ~/.zfunc/_pbsctl
  pbsctl completions fish > ~/.config/fish/completions/pbsctl.fish

The script asks pbsctl what may come next, so it knows commands and options and also
the jobs that there are, columns of pbsctl jobs and keys of --config. It need not be
made anew with another release.";

const MAN_HELP: &str = "\
Examples:
  pbsctl man . && man -l pbsctl-run.1        About a command
  pbsctl man . && man -l pbs-job.5           About a format of files
  pbsctl man . && install -Dm644 -t /usr/local/share/man/man5 *.5";
