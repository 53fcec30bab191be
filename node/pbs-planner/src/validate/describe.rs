// SPDX-License-Identifier: GPL-2.0
//! Sentences that explain why a job was declined.

use pbs_job::{cpu_list, Job};
use pbs_text::{bytes, grouped, span};

use super::{memory_time, Declined, Rejection, Shortage};
use crate::admission::demand::CoreOverload;
use crate::reserve::{Lack, Refusal};

impl Declined {
    /// Describes the level, the shortage and its amount. Times are relative to `zero_ns`.
    pub fn describe(&self, job: &Job, zero_ns: u64) -> String {
        match self {
            Self::Validation(rejection) => rejection.describe(job, zero_ns),
            Self::Reservation(refused) => {
                let mut why = refused.best.describe(job, zero_ns);
                if let Some(demand) = &refused.demand {
                    why += &format!("; {}", demand.describe(zero_ns));
                }
                if let Some(cut_short) = &refused.cut_short {
                    why += &format!("; {cut_short}; there may be a plan");
                }
                why
            }
        }
    }
}

impl CoreOverload {
    /// Describes the interval whose demand exceeds its supply. Times count from `zero_ns`.
    pub fn describe(&self, zero_ns: u64) -> String {
        let from_zero = |ns: u64| span(ns.saturating_sub(zero_ns));
        format!(
            "demand test: between {} and {}, core {} has {}, and {} are asked for",
            from_zero(self.overload.from_ns),
            from_zero(self.overload.until_ns),
            self.core,
            span(self.supply_ns()),
            span(self.demand_ns())
        )
    }
}

impl Rejection {
    /// Describes the level, the shortage and its amount. Times are relative to `zero_ns`.
    pub fn describe(&self, job: &Job, zero_ns: u64) -> String {
        let who = match self.process {
            Some(process) => job.subject(process),
            None => "the job".into(),
        };
        let missing = self.shortage.missing();
        let what = match self.shortage {
            Shortage::Cpus { ref missing, ref available } => format!(
                "{who} is confined to CPUs that the machine does not have: {}; it has {}",
                cpu_list(missing),
                cpu_list(available)
            ),
            Shortage::Time { end_ns: u64::MAX, .. } => {
                format!("{who} never finds the time and the memory that it needs")
            }
            Shortage::Time { end_ns, deadline_ns } => format!(
                "{who} would end after {} at the earliest, {} later than the deadline, which is \
                 after {}",
                span(end_ns.saturating_sub(zero_ns)),
                span(end_ns.saturating_sub(deadline_ns)),
                span(deadline_ns.saturating_sub(zero_ns))
            ),
            Shortage::Memory { needed_bytes, available_bytes } => format!(
                "{who} needs {} of memory at once, and there are {}; {missing} bytes are missing",
                bytes(needed_bytes),
                bytes(available_bytes)
            ),
            Shortage::Resource { ref name, needed, available } => format!(
                "{who} holds {} of resource {name} at once, together with what waits for it, and \
                 the machine has {}; name fewer in the job, or raise count of {name} in the machine's file",
                grouped(needed),
                grouped(available)
            ),
            Shortage::NoResource { ref name, ref available } if available.is_empty() => format!(
                "{who} holds resource {name}, and the machine has no resources; declare a \
                 [[resource]] of this name in its file"
            ),
            Shortage::NoResource { ref name, ref available } => format!(
                "{who} holds resource {name}, which the machine does not have; it has {}",
                available.join(", ")
            ),
            Shortage::MemoryTime { want, left, min_mem_percentage } => format!(
                "{who} wants {want} bytes of memory times nanoseconds, of which \
                 {min_mem_percentage} % ({}) must be free until the deadline, and {left} are; \
                 {missing} are missing",
                memory_time::needed(want, min_mem_percentage)
            ),
        };
        format!("{}: {what}", self.level)
    }
}

impl Refusal {
    /// Returns the name of a resource of the process that could not be planned.
    fn resource(&self, job: &Job, place: usize) -> String {
        let found = job.amounts(self.process).into_iter().nth(place);
        found.map_or_else(String::new, |amount| amount.resource)
    }

    /// Describes the task that could not be reserved, and the reason.
    pub fn describe(&self, job: &Job, zero_ns: u64) -> String {
        let who = match job.tasks.get(self.task) {
            Some(task) if !job.only_forks(self.process) => {
                format!("task {} of {}", task.label(), job.subject(self.process))
            }
            _ => "the job".into(),
        };
        let what = match self.lack {
            Lack::Time { end_ns: u64::MAX, .. } => format!("{who} never finds a core"),
            Lack::Time { end_ns, deadline_ns } => format!(
                "{who} would end after {} at the earliest, {} later than it must, which is after \
                 {}",
                span(end_ns.saturating_sub(zero_ns)),
                span(end_ns.saturating_sub(deadline_ns)),
                span(deadline_ns.saturating_sub(zero_ns))
            ),
            Lack::Memory { needed_bytes, needed_ns, most_free_bytes } => format!(
                "{who} needs {} of memory for at least {}, and at most {} are free in one place, \
                 or not for that long",
                bytes(needed_bytes),
                span(needed_ns),
                bytes(most_free_bytes)
            ),
            Lack::Resource { place, needed, needed_ns, most_free } => format!(
                "{who} needs {} of resource {} for at least {}, and at most {} are free at once, \
                 or not for that long",
                grouped(needed),
                self.resource(job, place),
                span(needed_ns),
                grouped(most_free)
            ),
            Lack::NoResource { place } => {
                format!(
                    "{who} holds resource {}, which the machine does not have",
                    self.resource(job, place)
                )
            }
            Lack::Cpu { cpu } => {
                format!("the job is confined to CPU {cpu}, which the machine does not have")
            }
            Lack::Work => format!("the search for a plan has not come further than {who}"),
            Lack::Order => "its tasks wait for each other".into(),
            Lack::Untried => "no strategy was tried".into(),
        };
        format!("reservation: {what}")
    }
}
