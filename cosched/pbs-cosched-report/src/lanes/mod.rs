// SPDX-License-Identifier: GPL-2.0
//! From task graphs to co-scheduling and back to plans.
//!
//! [`Question`] makes of task graphs ([`pbs_job::graph`]) and a machine what
//! [`pbs_cosched`] decides about. [`jobs`] makes of what was decided jobs that the planner
//! plans: a task with n threads becomes n *lanes*. Of each graph there is one process for
//! each CPU that it uses, since a process of the class is on one CPU; its tasks are the
//! lanes that are there, in their order. So a schedule of threads becomes an order of
//! tasks, which the node enforces.
//!
//! It has no clock and reads no files.

mod decide;
mod lower;
mod measured;
mod question;

pub use decide::{decide, Decided};
pub use lower::{jobs, turns, CannotLower, Lane, Lowered};
pub use measured::{variant_key, variant_runs, Ran};
pub use question::{Question, TaskOrigin, UndecidableReason, Unfit};
