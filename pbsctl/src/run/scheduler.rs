// SPDX-License-Identifier: GPL-2.0
//! A command that answers prediction failures: its options, and what became of its answers.

use std::time::Duration;

use clap::Args;
use pbs_node::{Answers, RunAs, SchedulerCommand};
use pbs_text::{columns, grouped, ms};

#[derive(Args, Clone, Debug, Default)]
pub(crate) struct SchedulerOptions {
    /// Let a command answer prediction failures, as in pbsctl sim: "command LINE"
    #[arg(long = "scheduler", value_name = "WHO", value_parser = SchedulerCommand::from_option)]
    command: Option<SchedulerCommand>,

    /// Give the command this time to answer, in seconds or with a unit [default: 1]
    #[arg(long = "scheduler-timeout", value_name = "SECONDS", requires = "command",
          value_parser = SchedulerCommand::timeout_of)]
    timeout: Option<Duration>,

    /// Run the command as this user, by name or number, instead of the user of pbsctl
    #[arg(long = "scheduler-user", value_name = "USER", requires = "command",
          value_parser = SchedulerCommand::user_of)]
    user: Option<RunAs>,
}

impl SchedulerOptions {
    /// The command, if there is one.
    pub(crate) fn command(&self) -> Option<SchedulerCommand> {
        let command = self.command.clone()?;
        let timeout = self.timeout.unwrap_or(command.timeout);
        Some(SchedulerCommand { timeout, run_as: self.user, ..command })
    }
}

/// The answers as a table with one row.
pub(super) fn table(answers: &Answers) -> String {
    let header = [
        "SCHEDULER",
        "QUESTIONS",
        "ANSWERS",
        "STAYS",
        "FALLBACKS",
        "SUPERSEDED",
        "MEAN ms",
        "RESCHEDULE_TIME ms",
    ];
    let dash = || "-".to_string();
    let row = vec![
        answers.command.clone(),
        grouped(answers.questions),
        grouped(answers.answers),
        grouped(answers.stays),
        grouped(answers.fallbacks),
        grouped(answers.superseded),
        answers.mean_ns.map_or_else(dash, ms),
        answers.max_ns.map_or_else(dash, ms),
    ];
    let given_up = if answers.is_given_up { "The command was given up.\n" } else { "" };
    format!("\n{}{given_up}", columns(&[header.map(String::from).to_vec(), row], 1))
}
