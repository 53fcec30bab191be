// SPDX-License-Identifier: GPL-2.0
//! Comparison of jobs under a plan and in the kernel's other classes.
//!
//! In the guest each run prints the result of each job, as a line of JSON. Outside, the figures are
//! computed from these lines.

mod guest;
mod plan;
mod report;

use serde::{Deserialize, Serialize};

use crate::beside::Beside;
pub use guest::measure;
use pbs_gen::deadline_jobs::{DeadlineJob, Setting};
pub use report::report;

/// Schedulers that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scheduler {
    /// A plan as planners make it, by deadline, and new plans when the node signals a
    /// prediction failure.
    Plan,
    /// Like `Plan`, but the node is left alone with the first plan.
    PlanUnanswered,
    /// Like `Plan`, but with the order of slots that the thesis has.
    PlanThesis,
    /// Like `PlanThesis`, but t1 ends the last slot of a process, too, as in the thesis.
    PlanT1Always,
    /// `SCHED_OTHER`, that is EEVDF, nice 0.
    Other,
    /// `SCHED_OTHER` with only the jobs that the planner has admitted.
    OtherAdmitted,
    /// `SCHED_FIFO`, the earlier deadline at the greater priority.
    Fifo,
    /// `SCHED_FIFO` with only the jobs that the planner has admitted.
    FifoAdmitted,
    /// `SCHED_DEADLINE`, with the planned length as the run time.
    Deadline,
    /// `SCHED_DEADLINE`, with the greatest length of a job that is no rogue.
    DeadlinePadded,
}

impl Scheduler {
    /// In the order of the tables.
    pub const ALL: [Self; 10] = [
        Self::Plan,
        Self::PlanUnanswered,
        Self::PlanThesis,
        Self::PlanT1Always,
        Self::Other,
        Self::OtherAdmitted,
        Self::Fifo,
        Self::FifoAdmitted,
        Self::Deadline,
        Self::DeadlinePadded,
    ];

    /// Name of the scheduler in `--schedulers` and the tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::PlanUnanswered => "plan-unanswered",
            Self::PlanThesis => "plan-thesis",
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

/// Result of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Outcome {
    #[serde(flatten)]
    job: DeadlineJob,
    /// Whether the job was run at all.
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
    /// Context switches of all that ran on the CPU, including the jobs.
    all_switches: u64,
    /// Plans that were put into force.
    plans: u64,
    /// From the first release to the end of the last job.
    lasted_ns: u64,
    beside: Beside,
}
