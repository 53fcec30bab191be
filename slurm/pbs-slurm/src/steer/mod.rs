// SPDX-License-Identifier: GPL-2.0
//! Has a batch system start what is planned, when and where it is planned.
//!
//! Users submit to the batch system; it holds every job of ours, so nothing starts that is not
//! planned, whoever is dead. A job is *committed* shortly before its start: the batch system is
//! told the nodes and the time, and lets it go by itself. A job that did not start then is held
//! again and planned anew.
//!
//! The batch system is a [`Controller`]: Slurm, or a simulated one. What it says of jobs and
//! nodes is the truth; events are hints that there is something to look at. There is no clock
//! here: time comes in as an argument, so that tests need none.
//!
//! ```text
//! held, planned  --commit at T - W-->  committed  --T-->  running  -->  over
//!      ^                                   |
//!      +------- revoke at T + G, hold -----+
//! ```

mod controller;
mod link;
mod seen;
mod simulated;
mod steering;
mod wish;

pub use controller::{Controller, Event, Fault, Revoked, Stop};
pub use link::Link;
pub use seen::{Hold, JobSeen, JobState, Key, Memory, NoKey, NodeSeen, NodeState, World};
pub use simulated::Simulated;
pub use steering::{Settings, Steer};
pub use wish::{wish_of, Words};
