// SPDX-License-Identifier: GPL-2.0
//! What a node has to say while it works.

use pbs_plan::Plan;
use pbs_uapi::Event;

use crate::Error;

/// Hears of what happens. Who only wants the result does with none of it.
pub trait Listener {
    /// Something that people should know.
    fn news(&mut self, _news: News) {}

    /// An event of one of the node's own plans.
    fn event(&mut self, _event: &Event) {}

    /// The kernel took a plan: the first one, or one in the place of another.
    fn planned(&mut self, _plan: &Plan) {}

    /// All is done for the moment, and events are waited for.
    fn waits(&mut self) {}
}

/// Something that people should know.
#[derive(Debug)]
pub enum News {
    /// A job that was submitted is not run, and why. Others are.
    NotAdmitted(Error),
    /// A process waits for another that has ended before its tasks did.
    Cancelled {
        /// Its label.
        process: String,
        /// That of the other.
        cut: String,
        /// Its programs are children of the node, and were told to end.
        is_told: bool,
    },
    /// Events were lost, as they were read too late.
    EventsLost,
    /// The kernel did not say how a process is, and why.
    NotAsked(u32, String),
    /// The node uses more memory than plans may.
    MemoryShort,
    /// A process uses more memory than was reserved for it, and is planned anew.
    Grown {
        /// Its job.
        job: String,
        /// Its label.
        process: String,
        /// What it uses.
        used_bytes: u64,
        /// What was reserved.
        reserved_bytes: u64,
    },
    /// A job will miss its deadline by so much; `None`: there is no place left for it.
    WillMiss(String, Option<u64>),
    /// No new plan could be made, and why. The old one goes on.
    NoNewPlan(String),
    /// The kernel refused a new plan, and why. The old one goes on.
    PlanRefused(String),
    /// What happens can't be recorded any more, and why. What runs goes on.
    NotRecorded(pbs_history::Error),
}
