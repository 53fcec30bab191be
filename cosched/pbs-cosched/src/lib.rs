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
mod cost;
mod determination;
mod evolutionary;
mod greedy;
mod heft;
mod indirect;
mod model;
mod objective;
mod oracle;
mod problem;
mod queues;
mod random;
mod random_mapping;
mod report;
mod schedule;
mod simulate;
mod timing;

pub use baseline::not_co_scheduled;
pub use check::{check, Fault};
pub use cost::Cost;
pub use determination::{necessary, Amortization, Determination, Necessity};
pub use evolutionary::evolutionary;
pub use greedy::{greedy, GreedyOptions, Priority};
pub use heft::{heft, Heft};
pub use indirect::{direct_dependencies, Recorded};
pub use model::{DeviceType, Edge, Place, Platform, Process, Task, Variant, Workload};
pub use objective::{accept, score, Objective, Reason, Score, Verdict};
pub use oracle::{brute_force, Found, MOST_TASKS};
pub use queues::{Entry, Queues, Slot, State, Where};
pub use random_mapping::{enhanced_random, plain_random, EnhancedOptions};
pub use report::{measure, speed_up, Measures};
pub use schedule::{evaluations, schedule, Scheduler};
pub use simulate::{simulate, Decision, Options, Run};
pub use timing::{timing, Choice, Mapping, Timeline};
