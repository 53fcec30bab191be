// SPDX-License-Identifier: GPL-2.0
//! Groups of commands: `pbsctl job …`, `pbsctl plan …`, `pbsctl node …`, `pbsctl service …`.

use clap::{Args, Subcommand};

use super::verb::{FileOptions, Verb};
use crate::check::CheckOptions;
use crate::configure::ConfigureOptions;
use crate::events::EventsOptions;
use crate::explain::ExplainOptions;
use crate::gen::GenOptions;
use crate::given::Given;
use crate::history::HistoryOptions;
use crate::history_file::HistoryFile;
use crate::import::ImportOptions;
use crate::metrics::MetricsOptions;
use crate::plan_show::PlanShowOptions;
use crate::plans::OfCpu;
use crate::queue::{JobsOptions, SubmitOptions, WithdrawOptions};
use crate::queued::AnyJob;
use crate::record::RecordOptions;
use crate::replay::ReplayOptions;
use crate::run::{ProfileOptions, RunOptions};
use crate::service::{AlterOptions, SetResourceOptions, WatchOptions, Which, SET_RESOURCE_HELP};
use crate::socket::Socket;
use crate::stat::StatOptions;
use crate::step::StepOptions;
use crate::top::TopOptions;
use crate::trace::TraceOptions;

const RUN_PLAN_HELP: &str = "\
Examples:
  pbsctl plan run plan.toml                      Run a plan
  pbsctl plan run plan.toml --report run.json    Write a report of the run as well

The kernel gets the plan as it stands in the file. pbsctl starts the program of each process, waits
until all of them are in the plan, and follows the plan to its end. What \"pbsctl run\" does with
jobs stands in pbsctl run --help.";

/// Commands about jobs.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true, arg_required_else_help = true)]
pub(crate) struct JobGroup {
    #[command(subcommand)]
    command: Option<JobCommand>,

    /// Before there were groups, `pbsctl job JOB` showed a job.
    #[arg(hide = true)]
    job: Option<String>,

    #[command(flatten)]
    socket: Socket,

    #[command(flatten)]
    history: HistoryFile,
}

#[derive(Debug, Subcommand)]
enum JobCommand {
    /// Check a job, a task graph or a machine file
    ///
    /// Checks the whole task net. Needs neither the device nor root. Each problem is printed
    /// as FILE:LINE: what is wrong and what to write instead.
    Check(CheckOptions),

    /// Measure jobs: run them once, without a deadline and without replanning
    Profile(ProfileOptions),

    /// Check whether jobs would be admitted, and explain why
    Explain(ExplainOptions),

    /// Plan jobs and run them now
    Run(RunOptions),

    /// Submit jobs to the service, or queue them where there is none
    Submit(SubmitOptions),

    /// List jobs: waiting, running and ended
    List(JobsOptions),

    /// Show a job in detail
    Show(AnyJob),

    /// Cancel a job
    ///
    /// A job that waits never begins. The programs of a running job receive SIGTERM. Two
    /// seconds later they are killed, with all processes that they have started. A job whose file
    /// has a checkpoint is asked to save its work before; to cancel it once more ends it. Where no
    /// service runs, a job is removed from the queue.
    Cancel(AnyJob),

    /// Ask a running job to save its work
    ///
    /// The job declares in its file how its programs are asked (checkpoint). It continues.
    Checkpoint(Which),

    /// Hold a waiting job: it is not planned until it is released
    Hold(Which),

    /// Release a held job
    Release(Which),

    /// Change a job's deadline, its priority, or its file while it waits
    Alter(AlterOptions),

    /// Remove a job from the queue of this machine
    Withdraw(WithdrawOptions),

    /// Follow jobs: print each change of state
    Watch(WatchOptions),

    /// Print what jobs used in earlier runs, and the prediction for the next one
    History(HistoryOptions),

    /// Run a job as a step of a Slurm job, on the cores that it has on this node
    Step(StepOptions),
}

impl JobGroup {
    pub(crate) fn verb(self) -> Verb {
        let Some(command) = self.command else {
            let job = self.job.unwrap_or_default();
            let which = Which { job, socket: self.socket };
            return Verb::Job(AnyJob { which, history: self.history });
        };
        match command {
            JobCommand::Check(options) => Verb::Check(options.of_job()),
            JobCommand::Profile(options) => Verb::Profile(options),
            JobCommand::Explain(options) => Verb::Explain(options),
            JobCommand::Run(options) => Verb::Run(options),
            JobCommand::Submit(options) => Verb::Submit(options),
            JobCommand::List(options) => Verb::Jobs(options),
            JobCommand::Show(which) => Verb::Job(which),
            JobCommand::Cancel(which) => Verb::Cancel(which),
            JobCommand::Checkpoint(which) => Verb::Checkpoint(which),
            JobCommand::Hold(which) => Verb::Hold(which),
            JobCommand::Release(which) => Verb::Release(which),
            JobCommand::Alter(options) => Verb::Alter(options),
            JobCommand::Withdraw(options) => Verb::Withdraw(options),
            JobCommand::Watch(options) => Verb::Watch(options),
            JobCommand::History(options) => Verb::History(options),
            JobCommand::Step(options) => Verb::Step(options),
        }
    }
}

/// Commands about plans.
#[derive(Debug, Subcommand)]
pub(crate) enum PlanCommand {
    /// Check a plan
    ///
    /// Uses the validator that the kernel runs. Needs neither the device nor root. Each
    /// problem is printed as FILE:LINE: what is wrong and what to write instead.
    Check(FileOptions),

    /// Plan jobs and show the plan, without running it
    Show(PlanShowOptions),

    /// Run a plan: load it, start its processes and follow it to its end
    #[command(mut_arg("files", |files| files.required(true)), after_help = RUN_PLAN_HELP)]
    Run(RunOptions),

    /// Load a plan into the kernel without starting its processes
    ///
    /// The processes attach themselves, or somebody attaches them. A plan of the same CPUs is
    /// replaced.
    Load(FileOptions),

    /// Print the plan that the kernel has for a CPU, in TOML
    Dump(OfCpu),

    /// Drop the plan of a CPU; its processes become normal ones
    Drop(OfCpu),

    /// Generate a plan, with the deviations of its run
    #[command(visible_alias = "gen")]
    Generate(Given<GenOptions>),

    /// Convert a plan of Leppert's simulation, or a job and a machine of Glaß's prototype
    Import(ImportOptions),
}

impl PlanCommand {
    pub(crate) fn verb(self) -> Verb {
        match self {
            Self::Check(options) => Verb::Check(CheckOptions::of(options.file)),
            Self::Show(options) => Verb::Plan(options),
            Self::Run(options) => Verb::Run(options),
            Self::Load(options) => Verb::Load(options),
            Self::Dump(options) => Verb::Show(options),
            Self::Drop(options) => Verb::Drop(options),
            Self::Generate(options) => Verb::Gen(options),
            Self::Import(options) => Verb::Import(options),
        }
    }
}

/// Commands about this node.
#[derive(Debug, Subcommand)]
pub(crate) enum NodeCommand {
    /// Show the node's state: limits, counting tier, and /sys/kernel/pbs; or one process
    Stat(StatOptions),

    /// Show the CPUs of the node as a table that is kept up to date
    Top(TopOptions),

    /// Print metrics of the node and its service for monitoring systems, or serve them
    Metrics(MetricsOptions),

    /// Print scheduling events
    Events(EventsOptions),

    /// Convert a run to a trace for ui.perfetto.dev
    Trace(TraceOptions),

    /// Change the configuration of the plan in force on a CPU
    Configure(ConfigureOptions),

    /// Record all inputs of the policy in the kernel
    Record(RecordOptions),

    /// Replay a recording through the same policy, and compare
    Replay(ReplayOptions),
}

impl NodeCommand {
    pub(crate) fn verb(self) -> Verb {
        match self {
            Self::Stat(options) => Verb::Stat(options),
            Self::Top(options) => Verb::Top(options),
            Self::Metrics(options) => Verb::Metrics(options),
            Self::Events(options) => Verb::Events(options),
            Self::Trace(options) => Verb::Trace(options),
            Self::Configure(options) => Verb::Configure(options),
            Self::Record(options) => Verb::Record(options),
            Self::Replay(options) => Verb::Replay(options),
        }
    }
}

/// Commands about the service of this node.
#[derive(Debug, Subcommand)]
pub(crate) enum ServiceCommand {
    /// Show the service's state
    Status(Socket),

    /// Stop planning new jobs; planned ones continue
    Drain(Socket),

    /// Resume planning
    Resume(Socket),

    /// Set the amount of a resource of the node for new jobs
    ///
    /// Jobs that run or were promised more keep it. With a greater amount, waiting jobs are tried
    /// at once. The amount remains when the service is restarted; "service status" shows it.
    #[command(after_help = SET_RESOURCE_HELP)]
    SetResource(SetResourceOptions),
}

impl ServiceCommand {
    pub(crate) fn verb(self) -> Verb {
        match self {
            Self::Status(socket) => Verb::Status(socket),
            Self::Drain(socket) => Verb::Drain(socket),
            Self::Resume(socket) => Verb::Resume(socket),
            Self::SetResource(options) => Verb::SetResource(options),
        }
    }
}
