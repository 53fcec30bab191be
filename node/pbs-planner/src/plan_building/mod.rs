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

use crate::{Progress, RunId};

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
