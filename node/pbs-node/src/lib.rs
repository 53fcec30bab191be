// SPDX-License-Identifier: GPL-2.0
//! One node: the jobs that run on it are started, followed, planned anew and recorded.
//!
//! Nothing is printed here, and no command line is read. Who runs a node, a command or
//! a service, hears of what happens through [`Listener`].
//!
//! # Who owns what
//!
//! - [`Node`] owns the device, the children of all jobs, and what is known of the plans
//!   that are in force. It alone reads events and writes plans.
//! - `Jobs`, of a node that plans, owns the controller (which decides, and does nothing),
//!   the runs that are under way, and the `Ledger`.
//! - `Ledger` owns the history, which it has claimed: one planner writes there. What it
//!   keeps of a run is enough for another to take it over.
//! - The signals and the loop are the caller's. [`Node::hear`] takes in what
//!   has happened, [`Node::act`] does what is to be done about it and says for how long
//!   to wait, and neither waits. [`Node::follow`] is the loop of who has nothing else to
//!   do. A node has no end of its own: [`Next::Over`] says that nothing is under way for
//!   the moment.
//!
//! A job that waits is a line in the history ([`queue`]), and belongs to nobody.

#![forbid(unsafe_code)]

mod active;
mod admission;
mod allocation;
mod candidate;
mod clock;
mod companions;
pub mod device;
mod error;
mod jobs;
mod kernel;
mod launch;
mod lease;
mod ledger;
mod machine;
mod news;
mod node;
mod observe;
mod orders;
mod outcome;
mod overlaps;
mod planning;
mod predict;
mod processes;
mod programs;
mod progress;
pub mod queue;
mod resume;
mod saved;
mod serving;
mod settings;
mod standing;
mod submission;

pub use allocation::Allocation;
pub use companions::{of_runs as slowdowns_of_runs, sharing, SlowdownSource};
pub use error::{Declined, Error};
pub use launch::Launch;
pub use machine::this_node;
pub use news::{Listener, News};
pub use node::{Next, Node, Options};
pub use observe::{observe, Observed, Until};
pub use orders::{Alteration, Ending, Order, ProgramEnd, Terms};
pub use outcome::{JobOutcome, TaskOutcome};
pub use pbs_planner::Aim;
pub use planning::{Answered, Planning};
pub use predict::{predict, Forecast};
pub use serving::RunDetails;
pub use settings::{Settings, LEAD_NS};
pub use submission::{by_priority, Step, Submission};
