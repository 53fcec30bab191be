// SPDX-License-Identifier: GPL-2.0
//! The command line.

mod groups;
mod statuses;
mod verb;

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use crate::numbers::negative_numbers;
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
    /// The command line, in which a number below 0 is the value of an option and no option.
    pub(crate) fn parser() -> clap::Command {
        negative_numbers(<Self as clap::CommandFactory>::command())
    }

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

#[cfg(test)]
mod tests {
    use clap::error::ErrorKind;
    use clap::CommandFactory;

    use super::*;

    /// Commands of the examples below a help page. A long one goes on in the next line.
    fn examples(help: &str) -> Vec<String> {
        let parts: Vec<&str> = help.split("\\\n").collect();
        let rest = parts.iter().skip(1).map(|part| part.trim_start());
        let joined = parts.iter().take(1).copied().chain(rest).collect::<Vec<_>>().join("");
        let lines = joined.lines().filter_map(|line| line.strip_prefix("  "));
        let mut all = Vec::new();
        for line in lines.filter(|line| !line.starts_with(' ')) {
            let parts = line.split(['|', '&', ';']);
            // Other programs stand before and behind a command.
            all.extend(
                parts.map(str::trim).filter(|part| part.starts_with("pbsctl ")).map(str::to_owned),
            );
        }
        all
    }

    /// Words of an example, as a shell reads them. Its description comes after two blanks.
    fn words(example: &str) -> Vec<String> {
        let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
        let mut characters = example.chars().peekable();
        while let Some(character) = characters.next() {
            match (quote, character) {
                (Some(end), _) if character == end => quote = None,
                (Some(_), _) => word.get_or_insert_default().push(character),
                (None, '\'' | '"') => {
                    quote = Some(character);
                    word.get_or_insert_default();
                }
                (None, '#' | '<' | '>') if word.is_none() => break,
                (None, ' ') => {
                    words.extend(word.take());
                    if characters.peek() == Some(&' ') {
                        break;
                    }
                }
                (None, _) => word.get_or_insert_default().push(character),
            }
        }
        words.extend(word);
        words
    }

    fn check(command: &clap::Command, count: &mut usize, wrong: &mut Vec<String>) {
        let helps = [command.get_after_help(), command.get_after_long_help()];
        for help in helps.into_iter().flatten().map(ToString::to_string) {
            for example in examples(&help) {
                *count += 1;
                let Err(error) = Cli::command().try_get_matches_from(words(&example)) else {
                    continue;
                };
                if !matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
                    wrong.push(format!("{}: {example}: {error}", command.get_name()));
                }
            }
        }
        command.get_subcommands().for_each(|below| check(below, count, wrong));
    }

    /// Each example in the help of a command is one that the command takes.
    #[test]
    fn examples_in_help_are_commands() {
        let (mut count, mut wrong) = (0, Vec::new());
        check(&Cli::command(), &mut count, &mut wrong);
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        assert!(count > 150, "{count} examples");
    }
}
