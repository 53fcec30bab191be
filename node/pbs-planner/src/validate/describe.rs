// SPDX-License-Identifier: GPL-2.0
//! In words why a job was declined.

use pbs_job::{cpu_list, Job};
use pbs_text::underscored;

use super::{memory_time, Declined, Rejection, Shortage};
use crate::admission::demand::CoreOverload;
use crate::reserve::{Lack, Refusal};

impl Declined {
    /// Where it failed, at what, and by how much. Times are told from `zero_ns` on.
    pub fn describe(&self, job: &Job, zero_ns: u64) -> String {
        match self {
            Self::Validation(rejection) => rejection.describe(job, zero_ns),
            Self::Reservation(refused) => {
                let why = refused.best.describe(job, zero_ns);
                match &refused.demand {
                    Some(demand) => format!("{why}; {}", demand.describe(zero_ns)),
                    None => why,
                }
            }
        }
    }
}

impl CoreOverload {
    /// The interval of which more is asked than it has. Times are told from `zero_ns` on.
    pub fn describe(&self, zero_ns: u64) -> String {
        let from_zero = |ns: u64| underscored(ns.saturating_sub(zero_ns));
        format!(
            "demand test: between {} ns and {} ns core {} has {} ns, and {} ns are asked",
            from_zero(self.overload.from_ns),
            from_zero(self.overload.until_ns),
            self.core,
            underscored(self.supply_ns()),
            underscored(self.demand_ns())
        )
    }
}

impl Rejection {
    /// Where it failed, at what, and by how much. Times are told from `zero_ns` on.
    pub fn describe(&self, job: &Job, zero_ns: u64) -> String {
        let who = match self.process {
            Some(process) => format!("process {}", job.processes[process].label()),
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
                "{who} would end at {} ns at the earliest, which is {} ns after the deadline, \
                 {} ns",
                underscored(end_ns.saturating_sub(zero_ns)),
                underscored(end_ns.saturating_sub(deadline_ns)),
                underscored(deadline_ns.saturating_sub(zero_ns))
            ),
            Shortage::Memory { needed_bytes, available_bytes } => format!(
                "{who} needs {} bytes of memory at once, and there are {}; {missing} are missing",
                underscored(needed_bytes),
                underscored(available_bytes)
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
    /// What could not be reserved, and why.
    pub fn describe(&self, job: &Job, zero_ns: u64) -> String {
        let process = job.processes.get(self.process);
        let task = job.tasks.get(self.task);
        let who = format!(
            "task {} of process {}",
            task.map_or_else(String::new, |task| task.label()),
            process.map_or_else(String::new, |process| process.label())
        );
        let what = match self.lack {
            Lack::Time { end_ns: u64::MAX, .. } => format!("{who} never finds a core"),
            Lack::Time { end_ns, deadline_ns } => format!(
                "{who} would end at {} ns at the earliest, which is {} ns after {} ns, when it \
                 must have ended",
                underscored(end_ns.saturating_sub(zero_ns)),
                underscored(end_ns.saturating_sub(deadline_ns)),
                underscored(deadline_ns.saturating_sub(zero_ns))
            ),
            Lack::Memory { needed_bytes, needed_ns, most_free_bytes } => format!(
                "{who} needs {} bytes of memory for {} ns at least, and no more than {} are free \
                 in one place, or not for so long",
                underscored(needed_bytes),
                underscored(needed_ns),
                underscored(most_free_bytes)
            ),
            Lack::Cpu { cpu } => {
                format!("the job is confined to CPU {cpu}, which the machine does not have")
            }
            Lack::Order => "its tasks wait for each other".into(),
            Lack::Untried => "no strategy was tried".into(),
        };
        format!("reservation: {what}")
    }
}
