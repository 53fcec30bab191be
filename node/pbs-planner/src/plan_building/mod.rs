// SPDX-License-Identifier: GPL-2.0
//! Plan building: what was reserved, as the nodes want it (Glaß 2024, 5.1.5).
//!
//! [`class_plans`] makes the plans that the scheduling class executes,
//! [`csv`] the thesis's file.

mod buffer;
mod class;
mod csv;
mod dependencies;
mod handing_on;

pub use class::{class_plans, NodePlan, ProcessIds, Settings};
pub use csv::csv;
pub use dependencies::awaited;

use pbs_job::Job;
use pbs_plan::{Config, Dispatch};

use crate::{Progress, RunId};

/// The configuration of plans that planners make for a node with `node`, unless somebody
/// wishes otherwise: processes run by deadline, and the rest of the system gets its share in
/// shorter windows, so that it waits for that for 19 ms at most, and not for 95. Windows that
/// can't be divided evenly remain as they are.
pub fn planner_config(node: Config) -> Config {
    let (period_ns, unallocated_ns) = (node.window_period_ns, node.window_unallocated_ns);
    let windows = (period_ns / PLANNED_WINDOW_NS).max(1);
    let is_even = period_ns % windows == 0 && unallocated_ns % windows == 0;
    let windows = if is_even { windows } else { 1 };
    Config {
        dispatch: Dispatch::Deadline as u64,
        window_period_ns: period_ns / windows,
        window_unallocated_ns: unallocated_ns / windows,
        ..node
    }
}

/// Length of the windows of plans, about.
const PLANNED_WINDOW_NS: u64 = 20_000_000;

/// A planned run with its job.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// The run.
    pub run: RunId,
    /// Job of the run.
    pub job: &'a Job,
    /// Progress of the processes; empty: none has begun.
    pub progress: &'a [Progress],
    /// Time by which the whole job must have ended; `u64::MAX`: there is no deadline.
    pub deadline_ns: u64,
}
