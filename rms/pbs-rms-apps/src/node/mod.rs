// SPDX-License-Identifier: GPL-2.0
//! This machine's CPUs as nodes of a resource manager for applications that evolve.
//!
//! The manager says whose a CPU is and for how long; what runs there is planned by the node's
//! service, which never learns of a manager. Two things lie between: the tasks of an application
//! become jobs that are confined to its CPUs ([`Jobs`]), and jobs on CPUs that their users do
//! not have any more are cancelled ([`Warden`]).

mod jobs;
mod warden;

pub use jobs::Jobs;
pub use warden::{Cancelled, Looked, Warden};
