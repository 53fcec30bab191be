// SPDX-License-Identifier: GPL-2.0
//! The command line.

mod groups;
mod statuses;
mod verb;

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use groups::{JobGroup, NodeCommand, PlanCommand, ServiceCommand};
pub(crate) use statuses::STATUSES;
pub(crate) use verb::{FileOptions, Verb};

const EXAMPLES: &str = "\
What people do most:
  pbsctl job explain job.toml         Would this job keep its deadline?
  pbsctl run job.toml                 Plan a job, run it and learn from the run
  pbsctl job submit job.toml          Leave a job to the service
  pbsctl job list                     List jobs
  pbsctl job cancel 7                 Cancel a job
  pbsctl plan show job.toml           Show the plan of a job without running it
  pbsctl sim plan.toml                Simulate a plan, without the kernel
  pbsctl report run.json -o run.html  Draw a page of pictures of a run
  pbsctl node top                     Watch the CPUs of this node
  pbsctl study deadlines              Study the policy on many plans

Each command has --help with examples. Exit statuses are in Documentation/pbsctl.rst and in
pbsctl(1), which \"pbsctl man\" writes.";

/// Plan jobs with deadlines, run them by plan, and watch the node
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
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Check, submit, run, list and cancel jobs
    #[command(display_order = 1)]
    Job(JobGroup),

    /// Check, show, load and drop plans
    #[command(subcommand, display_order = 2, arg_required_else_help = true)]
    Plan(PlanCommand),

    /// Show the node's state, its events and recordings
    #[command(subcommand, display_order = 3, arg_required_else_help = true)]
    Node(NodeCommand),

    /// Show, stop and resume the service of this node
    #[command(subcommand, display_order = 4, arg_required_else_help = true)]
    Service(ServiceCommand),

    #[command(flatten)]
    Verb(Verb),
}

impl Cli {
    /// Consumes the command line and returns the verb that it names.
    pub(crate) fn verb(self) -> Verb {
        match self.command {
            Command::Job(group) => group.verb(),
            Command::Plan(command) => command.verb(),
            Command::Node(command) => command.verb(),
            Command::Service(command) => command.verb(),
            Command::Verb(verb) => verb,
        }
    }
}
