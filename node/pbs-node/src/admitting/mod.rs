// SPDX-License-Identifier: GPL-2.0
//! A command that admits jobs in place of the built-in planner.
//!
//! The command gets one job at a time, with the machine and a plan of the jobs before, and answers
//! with a plan of all or a reason. A crash, a late or an unusable answer leaves the job to the
//! built-in planner.
//!
//! - [`question`] writes the question, and reads the answer.
//! - [`check`] compares the plan of an answer with the work that it must have.
//! - [`beside`] asks about a job beside a plan that stays.
//! - [`admitter`] asks one question after the other for a node that never waits.

mod admitter;
mod beside;
mod check;
mod question;

pub(crate) use admitter::{Admitter, Decided, ASKED};
pub(crate) use beside::Beside;
pub use beside::{admit_by_command, Choice, Decision};
pub use check::{check_work, WantedProcess};
pub use question::{AdmissionAnswer, AdmissionQuestion};
