// SPDX-License-Identifier: GPL-2.0
//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use pbs_history::Kind;

use crate::explain::ExplainOptions;
use crate::files;
use crate::gen::GenOptions;
use crate::history::{HistoryFile, HistoryOptions};
use crate::jobs::{JobFiles, MachineFile};
use crate::plan_show::PlanCommand;
use crate::queue::{JobsOptions, SubmitOptions, WithdrawOptions};
use crate::sim::SimOptions;
use crate::study::StudyOptions;

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
  slots = [\"sort\", \"idle 5_000_000\"]

Exit status:
  0    all is well
  1    something failed: a file, the device, or the kernel refused
  2    the command line is wrong
  3    a plan, job or machine is not valid
  4    run: the plan ended, but a command failed or a task did not end
       sim: not all processes ended
  5    run: the plan was dropped or replaced, or its CPU went away
  6    a job was declined
  7    run: a job ended after its deadline
  130  run: interrupted";

/// Checks, loads, runs and watches plans of the SCHED_PBS scheduling class.
#[derive(Debug, Parser)]
#[command(version, after_help = EXAMPLES, max_term_width = 100)]
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
    /// Say whether a plan, a job or a machine is valid, and why not
    ///
    /// Plans go through the validator that the kernel runs, of jobs the whole task
    /// net is checked. Needs neither the device nor root. Each problem is printed
    /// as FILE:LINE: what is wrong and what to write instead.
    Check {
        /// The plan, job or machine in TOML; - reads standard input
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

    /// Have a job that was submitted wait no more
    Withdraw(WithdrawOptions),

    /// Show the runs of jobs: those that wait, run, and have run
    Jobs(JobsOptions),

    /// Run a plan in virtual time, on the code that the kernel runs
    Sim(SimOptions),

    /// Make a page of pictures of a run or a simulation
    Report(ReportOptions),

    /// Make a trace of a run for ui.perfetto.dev
    Trace(TraceOptions),

    /// Run many generated plans in virtual time, to see what the policy does to
    /// deadlines
    Study(StudyOptions),

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

    /// Write the manual pages of pbsctl and of its commands
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
  pbsctl completions fish > ~/.config/fish/completions/pbsctl.fish";

const MAN_HELP: &str = "\
Examples:
  pbsctl man /usr/local/share/man/man1
  pbsctl man . && man -l pbsctl-run.1";

const RUN_HELP: &str = "\
Examples:
  pbsctl run plan.toml
  pbsctl run job.toml other-job.toml         Plan them, and replan what fails
  pbsctl run                                 All that was submitted
  pbsctl run --resume                        Take over from one that died
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

    /// Make at most N new plans after the first; prediction failures beyond are
    /// left to the node
    #[arg(long, value_name = "N", default_value_t = u64::MAX, hide_default_value = true)]
    pub(crate) max_replans: u64,

    /// Lease the CPUs: should pbsctl die, each takes its plan away after so many
    /// seconds (0.1 to 3600), and the programs go on as normal ones. Without it, a plan
    /// goes on to its end, unless its file has lease_ns
    #[arg(long, value_name = "SECONDS", value_parser = lease_ns)]
    pub(crate) lease: Option<u64>,

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

/// A lease in seconds, as nanoseconds.
fn lease_ns(text: &str) -> Result<u64, String> {
    let refused = || format!("{text} is no number of seconds from 0.1 to 3600");
    let seconds: f64 = text.parse().map_err(|_| refused())?;
    let ns = (seconds * 1e9).round() as u64;
    if pbs_plan::LEASE_NS.contains(&ns) {
        Ok(ns)
    } else {
        Err(refused())
    }
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
            // A profile is to see what happens, not to change it.
            max_replans: 0,
            lease: None,
            kind: Kind::Profile,
            history: options.files.history,
            machine: options.files.machine,
            report: options.report,
            gantt: None,
        }
    }
}

const REPORT_HELP: &str = "\
Examples:
  pbsctl run plan.toml --report run.json
  pbsctl report run.json -o run.html                One page, for any browser
  pbsctl report run.json -o run.html --task 3:7     ... with task 7 of process 3 in front
  pbsctl report run.json -o run.html --task over:1  ... with task 1 of process over
  pbsctl report run.json --chart gantt -o plan.svg  One of its pictures
  pbsctl --json report run.json                     The numbers behind the pictures

The page shows the plan above what became of it, the lateness of the node and of
each process below their thresholds, the most telling tasks on their way, the
preemptions, and how far tasks deviate from the plan. It needs no other file and
no network, and can be printed.

Pictures have names: gantt, node-CPU, process-CPU-PROCESS, task-PROCESS-TASK,
preemptions, deviations.";

#[derive(Args, Debug)]
#[command(after_help = REPORT_HELP)]
pub(crate) struct ReportOptions {
    /// A recording: what run --report wrote; - reads standard input
    pub(crate) file: PathBuf,

    /// Write the page, or the picture, to FILE
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// Have this task in front of the others: the number or the name of its
    /// process, a colon, and its number
    #[arg(long, value_name = "PROCESS:TASK")]
    pub(crate) task: Option<String>,

    /// Only this picture, as SVG
    #[arg(long, value_name = "NAME")]
    pub(crate) chart: Option<String>,
}

const TRACE_HELP: &str = "\
Examples:
  pbsctl run plan.toml --report run.json
  pbsctl trace run.json -o trace.json             Of a recording
  pbsctl trace -o trace.json                      Of what the kernel still holds
  pbsctl trace --follow --seconds 10 -o trace.json  ... and of what comes
  pbsctl --json events > events.json
  pbsctl trace events.json --plan plan.toml --rate 250000 -o trace.json

Open the file with https://ui.perfetto.dev; it is not sent anywhere. Each CPU has
a track of what was planned above one of what ran, preemptions and signals below
them, and counters of lateness and stress. The format is Chrome's JSON, which
other viewers read, too.

Without FILE the plans are read back from the kernel, which knows no names: with
--plan they have those of the file.";

#[derive(Args, Debug)]
#[command(after_help = TRACE_HELP)]
pub(crate) struct TraceOptions {
    /// A recording, of run --report or --json sim, or what --json events has
    /// printed; - reads standard input. Without it, what the kernel holds
    pub(crate) file: Option<PathBuf>,

    /// Write to FILE instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// A plan that the events are about, in TOML; may be repeated, in the order
    /// of coming into force
    #[arg(long = "plan", value_name = "FILE")]
    pub(crate) plans: Vec<PathBuf>,

    /// Instructions that a CPU retires in a millisecond, where only events are
    /// given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=u32::MAX.into()))]
    pub(crate) rate: Option<u64>,

    /// Go on with what comes, until interrupted
    #[arg(long, short, conflicts_with = "file")]
    pub(crate) follow: bool,

    /// Go on for so many seconds
    #[arg(long, value_name = "S", requires = "follow")]
    pub(crate) seconds: Option<u64>,
}

const EVENTS_HELP: &str = "\
Examples:
  pbsctl events                  What the kernel still holds
  pbsctl events --follow         ... and what comes
  pbsctl events --since 1200     From event number 1200 on
  pbsctl --json events --cpu 0   One JSON object a line

Every event has a number; they count from boot. If events were lost because
they were read too late, an event \"overrun\" says how many.";

#[derive(Args, Debug)]
#[command(after_help = EVENTS_HELP)]
pub(crate) struct EventsOptions {
    /// Go on with what comes, until interrupted
    #[arg(long, short)]
    pub(crate) follow: bool,

    /// Begin with the event of this number instead of the oldest one held
    #[arg(long, value_name = "SEQ")]
    pub(crate) since: Option<u64>,

    /// Only events of this CPU
    #[arg(long, value_name = "N")]
    pub(crate) cpu: Option<u32>,
}

const TOP_HELP: &str = "\
Examples:
  pbsctl top                       Until Ctrl-C
  pbsctl top --interval 5 | cat    Table after table
  pbsctl --json top --count 2      One JSON object a line

DONE is the share of the slots that have passed, LEFT the processes with tasks
left, T2 the lateness beyond which the node is a prediction failure. Of the last
columns each is a number of events a second: tasks that ended, slots that reached
t1 or their ceiling on the clock, and prediction failures.

On a CPU of a plan pbsctl runs in the unallocated time, and an interval may be
longer than asked for.";

#[derive(Args, Debug)]
#[command(after_help = TOP_HELP)]
pub(crate) struct TopOptions {
    /// Seconds between two views
    #[arg(long, short, value_name = "S", default_value_t = 1,
          value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) interval: u64,

    /// Show so many views and end
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) count: Option<u64>,
}

const IMPORT_HELP: &str = "\
The grammar of plans is that of Leppert 2021, 4.3.1, on one line:

  PROCESSES;ID,BUFFER;...;;PROCESS,TASK,PLANNED,REAL;...

The table for people that the simulation prints behind that line may follow.
Process -1 is an idle slot. The real lengths are kept as real_insns.

Of a directory a job is made: job_details_N.csv, job_processes_N.csv and
job_tasks_N.txt (Glaß 2024, 5.1.2), and with --machine the machine of
machine_details.csv. A unit of time is taken for a second, a unit of memory for a
byte.

Examples:
  pbsctl import sim.log > plan.toml
  pbsctl import sim.log --cpu 3 --plan-id 12 --output plan.toml
  pbsctl import glass/ --output job.toml --machine machine.toml
  pbsctl plan show job.toml --machine machine.toml --whole-rate";

#[derive(Args, Debug)]
#[command(after_help = IMPORT_HELP)]
pub(crate) struct ImportOptions {
    /// The plan on one line, or the directory of a job; - reads standard input
    #[arg(value_name = "FILE|DIRECTORY")]
    pub(crate) file: PathBuf,

    /// The CPU that the plan is for, instead of 0
    #[arg(long, value_name = "N")]
    pub(crate) cpu: Option<u32>,

    /// The plan's number, instead of 1
    #[arg(long, value_name = "N")]
    pub(crate) plan_id: Option<u64>,

    /// The job's number N in the directory, where that has several
    #[arg(long, value_name = "N")]
    pub(crate) job: Option<u64>,

    /// What the job will be called, instead of glass-N
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// Write the machine of the directory to FILE
    #[arg(long, value_name = "FILE")]
    pub(crate) machine: Option<PathBuf>,

    /// Write to FILE instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}
