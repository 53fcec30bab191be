// SPDX-License-Identifier: GPL-2.0
//! Plan building: what was reserved, as the nodes want it (Glaß 2024, 5.1.5).
//!
//! [`class_plans`] makes the plans that the scheduling class executes,
//! [`csv`] the thesis's file.

mod buffer;
mod class;
mod csv;
mod dependencies;
mod memory;

pub use class::{class_plans, NodePlan, ProcessIds, Settings};
pub use csv::csv;
pub use dependencies::awaited;

use pbs_job::Job;
use pbs_plan::{Config, Dispatch};

use crate::{Progress, RunId};

/// The configuration of plans that planners make for a node with `node`, unless somebody
/// wishes otherwise: processes run by deadline.
pub fn planner_config(node: Config) -> Config {
    Config { dispatch: Dispatch::Deadline as u64, ..node }
}

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
