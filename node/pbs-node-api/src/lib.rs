// SPDX-License-Identifier: GPL-2.0
//! The interface of the service of a node, over varlink: what can be asked of it, and
//! what it answers.
//!
//! Times are nanoseconds. Those that end in `_unix_ns` count from 1970, the others from
//! the submission of a job.

mod client;
mod lasting;
mod types;

pub use client::{Client, Failure, SOCKET};
pub use lasting::Lasting;
pub use types::{
    Allocated, Alteration, AnswersWithin, Array, Budget, Deallocated, EndedJobs, Environment,
    Explanation, Filter, Job, JobKey, Limit, Listed, MethodMetrics, Metrics, Notice, Notified,
    OpenJobs, Plan, Process, Program, Refusal, Resource, Shown, Status, Submission, Submitted,
    Usage, UserMetrics,
};
