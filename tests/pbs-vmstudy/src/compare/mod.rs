// SPDX-License-Identifier: GPL-2.0
//! The same jobs under a plan and in the kernel's other classes.
//!
//! In the guest each run prints what became of each job, as a line of JSON; outside,
//! the figures are made of that.

mod guest;
mod plan;
mod report;

use serde::{Deserialize, Serialize};

use crate::beside::Beside;
pub use guest::measure;
use pbs_gen::deadline_jobs::{DeadlineJob, Setting};
pub use report::report;

/// Who schedules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scheduler {
    /// A plan, and new plans when the node tells of a prediction failure.
    Plan,
    /// The same plan; the node is left alone with it.
    PlanUnanswered,
    /// As `Plan`, but that t1 ends the last slot of a process, too, as in the thesis.
    PlanT1Always,
    /// `SCHED_OTHER`, that is EEVDF, nice 0.
    Other,
    /// Those jobs alone that the planner has admitted.
    OtherAdmitted,
    /// `SCHED_FIFO`, the earlier deadline at the greater priority.
    Fifo,
    /// Those jobs alone that the planner has admitted.
    FifoAdmitted,
    /// `SCHED_DEADLINE`, with what was planned as the run time.
    Deadline,
    /// With the greatest length that a job may have which is no rogue.
    DeadlinePadded,
}

impl Scheduler {
    /// In the order of the tables.
    pub const ALL: [Self; 9] = [
        Self::Plan,
        Self::PlanUnanswered,
        Self::PlanT1Always,
        Self::Other,
        Self::OtherAdmitted,
        Self::Fifo,
        Self::FifoAdmitted,
        Self::Deadline,
        Self::DeadlinePadded,
    ];

    /// As `--schedulers` and the tables have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::PlanUnanswered => "plan-unanswered",
            Self::PlanT1Always => "plan-t1-always",
            Self::Other => "other",
            Self::OtherAdmitted => "other-admitted",
            Self::Fifo => "fifo",
            Self::FifoAdmitted => "fifo-admitted",
            Self::Deadline => "deadline",
            Self::DeadlinePadded => "deadline-padded",
        }
    }
}

/// What became of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Outcome {
    #[serde(flatten)]
    job: DeadlineJob,
    /// It was run at all.
    accepted: bool,
    /// Counted from the begin of the run; `None`: it was not run.
    ended_ns: Option<u64>,
}

/// One run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Run {
    scheduler: Scheduler,
    #[serde(flatten)]
    setting: Setting,
    jobs: Vec<Outcome>,
    /// Context switches of the jobs, by the kernel's count.
    switches: u64,
    /// Of all that ran on the CPU, those of the jobs with it.
    all_switches: u64,
    /// Plans that were put into force.
    plans: u64,
    /// From the first release to the end of the last job.
    lasted_ns: u64,
    beside: Beside,
}
