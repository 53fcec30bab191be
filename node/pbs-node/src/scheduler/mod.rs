// SPDX-License-Identifier: GPL-2.0
//! A command that answers prediction failures in place of the built-in planner.
//!
//! The questions and answers are those of the simulator (`pbs_sim::Command`). The node's thread
//! never waits for the command: it hears events and looks for the answer from time to time.
//! A command that crashes, takes too long or answers nonsense is replaced by the built-in
//! planner for that question, and given up after several such answers in a row.
//!
//! - [`talk`] has the question that is open, and the command's time.
//! - [`asking`] asks one question after the other, and judges the answers.
//! - [`in_force`] has what is left of the plan of each CPU.
//! - [`check`] compares an answer with what is left.
//! - [`options`] reads how a command is chosen.
//! - [`answering`] joins that with the node.

mod answering;
mod asking;
mod check;
mod in_force;
mod options;
mod talk;
#[cfg(test)]
mod tests;

use std::time::Duration;

use pbs_sim::RunAs;
use serde::Serialize;

pub(crate) use asking::Scheduler;
pub(crate) use talk::{Talk, LOOK_MS};

/// A command that answers prediction failures.
#[derive(Clone, Debug)]
pub struct SchedulerCommand {
    /// The command, for `sh -c`.
    pub line: String,
    /// Time within which it has to answer.
    pub timeout: Duration,
    /// User that it runs as; `None`: the one of the node.
    pub run_as: Option<RunAs>,
}

impl SchedulerCommand {
    /// Time within which a command has to answer if nothing else is configured.
    pub const TIMEOUT: Duration = Duration::from_secs(1);

    /// Number of questions in a row without a usable answer after which the command is given up.
    pub const MAX_FAILURES: u32 = 3;
}

/// Figures of a command's answers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Answers {
    /// The command.
    pub command: String,
    /// Number of questions.
    pub questions: u64,
    /// Number of plans of the command that came into force.
    pub answers: u64,
    /// Number of answers by which the plan stayed in force.
    pub stays: u64,
    /// Number of questions that the built-in planner answered, or nobody.
    pub fallbacks: u64,
    /// Number of questions whose plan was replaced, or whose process ended, before the answer.
    pub superseded: u64,
    /// Whether the command was given up.
    pub is_given_up: bool,
    /// Mean time from a question until its plan was in force; RESCHEDULE_TIME is to be as long.
    pub mean_ns: Option<u64>,
    /// Greatest of these times.
    pub max_ns: Option<u64>,
}
