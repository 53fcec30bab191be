// SPDX-License-Identifier: GPL-2.0
//! Types of the messages on the socket.

use serde::{Deserialize, Serialize};
use zlink::introspect::{CustomType, ReplyError, Type};

/// A job that is to be run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, CustomType)]
pub struct Submission {
    /// Name of the job's file in messages
    pub file: String,
    /// The job file itself (TOML)
    pub request: String,
    /// The name of the job, instead of that in its file
    pub name: Option<String>,
    /// Priority, instead of the one in its file; above 0 for operators only
    pub priority: Option<u32>,
    /// Deadline counted from the submission, instead of the one in its file
    pub deadline_ns: Option<u64>,
    /// Whether the job is run as best effort: behind all jobs with a promise, and without one
    pub best_effort: Option<bool>,
    /// Whether the job is held until it is released
    pub hold: Option<bool>,
    /// Numbers of jobs that have to be over before it is planned
    pub after: Option<Vec<u64>>,
    /// Numbers of jobs that have to have succeeded before it is planned
    pub afterok: Option<Vec<u64>>,
    /// Indices of an array: the job is submitted once for each. SCHED_PBS_ARRAY_INDEX and the job's
    /// name contain the index
    pub array: Option<Array>,
    /// The working directory of its programs
    pub directory: String,
    /// File mode creation mask of its programs
    pub umask: u32,
    /// Complete environment of its programs
    pub environment: Vec<Environment>,
    /// Limits of its programs; those of the service cap them
    pub limits: Option<Vec<Limit>>,
    /// Output file of programs that are not redirected; by default NAME-NUMBER.out
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
    /// Name of the variable
    pub name: String,
    /// Value of the variable
    pub value: String,
}

/// A limit of setrlimit(2).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, CustomType)]
pub struct Limit {
    /// Name of the resource in setrlimit(2), in small letters and without RLIMIT_
    pub resource: String,
    /// Initial limit; none: no limit
    pub soft: Option<u64>,
    /// Maximum to which the limit can be raised; none: no limit
    pub hard: Option<u64>,
}

/// State of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, CustomType)]
pub struct Job {
    /// Number of the job
    pub number: u64,
    /// Name of the job
    pub name: String,
    /// The user who has submitted it; none: it was run by pbsctl run
    pub uid: Option<u32>,
    /// held, waiting, planned, running or over
    pub state: String,
    /// Reason for which it waits, or did not complete
    pub reason: Option<String>,
    /// If it is over: complete, killed, ejected, absent, unknown, declined, cancelled or
    /// failed
    pub outcome: Option<String>,
    /// Priority; a greater number is more important
    pub priority: Option<u32>,
    /// Whether it is run as best effort, without a promise; none: unknown
    pub best_effort: Option<bool>,
    /// The CPUs that it is confined to; none: it is not
    pub cpus: Option<Vec<u32>>,
    /// The allocation that it is in
    pub allocation: Option<u32>,
    /// Time of submission
    pub submitted_unix_ns: u64,
    /// Deadline
    pub deadline_unix_ns: Option<u64>,
    /// Planned start
    pub expected_start_unix_ns: Option<u64>,
    /// Planned end
    pub expected_end_unix_ns: Option<u64>,
    /// Time at which its programs were released; they begin in their slots
    pub started_unix_ns: Option<u64>,
    /// Time of its first instruction in a slot; none: it has not begun
    pub begun_unix_ns: Option<u64>,
    /// End of the job
    pub ended_unix_ns: Option<u64>,
    /// Whether it did all that it was to do before its deadline
    pub kept: Option<bool>,
    /// Exit status of the program that made it fail
    pub exit_code: Option<i32>,
    /// Name of the signal that killed it, such as SIGKILL
    pub signal: Option<String>,
}

/// A job by its number, or by its name if the user has one of that name that is not over.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, CustomType)]
pub struct JobKey {
    /// Number of the job
    pub number: Option<u64>,
    /// Name of the job
    pub name: Option<String>,
}

/// Changes to a job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, CustomType)]
pub struct Alteration {
    /// Deadline, counted from its submission
    pub deadline_ns: Option<u64>,
    /// Priority; above 0 for operators only
    pub priority: Option<u32>,
    /// The job file (TOML), while it is not planned
    pub request: Option<String>,
}

/// Filter of the jobs to be listed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, CustomType)]
pub struct Filter {
    /// State of the jobs
    pub state: Option<String>,
    /// User of the jobs
    pub uid: Option<u32>,
    /// Name of the jobs
    pub name: Option<String>,
    /// Number of jobs that are over to be listed as well: the last ones
    pub last: Option<u64>,
}

/// A process of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, CustomType)]
pub struct Process {
    /// Number of the process in the job
    pub number: u32,
    /// Name of the process
    pub name: Option<String>,
    /// Kind of its end, or unknown
    pub outcome: String,
    /// Number of its tasks about which figures exist
    pub tasks: u64,
    /// Number of its tasks that have ended
    pub ended_tasks: u64,
    /// Planned length of these tasks, in instructions
    pub planned_insns: u64,
    /// Instructions that these tasks have retired
    pub retired_insns: u64,
    /// The most memory that it was seen to have
    pub peak_memory_bytes: u64,
}

/// Resources of a job as a whole, with all processes that its programs started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, CustomType)]
pub struct Usage {
    /// CPU time of all processes in its control group; none: unknown
    pub cpu_ns: Option<u64>,
    /// CPU time of the programs of its processes; none: unknown
    pub programs_cpu_ns: Option<u64>,
    /// CPU time of processes that these programs started, outside of the plan; none: unknown
    pub others_cpu_ns: Option<u64>,
    /// The most memory that it had; none: unknown
    pub peak_memory_bytes: Option<u64>,
    /// Source of the memory: group, its control group with file cache; or class, the sum of the
    /// greatest resident sizes of its processes
    pub memory_source: Option<String>,
    /// What its owner should change, in words
    pub advice: Option<String>,
}

/// End of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, CustomType)]
pub struct Program {
    /// The number of its process in the job
    pub process: u32,
    /// The program
    pub program: String,
    /// Exit status, if it exited
    pub code: Option<i32>,
    /// The signal, if that killed it
    pub signal: Option<i32>,
    /// Reason for which it could not be executed
    pub error: Option<String>,
}

/// Notice of an event.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Type)]
pub struct Notice {
    /// Time of the event
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
    /// States of the jobs
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
    /// State of the job
    pub job: Job,
    /// The job file, for its owner and for operators, while it is not over
    pub request: Option<String>,
    /// Processes of the job, as far as they have run, for its owner and for operators
    pub processes: Vec<Process>,
    /// Programs of the job, once it is over, for its owner and for operators
    pub programs: Vec<Program>,
    /// Resources of the job as a whole, as far as they are known, for its owner and for operators
    pub usage: Option<Usage>,
}

/// Decision on a job, without submitting it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Type)]
pub struct Explanation {
    /// Whether it would be admitted
    pub admitted: bool,
    /// Reason for which it would be declined
    pub why: Option<String>,
    /// Deadline with which it would be admitted, counted from its submission
    pub earliest_deadline_ns: Option<u64>,
    /// Planned start
    pub expected_start_unix_ns: Option<u64>,
    /// Planned end
    pub expected_end_unix_ns: Option<u64>,
    /// Change of its CPUs because of slow-downs
    pub slowdowns: Option<String>,
}

/// Resources that another resource manager has allocated to one of its own jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Type)]
pub struct Allocated {
    /// The CPUs that are only for jobs in that allocation
    pub cpus: Vec<u32>,
}

/// Jobs that ended with an allocation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Type)]
pub struct Deallocated {
    /// The numbers of its jobs that were told to end
    pub ending: Vec<u64>,
}

/// Processes that were notified.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Type)]
pub struct Notified {
    /// Number of processes of the job that handle the signal and got it
    pub processes: u64,
}

/// The plan of all jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Type)]
pub struct Plan {
    /// The plan as pbsctl reads it (TOML), for operators only; none: nothing is planned
    pub plan: Option<String>,
}

/// State of the service.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Type)]
pub struct Status {
    /// Version of the service
    pub version: String,
    /// running or draining
    pub state: String,
    /// The release of the kernel
    pub kernel: String,
    /// Instructions that a CPU retires in a millisecond
    pub rate_insns_per_ms: u64,
    /// Start of the service
    pub since_unix_ns: u64,
    /// Jobs that wait
    pub waiting: u64,
    /// Jobs that are planned and have not begun
    pub planned: u64,
    /// Jobs that run
    pub running: u64,
    /// Whether the last attempt to record something has succeeded
    pub recorded: bool,
    /// Countable resources of the node; none: it has none
    pub resources: Option<Vec<Resource>>,
}

/// A countable resource of the node, such as the licences of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, CustomType)]
pub struct Resource {
    /// Name of the resource
    pub name: String,
    /// Amount for new jobs
    pub amount: u64,
    /// Amount in the file of the machine
    pub declared: u64,
    /// The most that jobs which were admitted hold at once from now on; it may exceed the amount
    pub promised: u64,
}

/// Counts since the start of the service.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Type)]
pub struct Metrics {
    /// Jobs that are not over now, by their states
    pub open_jobs: Vec<OpenJobs>,
    /// Users who have open jobs, have submitted one, or whose job has ended. A thousand are counted
    /// each by itself, and all others together, without a number. Subordinate users count as their
    /// owner
    pub users: Vec<UserMetrics>,
    /// Methods of the interface
    pub methods: Vec<MethodMetrics>,
    /// Results that wait to be recorded; none: a version before sent this
    pub results_unrecorded: Option<u64>,
    /// Results that are lost; none: a version before sent this
    pub results_lost: Option<u64>,
}

/// Jobs in one state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, CustomType)]
pub struct OpenJobs {
    /// held, waiting, planned or running
    pub state: String,
    /// Number of these jobs
    pub jobs: u64,
}

/// Jobs of a user, since the start of the service.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, CustomType)]
pub struct UserMetrics {
    /// The user; none: all others together
    pub uid: Option<u32>,
    /// Jobs that were submitted
    pub submitted: u64,
    /// Jobs that have ended, by their outcomes
    pub ended: Vec<EndedJobs>,
    /// Jobs that have kept the deadline that they were promised
    pub deadlines_kept: u64,
    /// Jobs that have missed it
    pub deadlines_missed: u64,
    /// Parts of the user's budget; none for all others together
    pub budgets: Vec<Budget>,
}

/// Jobs that have ended in one way.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, CustomType)]
pub struct EndedJobs {
    /// The outcome, as in Job
    pub outcome: String,
    /// Number of these jobs
    pub jobs: u64,
}

/// Part of a user's budget.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, CustomType)]
pub struct Budget {
    /// jobs, tasks, programs or bytes
    pub resource: String,
    /// Amount that open jobs of the user have now
    pub used: u64,
    /// Amount that a user may have who is no operator
    pub limit: u64,
}

/// Calls of a method, since the start of the service.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, CustomType)]
pub struct MethodMetrics {
    /// Name of the method
    pub method: String,
    /// Calls that were answered
    pub calls: u64,
    /// Number of these that were refused
    pub refused: u64,
    /// Sum of the times from the call to its answer
    pub answer_ns: u64,
    /// Numbers of calls by the time to the answer, up to each bound
    pub answers: Vec<AnswersWithin>,
}

/// Calls that were answered within a time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, CustomType)]
pub struct AnswersWithin {
    /// The greatest time
    pub within_ns: u64,
    /// Number of calls that took no longer
    pub calls: u64,
}

/// Reason for which a request was refused.
#[derive(Clone, Debug, PartialEq, Eq, zlink::ReplyError, ReplyError)]
#[zlink(interface = "org.sched-pbs.Node")]
pub enum Refusal {
    /// Only its owner, or an operator, may do that
    NotPermitted {
        /// Request that is not permitted
        what: String,
    },
    /// The job would miss its deadline, or there is too little of something for it
    Declined {
        /// Name of the job
        job: String,
        /// Description of the resource that was lacking
        why: String,
        /// Deadline with which it would be admitted, counted from its submission; none: no deadline
        earliest_deadline_ns: Option<u64>,
    },
    /// The request is not valid
    Invalid {
        /// Name of the file in messages
        file: String,
        /// Problems of the file: a dozen, and the number of the others
        problems: Vec<String>,
    },
    /// No such job exists
    NoSuchJob {
        /// Number or name of the job
        job: String,
    },
    /// The request can't be fulfilled in the job's present state
    NotInState {
        /// Explanation of that state
        what: String,
    },
    /// Too many requests or connections; ask again later
    Busy,
    /// Notices came faster than they were read, and some are lost
    Lagged,
    /// The service could not do it
    Failed {
        /// Reason of the failure
        why: String,
    },
}
