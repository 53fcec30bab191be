// SPDX-License-Identifier: GPL-2.0
//! Steering of a batch system: it starts what is planned, when and where it is planned.
//!
//! Users submit to the batch system, which holds every job of ours. Therefore nothing starts that
//! is not planned, whichever process is dead. A job is *committed* shortly before its start: the
//! batch system receives the nodes and the time, and lets the job start by itself. So is a job that
//! follows on nodes that are being cleaned: it starts once they are clean. A job that did not start
//! in time is held again and planned anew.
//!
//! The planner does no harm. A job that runs is left alone, wherever and whenever it started: the
//! plan follows it. Only a job whose limit is over is ended, or one that a user or an operator ended
//! in the planner. A request that can't be planned is held with the reason.
//!
//! The batch system is a [`Controller`]: Slurm, or a simulated one. Its reports of jobs and nodes
//! are the truth; events are hints that something has to be checked. Time is an argument, and not
//! read from a clock. Therefore tests need no clock.
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

pub(crate) use controller::TOLD_CHARS;
pub use controller::{Commitment, Controller, Event, Failed, Fault, Leaving, OrderKind, Revoked};
pub use link::Link;
pub use seen::{
    Closing, Hold, JobSeen, JobState, Key, Memory, NoKey, NodeSeen, NodeState, Unread, World,
};
pub use simulated::{By, Simulated};
pub use steering::{Settings, Steer, GONE, LOST, UNSEEN};
pub use wish::{wish_of, Words};
