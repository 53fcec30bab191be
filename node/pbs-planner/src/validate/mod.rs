// SPDX-License-Identifier: GPL-2.0
//! Validation: whether it is worth while to plan a job at all (Glaß 2024,
//! 5.1.3).
//!
//! Three levels, each dearer than the one before. The first says what any plan
//! needs, if the user's figures are right; the others are estimates, which refuse
//! only where that is asked for ([`Validation::estimates_refuse`]):
//!
//! 1. *General check*: the deadline against the job's length, the job's memory
//!    against that of the machine ([`general`]).
//! 2. *Job check*: memory times time that the job wants against what is free
//!    of it ([`memory_time`]).
//! 3. *Process check*: a test mapping of whole processes to cores
//!    ([`mapping`]).
//!
//! The task net has been checked before there is a [`Job`](pbs_job::Job) (7.1,
//! item 1).

mod admit;
mod describe;
mod earliest;
mod general;
mod mapping;
mod memory_time;

use std::fmt;

pub(crate) use admit::admit_within;
pub use admit::{admit, Declined};
pub(crate) use earliest::find as find_earliest;
pub use earliest::{earliest_deadline, EarliestDeadline, MOST_TRIES};
pub use general::validate_machine;

use crate::budget::Budget;
use crate::reserve::net::Net;
use crate::reserve::Request;
use crate::store::{Booking, Store};

/// Constants of the validation, which the owner of the planner sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validation {
    /// Method of computing the memory that a job wants over time.
    pub cal_want_type: WantType,
    /// MIN_MEM_PERCENTAGE: how much of that must be free, in percent.
    pub min_mem_percentage: u32,
    /// PROCESS_IDLE_PERCENTAGE in thousandths: the part of a process's runtime
    /// in which its core is free for others of the same job. What is more than
    /// 1000 counts as 1000. The thesis asks to keep it small (6.1.4); the
    /// default is 0.
    pub process_idle_permille: u32,
    /// FORK_TIME: each further child of a process starts so much later.
    pub fork_time_ns: u64,
    /// INIT_TIME: the first child of a process starts so much after it.
    pub init_time_ns: u64,
    /// Levels 2 and 3 refuse, too, as in the thesis. They are estimates: of totals
    /// that are held all the time, of a test mapping; what they find no room for may
    /// have a plan all the same. Without this they are told ([`validate`]), and a job
    /// is refused by what proves that there is no plan, and by the search for one.
    pub estimates_refuse: bool,
}

/// CAL_WANT_TYPE: the memory over time that a job wants (Glaß 2024, listings 1
/// and 2).
///
/// Where the user gave no totals, version 0 has nothing to multiply and is
/// version 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WantType {
    /// Version 0: the runtime of the job times its memory.
    #[default]
    Totals,
    /// Version 1: the sum over its processes of runtime times memory.
    Processes,
}

/// One of the three checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Level 1, the general check.
    General,
    /// Level 2, the job check.
    Job,
    /// Level 3, the process check.
    Process,
}

/// Reason for which planning a job was not found worthwhile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// Level at which the job failed.
    pub level: Level,
    /// Index of the process that it is about; `None`: the job as a whole.
    pub process: Option<usize>,
    /// Resource that was lacking.
    pub shortage: Shortage,
}

/// Resource that was lacking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shortage {
    /// CPUs that the job is confined to ([`Job::cpus`](pbs_job::Job::cpus)).
    Cpus {
        /// CPUs that the machine does not have, ascending.
        missing: Vec<u32>,
        /// CPUs of the machine, in the order of [`Machine::cpus`](pbs_job::Machine::cpus).
        available: Vec<u32>,
    },
    /// Time before the deadline.
    Time {
        /// Earliest time at which the job or process would end.
        end_ns: u64,
        /// Time by which it must have ended.
        deadline_ns: u64,
    },
    /// Memory, whatever the deadline.
    Memory {
        /// Memory that is needed at once.
        needed_bytes: u64,
        /// All that there is.
        available_bytes: u64,
    },
    /// An amount of a resource, whatever the deadline.
    Resource {
        /// Name of the resource.
        name: String,
        /// Amount that is needed at once.
        needed: u64,
        /// All that there is.
        available: u64,
    },
    /// A resource that the machine does not have.
    NoResource {
        /// Name of the resource.
        name: String,
        /// Names of the resources of the machine, in the order of its file.
        available: Vec<String>,
    },
    /// Free memory over time, in byte-nanoseconds.
    MemoryTime {
        /// Memory that the job wants, of which [`Validation::min_mem_percentage`] must be free.
        want: u128,
        /// Memory that is free from the start to the deadline.
        left: u128,
        /// The percentage that must be free.
        min_mem_percentage: u32,
    },
}

impl Default for Validation {
    fn default() -> Self {
        Self {
            cal_want_type: WantType::default(),
            min_mem_percentage: 80,
            process_idle_permille: 0,
            fork_time_ns: 0,
            init_time_ns: 0,
            estimates_refuse: false,
        }
    }
}

/// Input of all levels.
pub(crate) struct Question<'a> {
    request: Request<'a>,
    net: Net,
    validation: &'a Validation,
    work: Budget,
}

impl<'a> Question<'a> {
    fn new(request: &Request<'a>, store: &Store, validation: &'a Validation) -> Self {
        let request = request.not_before(store.now_ns());
        let net = Net::new(&request, store);
        Self { request, net, validation, work: Budget::unbounded() }
    }

    /// The user's runtime of a process, else what its instructions take on a
    /// core of that rate.
    fn runtime_ns(&self, store: &Store, process: usize, rate_insns_per_s: u64) -> u64 {
        let said = self.request.job.processes[process].runtime_ns;
        said.unwrap_or_else(|| {
            let insns = self.net.process_insns[process];
            store.machine().duration_ns(insns, rate_insns_per_s)
        })
    }

    /// Whether that process may be mapped to that core.
    fn allows(&self, process: usize, core: usize) -> bool {
        let confined = self.net.confined.as_ref();
        confined.is_none_or(|confined| confined.allows_process(process, core))
    }

    /// Whether the process takes no time, like the process that stands for `pbsctl` itself.
    fn takes_no_time(&self, store: &Store, process: usize) -> bool {
        self.runtime_ns(store, process, self.net.fastest_rate(store)) == 0
    }
}

/// Checks a job that has not begun, on all levels. The store is afterwards as
/// it was.
///
/// # Errors
///
/// The first level that the job fails, and at what.
pub fn validate(
    store: &mut Store,
    request: &Request<'_>,
    validation: &Validation,
) -> Result<(), Rejection> {
    validate_in(&mut store.book(), request, validation)
}

/// Refuses a job that can't be planned. Nothing is reserved for it yet.
fn refuse(
    booking: &mut Booking<'_>,
    request: &Request<'_>,
    validation: &Validation,
) -> Result<(), Rejection> {
    if validation.estimates_refuse {
        return validate_in(booking, request, validation);
    }
    let question = Question::new(request, booking.store(), validation);
    general::check(&question, booking.store())
}

/// Like [`validate`], as a part of a larger change. Existing reservations of the run count as free.
///
/// # Errors
///
/// The same as those of [`validate`].
pub fn validate_in(
    booking: &mut Booking<'_>,
    request: &Request<'_>,
    validation: &Validation,
) -> Result<(), Rejection> {
    check(booking, request, validation, &Level::ALL)
}

/// Checks one level, whatever the others decide. The store is unchanged afterwards.
///
/// # Errors
///
/// The shortage for which this level rejects the job.
pub fn validate_level(
    store: &mut Store,
    request: &Request<'_>,
    validation: &Validation,
    level: Level,
) -> Result<(), Rejection> {
    check(&mut store.book(), request, validation, &[level])
}

fn check(
    booking: &mut Booking<'_>,
    request: &Request<'_>,
    validation: &Validation,
    levels: &[Level],
) -> Result<(), Rejection> {
    let mark = booking.mark();
    booking.remove(request.run);
    let question = Question::new(request, booking.store(), validation);
    let result = levels.iter().try_for_each(|level| match level {
        Level::General => general::check(&question, booking.store()),
        Level::Job => memory_time::check(&question, booking.store()),
        Level::Process => mapping::check(&question, booking),
    });
    booking.rollback(mark);
    result
}

impl Level {
    /// All of them, the cheapest first.
    pub const ALL: [Self; 3] = [Self::General, Self::Job, Self::Process];

    /// Returns the number of the level in the thesis.
    pub fn number(self) -> u8 {
        match self {
            Self::General => 1,
            Self::Job => 2,
            Self::Process => 3,
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::General => "general check",
            Self::Job => "job check",
            Self::Process => "process check",
        };
        write!(f, "level {} ({name})", self.number())
    }
}

impl Shortage {
    /// Returns the amount that was lacking: CPUs, nanoseconds, bytes, byte-nanoseconds or units of a
    /// resource.
    pub fn missing(&self) -> u128 {
        match *self {
            Self::Cpus { ref missing, .. } => missing.len() as u128,
            Self::Time { end_ns, deadline_ns } => end_ns.saturating_sub(deadline_ns).into(),
            Self::Memory { needed_bytes, available_bytes } => {
                needed_bytes.saturating_sub(available_bytes).into()
            }
            Self::Resource { needed, available, .. } => needed.saturating_sub(available).into(),
            Self::NoResource { .. } => 1,
            Self::MemoryTime { want, left, min_mem_percentage } => {
                memory_time::needed(want, min_mem_percentage).saturating_sub(left)
            }
        }
    }
}
