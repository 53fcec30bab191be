// SPDX-License-Identifier: GPL-2.0
//! What goes over the socket.

use serde::{Deserialize, Serialize};
use zlink::introspect::{CustomType, ReplyError, Type};

/// A job that is to be run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, CustomType)]
pub struct Submission {
    /// What its file is called in messages
    pub file: String,
    /// The job file itself (TOML)
    pub request: String,
    /// The name of the job, instead of that in its file
    pub name: Option<String>,
    /// Its priority, instead of that in its file; above 0 for operators only
    pub priority: Option<u32>,
    /// It is to be run as best effort: behind all that has a promise, and without one
    pub best_effort: Option<bool>,
    /// It is to wait until it is released
    pub hold: Option<bool>,
    /// Numbers of jobs that have to be over before it is planned
    pub after: Option<Vec<u64>>,
    /// Numbers of jobs that have to have succeeded before it is planned
    pub afterok: Option<Vec<u64>>,
    /// It is submitted once for each index, which is in SCHED_PBS_ARRAY_INDEX and in its name
    pub array: Option<Array>,
    /// The working directory of its programs
    pub directory: String,
    /// Their file mode creation mask
    pub umask: u32,
    /// All of their environment
    pub environment: Vec<Environment>,
    /// Their limits; never more than those of the service
    pub limits: Option<Vec<Limit>>,
    /// Where programs write to that name no file; by default NAME-NUMBER.out
    pub output: Option<String>,
    /// The allocation that it is to be planned in, by its number: one of the user's own
    pub allocation: Option<u32>,
}

/// Indices of an array of jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, CustomType)]
pub struct Array {
    /// The first index
    pub first: u32,
    /// The last one
    pub last: u32,
    /// From one to the next; by default 1
    pub step: Option<u32>,
}

/// A variable of the environment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, CustomType)]
pub struct Environment {
    /// Its name
    pub name: String,
    /// Its value
    pub value: String,
}

/// A limit of setrlimit(2).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, CustomType)]
pub struct Limit {
    /// Its name there, in small letters and without RLIMIT_
    pub resource: String,
    /// What there is at first; none: no limit
    pub soft: Option<u64>,
    /// What it can be raised to; none: no limit
    pub hard: Option<u64>,
}

/// How a job stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, CustomType)]
pub struct Job {
    /// Its number
    pub number: u64,
    /// Its name
    pub name: String,
    /// The user who has submitted it; none: it was run by pbsctl run
    pub uid: Option<u32>,
    /// held, waiting, planned, running or over
    pub state: String,
    /// Why it waits, or why it did not come to its end
    pub reason: Option<String>,
    /// If it is over: complete, killed, ejected, absent, unknown, declined, cancelled or
    /// failed
    pub outcome: Option<String>,
    /// How important it is; the greater, the more
    pub priority: Option<u32>,
    /// Whether it is run as best effort, without a promise; none: that is not known
    pub best_effort: Option<bool>,
    /// The CPUs that it is confined to; none: it is not
    pub cpus: Option<Vec<u32>>,
    /// The allocation that it is in
    pub allocation: Option<u32>,
    /// When it was submitted
    pub submitted_unix_ns: u64,
    /// When it is to have ended
    pub deadline_unix_ns: Option<u64>,
    /// When it is planned to begin
    pub expected_start_unix_ns: Option<u64>,
    /// When it is planned to have ended
    pub expected_end_unix_ns: Option<u64>,
    /// When its programs were let go; they begin in their slots
    pub started_unix_ns: Option<u64>,
    /// When it was over
    pub ended_unix_ns: Option<u64>,
    /// Whether it ended before its deadline
    pub kept: Option<bool>,
}

/// A job by its number, or by its name if the user has one of that name that is not over.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, CustomType)]
pub struct JobKey {
    /// Its number
    pub number: Option<u64>,
    /// Its name
    pub name: Option<String>,
}

/// What is to be another way about a job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, CustomType)]
pub struct Alteration {
    /// Its deadline, from its submission on
    pub deadline_ns: Option<u64>,
    /// Its priority; above 0 for operators only
    pub priority: Option<u32>,
    /// The job file (TOML), while it is not planned
    pub request: Option<String>,
}

/// Which jobs are to be listed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, CustomType)]
pub struct Filter {
    /// In that state
    pub state: Option<String>,
    /// Of that user
    pub uid: Option<u32>,
    /// Of that name
    pub name: Option<String>,
    /// So many of those that are over, too: the last ones
    pub last: Option<u64>,
}

/// A process of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, CustomType)]
pub struct Process {
    /// Its number in the job
    pub number: u32,
    /// Its name
    pub name: Option<String>,
    /// How it ended, or unknown
    pub outcome: String,
    /// Its tasks of which something is known
    pub tasks: u64,
    /// Those that have ended
    pub ended_tasks: u64,
    /// What was planned for them, in instructions
    pub planned_insns: u64,
    /// What they have retired
    pub retired_insns: u64,
    /// The most memory that it was seen to have
    pub peak_memory_bytes: u64,
}

/// How a program ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, CustomType)]
pub struct Program {
    /// The number of its process in the job
    pub process: u32,
    /// The program
    pub program: String,
    /// Its exit status, if it exited
    pub code: Option<i32>,
    /// The signal, if that killed it
    pub signal: Option<i32>,
    /// Why it could not be executed
    pub error: Option<String>,
}

/// What happens.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Type)]
pub struct Notice {
    /// When
    pub unix_ns: u64,
    /// The job that it is about
    pub job: Option<u64>,
    /// submitted, planned, running, over, held, released, altered, replanned or news
    pub kind: String,
    /// In words
    pub text: String,
}

/// The jobs that were submitted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Type)]
pub struct Submitted {
    /// As they stand
    pub jobs: Vec<Job>,
}

/// Jobs as they stand.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Type)]
pub struct Listed {
    /// The oldest first
    pub jobs: Vec<Job>,
}

/// All that is known of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Type)]
pub struct Shown {
    /// How it stands
    pub job: Job,
    /// The job file, for its owner and for operators, while it is not over
    pub request: Option<String>,
    /// Its processes, as far as they have come
    pub processes: Vec<Process>,
    /// Its programs, once it is over
    pub programs: Vec<Program>,
}

/// What would be said of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Type)]
pub struct Explanation {
    /// It would be admitted
    pub admitted: bool,
    /// Why not
    pub why: Option<String>,
    /// With which deadline it would be, from its submission on
    pub earliest_deadline_ns: Option<u64>,
    /// When it would begin
    pub expected_start_unix_ns: Option<u64>,
    /// When it would have ended
    pub expected_end_unix_ns: Option<u64>,
}

/// What another resource manager has given to a job of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Type)]
pub struct Allocated {
    /// The CPUs that are only for jobs in that allocation
    pub cpus: Vec<u32>,
}

/// What ended with an allocation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Type)]
pub struct Deallocated {
    /// The numbers of its jobs that were told to end
    pub ending: Vec<u64>,
}

/// The plan of all jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Type)]
pub struct Plan {
    /// As pbsctl reads it (TOML), for operators only; none: nothing is planned
    pub plan: Option<String>,
}

/// How the service is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Type)]
pub struct Status {
    /// Its version
    pub version: String,
    /// running or draining
    pub state: String,
    /// The release of the kernel
    pub kernel: String,
    /// How many instructions a CPU retires in a millisecond
    pub rate_insns_per_ms: u64,
    /// Since when it runs
    pub since_unix_ns: u64,
    /// Jobs that wait
    pub waiting: u64,
    /// Jobs that are planned and have not begun
    pub planned: u64,
    /// Jobs that run
    pub running: u64,
    /// Whether all that happened could be recorded
    pub recorded: bool,
}

/// Why something was not done.
#[derive(Clone, Debug, PartialEq, Eq, zlink::ReplyError, ReplyError)]
#[zlink(interface = "org.sched-pbs.Node")]
pub enum Refusal {
    /// Only its owner, or an operator, may do that
    NotPermitted {
        /// What
        what: String,
    },
    /// The job would miss its deadline, or there is too little of something for it
    Declined {
        /// Its name
        job: String,
        /// Of what
        why: String,
        /// With which deadline it would be admitted, from its submission on; none: with none
        earliest_deadline_ns: Option<u64>,
    },
    /// What was sent is not valid
    Invalid {
        /// What its file is called
        file: String,
        /// All that is wrong with it
        problems: Vec<String>,
    },
    /// There is no such job
    NoSuchJob {
        /// Its number or its name
        job: String,
    },
    /// That can't be done with a job that is so far
    NotInState {
        /// What to know about it
        what: String,
    },
    /// There are too many requests or connections; ask again later
    Busy,
    /// Notices came faster than they were read, and some are lost
    Lagged,
    /// The service could not do it
    Failed {
        /// Why
        why: String,
    },
}
