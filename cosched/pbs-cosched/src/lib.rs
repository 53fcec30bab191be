// SPDX-License-Identifier: GPL-2.0
//! Co-scheduling: finding an execution sequence for the tasks of several processes (§2.4).
//!
//! Each task has variants: the same function for different targets, each with a profiled
//! runtime.  This crate decides when the waiting tasks are mapped anew, which variant each
//! gets and in which round it is queued, and says when everything would start and end.
//! It has no clock, no files and no threads; a command, a runtime and a simulation run the
//! same lines.
//!
//! "§" are sections of the thesis, "ours" is what it does not have.

mod baseline;
mod check;
mod greedy;
mod model;
mod queues;
mod timing;

pub use baseline::not_co_scheduled;
pub use check::{check, Fault};
pub use greedy::{greedy, GreedyOptions, Priority};
pub use model::{DeviceType, Edge, Place, Platform, Process, Task, Variant, Workload};
pub use queues::{Entry, Queues, Slot, State, Where};
pub use timing::{timing, Choice, Mapping, Timeline};
