// SPDX-License-Identifier: GPL-2.0
//! Everything that `pbsctl` can do, each under one verb.
//!
//! A verb names its answer in JSON (`pbs.VERB/1`) and is a command of its own, which `--help`
//! leaves out where a group has the command too: scripts keep working.

use std::path::PathBuf;

use clap::Subcommand;
use clap_complete::Shell;

use crate::apps::AppsOptions;
use crate::check::CheckOptions;
use crate::cluster::ClusterOptions;
use crate::configure::ConfigureOptions;
use crate::cosched::CoschedOptions;
use crate::csi::CsiOptions;
use crate::events::EventsOptions;
use crate::explain::ExplainOptions;
use crate::gen::GenOptions;
use crate::given::Given;
use crate::history::HistoryOptions;
use crate::import::ImportOptions;
use crate::interference::InterferenceOptions;
use crate::metrics::MetricsOptions;
use crate::plan_show::PlanShowOptions;
use crate::plans::OfCpu;
use crate::queue::{JobsOptions, SubmitOptions, WithdrawOptions};
use crate::queued::AnyJob;
use crate::record::RecordOptions;
use crate::replay::ReplayOptions;
use crate::report::ReportOptions;
use crate::rms::RmsOptions;
use crate::run::{ProfileOptions, RunOptions};
use crate::schema::SchemaOptions;
use crate::service::{AlterOptions, SetResourceOptions, WatchOptions, Which};
use crate::sim::SimOptions;
use crate::socket::Socket;
use crate::stat::StatOptions;
use crate::step::StepOptions;
use crate::study::StudyOptions;
use crate::top::TopOptions;
use crate::trace::TraceOptions;

/// Commands of `pbsctl`.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Run a plan, or plan jobs and run them
    #[command(display_order = 10)]
    Run(RunOptions),

    /// Simulate a plan in virtual time, with the code that the kernel runs
    #[command(display_order = 11)]
    Sim(Given<SimOptions>),

    /// Simulate many generated plans to study the policy
    #[command(display_order = 12)]
    Study(Given<StudyOptions>),

    /// Draw a page of pictures of a run or a simulation
    #[command(display_order = 13)]
    Report(ReportOptions),

    /// Plan a cluster: describe it, queue requests, replay traces
    #[command(display_order = 14)]
    Cluster(ClusterOptions),

    /// Manage nodes for evolving applications
    #[command(display_order = 15)]
    Rms(RmsOptions),

    /// Co-schedule tasks that have several implementations
    #[command(display_order = 16)]
    Cosched(CoschedOptions),

    /// Print the JSON Schema of a file, or of questions to planners
    #[command(display_order = 17)]
    Schema(SchemaOptions),

    /// Print the completion script of a shell
    #[command(display_order = 18, after_help = COMPLETIONS_HELP)]
    Completions {
        /// The shell
        shell: Shell,
    },

    /// Write the manual pages
    #[command(display_order = 19, after_help = MAN_HELP)]
    Man {
        /// Directory for the pages; created if it does not exist
        directory: PathBuf,
    },

    /// Check a job, a plan, a machine, a task graph or a site file
    #[command(hide = true)]
    Check(CheckOptions),
    /// Load a plan into the kernel without starting its processes
    #[command(hide = true)]
    Load(FileOptions),
    /// Measure jobs: run them once, without a deadline and without replanning
    #[command(hide = true)]
    Profile(ProfileOptions),
    /// Submit jobs to the service, or queue them where there is none
    #[command(hide = true)]
    Submit(SubmitOptions),
    /// Run a job as a step of a Slurm job, on the cores that it has on this node
    #[command(hide = true)]
    Step(StepOptions),
    /// Remove a job from the queue of this machine
    #[command(hide = true)]
    Withdraw(WithdrawOptions),
    /// List jobs: waiting, running and ended
    #[command(hide = true)]
    Jobs(JobsOptions),
    /// The command line of this verb is that of the group of the same name.
    #[command(skip)]
    Job(AnyJob),
    /// Cancel a job
    #[command(hide = true)]
    Cancel(AnyJob),
    /// The command line of this verb is `job checkpoint`.
    #[command(skip)]
    Checkpoint(Which),
    /// Hold a waiting job: it is not planned until it is released
    #[command(hide = true)]
    Hold(Which),
    /// Release a held job
    #[command(hide = true)]
    Release(Which),
    /// Change a job's deadline, its priority, or its file while it waits
    #[command(hide = true)]
    Alter(AlterOptions),
    /// Follow jobs: print each change of state
    #[command(hide = true)]
    Watch(WatchOptions),
    /// Stop planning new jobs; planned jobs continue
    #[command(hide = true)]
    Drain(Socket),
    /// Plan new jobs again
    #[command(hide = true)]
    Resume(Socket),
    /// Show the state of the service
    #[command(hide = true)]
    Status(Socket),
    /// The command line of this verb is `service set-resource`.
    #[command(skip)]
    SetResource(SetResourceOptions),
    /// Record all inputs of the policy in the kernel
    #[command(hide = true)]
    Record(RecordOptions),
    /// Replay a recording through the same policy, and compare
    #[command(hide = true)]
    Replay(ReplayOptions),
    /// Convert a run to a trace for ui.perfetto.dev
    #[command(hide = true)]
    Trace(TraceOptions),
    /// Measure, show and predict how tasks slow each other down
    #[command(hide = true)]
    Interference(InterferenceOptions),
    /// List the evolving applications on this node
    #[command(hide = true)]
    Apps(AppsOptions),
    /// List the co-scheduled processes of this node, and clean up after them
    #[command(hide = true)]
    Csi(CsiOptions),
    /// Print scheduling events
    #[command(hide = true)]
    Events(EventsOptions),
    /// Show the CPUs of the node as a table that is kept up to date
    #[command(hide = true)]
    Top(TopOptions),
    /// The command line of this verb is `node metrics`.
    #[command(skip)]
    Metrics(MetricsOptions),
    /// The command line of this verb is `node configure`.
    #[command(skip)]
    Configure(ConfigureOptions),
    /// Check whether jobs would be admitted, and explain why
    #[command(hide = true)]
    Explain(ExplainOptions),
    /// The command line of this verb is `plan show`.
    #[command(skip)]
    Plan(PlanShowOptions),
    /// Print what jobs used in earlier runs, and the prediction for the next one
    #[command(hide = true)]
    History(HistoryOptions),
    /// Show the node's state: limits, counting tier, and /sys/kernel/pbs; or one process
    #[command(hide = true)]
    Stat(StatOptions),
    /// Print the plan that the kernel has for a CPU, in TOML
    #[command(hide = true)]
    Show(OfCpu),
    /// Drop the plan of a CPU; its processes become normal ones
    #[command(hide = true)]
    Drop(OfCpu),
    /// Convert a plan of Leppert's simulation, or a job and a machine of Glaß's prototype
    #[command(hide = true)]
    Import(ImportOptions),
    /// Generate a plan, with the deviations of its run
    #[command(hide = true)]
    Gen(Given<GenOptions>),
}

impl Verb {
    /// Name of the verb, which is also the name of its answer in JSON.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Run(_) => "run",
            Self::Sim(_) => "sim",
            Self::Study(_) => "study",
            Self::Report(_) => "report",
            Self::Cluster(_) => "cluster",
            Self::Rms(_) => "rms",
            Self::Cosched(_) => "cosched",
            Self::Schema(_) => "schema",
            Self::Completions { .. } => "completions",
            Self::Man { .. } => "man",
            Self::Check(_) => "check",
            Self::Load(_) => "load",
            Self::Profile(_) => "profile",
            Self::Submit(_) => "submit",
            Self::Step(_) => "step",
            Self::Withdraw(_) => "withdraw",
            Self::Jobs(_) => "jobs",
            Self::Job(_) => "job",
            Self::Cancel(_) => "cancel",
            Self::Checkpoint(_) => "checkpoint",
            Self::Hold(_) => "hold",
            Self::Release(_) => "release",
            Self::Alter(_) => "alter",
            Self::Watch(_) => "watch",
            Self::Drain(_) => "drain",
            Self::Resume(_) => "resume",
            Self::Status(_) => "status",
            Self::SetResource(_) => "set-resource",
            Self::Record(_) => "record",
            Self::Replay(_) => "replay",
            Self::Trace(_) => "trace",
            Self::Interference(_) => "interference",
            Self::Apps(_) => "apps",
            Self::Csi(_) => "csi",
            Self::Events(_) => "events",
            Self::Top(_) => "top",
            Self::Metrics(_) => "metrics",
            Self::Configure(_) => "configure",
            Self::Explain(_) => "explain",
            Self::Plan(_) => "plan",
            Self::History(_) => "history",
            Self::Stat(_) => "stat",
            Self::Show(_) => "show",
            Self::Drop(_) => "drop",
            Self::Import(_) => "import",
            Self::Gen(_) => "gen",
        }
    }
}

/// One file to read.
#[derive(clap::Args, Debug)]
pub(crate) struct FileOptions {
    /// The file, in TOML or JSON; - reads standard input
    pub(crate) file: PathBuf,
}

const COMPLETIONS_HELP: &str = "\
Examples:
  pbsctl completions bash > /etc/bash_completion.d/pbsctl
  pbsctl completions zsh > ~/.zfunc/_pbsctl
  pbsctl completions fish > ~/.config/fish/completions/pbsctl.fish

The script calls pbsctl for each completion. Commands, options, jobs, columns and keys of
--config are therefore always up to date, and a new release needs no new script.";

const MAN_HELP: &str = "\
Examples:
  pbsctl man . && man -l pbsctl-job-submit.1 Read about a command
  pbsctl man . && man -l pbs-job.5           Read about a file format
  pbsctl man . && install -Dm644 -t /usr/local/share/man/man5 *.5";
