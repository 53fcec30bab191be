// SPDX-License-Identifier: GPL-2.0
//! Messages of a node while it works.

use std::fmt;

use pbs_plan::Plan;
use pbs_text::{bytes, ms};
use pbs_uapi::Event;

use crate::{Error, JobOutcome};

/// Hears of what happens. Who only wants the result does with none of it.
pub trait Listener {
    /// Receives a message for people.
    fn news(&mut self, _news: News) {}

    /// An event of one of the node's own plans.
    fn event(&mut self, _event: &Event) {}

    /// The kernel took a plan: the first one, or one in the place of another.
    fn planned(&mut self, _plan: &Plan) {}

    /// A job is over.
    fn over(&mut self, _outcome: JobOutcome) {}

    /// All is done for the moment, and events are waited for.
    fn waits(&mut self) {}
}

/// Message for people.
#[derive(Debug)]
pub enum News {
    /// A job that was submitted is not run, and why. Others are.
    NotAdmitted(Error),
    /// Jobs that were to be planned together are planned one beside the other, and why.
    NotArranged(String),
    /// The jobs that wait come in an order in which they slow each other least: when all
    /// would end as they were admitted, and when they end so, from now on.
    Beside {
        /// End in the order of their admission.
        unaware_ns: u64,
        /// In the order that was found.
        aware_ns: u64,
    },
    /// A process waits for another that has ended before its tasks did.
    Cancelled {
        /// Label of the process.
        process: String,
        /// Label of the process that it waits for.
        cut: String,
        /// Whether its programs are children of the node, and were told to end.
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
        /// Job of the process.
        job: String,
        /// Label of the process.
        process: String,
        /// Memory that the process uses.
        used_bytes: u64,
        /// Memory that was reserved.
        reserved_bytes: u64,
    },
    /// A job will miss its deadline by so much; `None`: there is no place left for it.
    WillMiss(String, Option<u64>),
    /// No new plan could be made, and why. The old one goes on.
    NoNewPlan(String),
    /// The kernel refused a new plan, and why. The old one goes on.
    PlanRefused(String),
    /// Number of processes that have ended as children of the node and that it has not started.
    Strangers(usize),
    /// Events can't be recorded any more, with the reason. Running jobs continue.
    NotRecorded(pbs_history::Error),
}

impl fmt::Display for News {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::NotAdmitted(error) => error.to_string(),
            Self::NotArranged(why) => {
                format!("the jobs are planned one beside the other: {why}")
            }
            Self::Beside { unaware_ns, aware_ns } => format!(
                "by who slows whom all end after {} ms; as they were admitted it would be {} ms",
                ms(*aware_ns),
                ms(*unaware_ns)
            ),
            Self::Cancelled { process, cut, is_told } => {
                let end =
                    if *is_told { "" } else { "; end its program, which others have started" };
                format!(
                    "process {process} is cancelled: it waits for process {cut}, which has ended \
                     before its tasks did{end}"
                )
            }
            Self::EventsLost => {
                "events were lost, as it came to read them too late; what the tasks \
                             used that they told of is not recorded"
                    .into()
            }
            Self::NotAsked(process, why) => {
                format!("how process {process} is cannot be asked: {why}")
            }
            Self::MemoryShort => "the node uses more memory than plans may".into(),
            Self::Grown { job, process, used_bytes, reserved_bytes } => format!(
            "process {process} of job {job} uses {}, and {} were reserved for it; it is planned \
             anew with more",
            bytes(*used_bytes),
            bytes(*reserved_bytes)
        ),
            Self::WillMiss(job, Some(ns)) => {
                format!("job {job} will miss its deadline by {} ms as it looks now", ms(*ns))
            }
            Self::WillMiss(job, None) => format!(
                "there is no place left for job {job}; what is left of it goes on outside the plan"
            ),
            Self::NoNewPlan(why) => {
                format!("no new plan could be made, so the old one goes on: {why}")
            }
            Self::PlanRefused(why) => {
                format!("the kernel refused the new plan, so the old one goes on: {why}")
            }
            Self::Strangers(count) => format!(
                "processes that have ended as children of the node and were started by \
                 programs of jobs (CLONE_PARENT): {count}"
            ),
            Self::NotRecorded(error) => format!("{error}. What runs goes on, but is not recorded"),
        };
        f.write_str(&text)
    }
}
