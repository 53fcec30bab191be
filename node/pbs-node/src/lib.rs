// SPDX-License-Identifier: GPL-2.0
//! One node: starts the jobs that run on it, follows them, plans them anew and records them.
//!
//! Nothing is printed here, and no command line is read. The caller, a command or a
//! service, receives what happens through [`Listener`]. Programs are started by
//! `pbs-launch`, which has all unsafe code.
//!
//! # Owners
//!
//! - [`Node`] joins the parts of a node. It alone reads events and writes plans.
//!   - `Kernel` owns the device, its limits and its configuration.
//!   - `Programs` owns the children of all jobs, and their control groups.
//!   - `Processes` owns the labels of processes, and which of them were cancelled.
//! - `Jobs`, of a node that plans, owns the controller (which decides, and does nothing),
//!   the runs that are under way, the `Backlog` of orders, and the `Ledger`.
//! - `Ledger` owns the history, which it has claimed: one planner writes there. The record
//!   of a run is enough for another planner to take it over.
//! - The signals and the loop are the caller's. [`Node::hear`] reads what has happened.
//!   [`Node::act`] does what is to be done about it, and returns for how long to wait.
//!   Neither waits. [`Node::follow`] is the loop for callers that have nothing else to do. A
//!   node has no end of its own: [`Next::Over`] means that nothing is under way for the
//!   moment.
//!
//! A job that waits is a line in the history ([`queue`]), and belongs to nobody.

#![forbid(unsafe_code)]

mod accounts;
mod active;
mod admission;
mod admitting;
mod allocation;
mod amounts;
mod candidate;
mod clock;
mod companions;
pub mod device;
mod error;
mod held;
mod interface;
mod jobs;
mod kernel;
mod launch;
mod learned;
mod lease;
mod ledger;
mod machine;
mod news;
mod node;
mod observe;
mod orders;
mod outcome;
mod overlaps;
mod placement;
mod planning;
mod predict;
mod processes;
mod programs;
mod progress;
pub mod queue;
mod refusals;
mod resources;
mod result;
mod resume;
mod room;
mod save_request;
mod saved;
mod saving;
mod scheduler;
mod serving;
mod settings;
mod standing;
mod submission;
mod usage;
mod value;

#[cfg(test)]
mod delays;
#[cfg(test)]
mod model;

pub use accounts::AccountOf;
pub use admitting::{
    admit_by_command, check_work, AdmissionAnswer, AdmissionQuestion, Choice, Decision,
    WantedProcess,
};
pub use allocation::Allocation;
pub use amounts::ResourceState;
pub use companions::{of_runs as slowdowns_of_runs, sharing, SlowdownSource};
pub use error::{Declined, Error};
pub use held::Held;
pub use interface::process_of;
pub use launch::Launch;
pub use ledger::Unrecorded;
pub use machine::this_node;
pub use news::{ClosedRun, Listener, NewPeak, News, NotRun};
pub use node::{Next, Node, Options};
pub use observe::{observe, Observed, Until};
pub use orders::{Alteration, Ending, Order, ProgramEnd, Rewrite, Terms};
pub use outcome::{JobOutcome, TaskOutcome};
pub use pbs_planner::plan_building::planner_config;
pub use pbs_planner::Aim;
pub use pbs_sim::RunAs;
pub use placement::Moved;
pub use planning::{Answered, Planning};
pub use predict::{predict, Forecast};
pub use save_request::SaveRequest;
pub use scheduler::{Answers, SchedulerCommand};
pub use serving::{Expected, RunDetails};
pub use settings::{Settings, LEAD_NS};
pub use submission::{by_priority, Step, Submission};
pub use usage::{others_in_words, usage_of, OTHERS_REMEDY};
