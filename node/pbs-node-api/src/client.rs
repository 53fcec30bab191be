// SPDX-License-Identifier: GPL-2.0
//! A client that waits for each answer.

use std::fmt;
use std::path::Path;

use pbs_socket::client::Waiter;
use pbs_socket::NotAnswered;
use pbs_text::{span, underscored};
use zlink::futures_util::Stream;
use zlink::tokio::unix::Connection;

use crate::types::*;

/// Path of the service's socket.
pub const SOCKET: &str = "/run/pbs/pbs.sock";

/// A connection to the service.
#[derive(Debug)]
pub struct Client {
    connection: Connection,
    waiter: Waiter,
}

/// Reason for which there is no answer, or a refusal as the answer.
pub type Failure = pbs_socket::client::Failure<Refusal>;

#[zlink::proxy("org.sched-pbs.Node")]
trait Node {
    async fn submit(&mut self, jobs: &[Submission]) -> zlink::Result<Result<Submitted, Refusal>>;
    async fn cancel(&mut self, job: &JobKey) -> zlink::Result<Result<Shown, Refusal>>;
    async fn notify(
        &mut self,
        job: &JobKey,
        signal: &str,
    ) -> zlink::Result<Result<Notified, Refusal>>;
    async fn checkpoint(&mut self, job: &JobKey) -> zlink::Result<Result<Notified, Refusal>>;
    async fn hold(&mut self, job: &JobKey) -> zlink::Result<Result<Shown, Refusal>>;
    async fn release(&mut self, job: &JobKey) -> zlink::Result<Result<Shown, Refusal>>;
    async fn alter(
        &mut self,
        job: &JobKey,
        alteration: &Alteration,
    ) -> zlink::Result<Result<Shown, Refusal>>;
    async fn list(&mut self, filter: &Filter) -> zlink::Result<Result<Listed, Refusal>>;
    async fn show(&mut self, job: &JobKey) -> zlink::Result<Result<Shown, Refusal>>;
    async fn explain(&mut self, job: &Submission) -> zlink::Result<Result<Explanation, Refusal>>;
    async fn plan(&mut self) -> zlink::Result<Result<Plan, Refusal>>;
    async fn drain(&mut self) -> zlink::Result<Result<Status, Refusal>>;
    async fn resume(&mut self) -> zlink::Result<Result<Status, Refusal>>;
    async fn set_resource(
        &mut self,
        name: &str,
        amount: u64,
    ) -> zlink::Result<Result<Status, Refusal>>;
    async fn status(&mut self) -> zlink::Result<Result<Status, Refusal>>;
    async fn metrics(&mut self) -> zlink::Result<Result<Metrics, Refusal>>;
    async fn allocate(
        &mut self,
        job: u32,
        step: u32,
        uid: u32,
        cores: &[u32],
        memory_bytes: Option<u64>,
        until_unix_s: Option<u64>,
    ) -> zlink::Result<Result<Allocated, Refusal>>;
    async fn deallocate(
        &mut self,
        job: u32,
        step: u32,
    ) -> zlink::Result<Result<Deallocated, Refusal>>;
    #[zlink(more)]
    async fn watch(
        &mut self,
        job: Option<&JobKey>,
    ) -> zlink::Result<impl Stream<Item = zlink::Result<Result<Notice, Refusal>>>>;
}

impl Client {
    /// Connects to the service that listens at `path`.
    ///
    /// # Errors
    ///
    /// No service listens there.
    pub fn connect(path: &Path) -> Result<Self, Failure> {
        let (connection, waiter) = pbs_socket::client::connect(path)?;
        Ok(Self { connection, waiter })
    }

    /// Submits jobs: all of them, or none.
    pub fn submit(&mut self, jobs: &[Submission]) -> Result<Vec<Job>, Failure> {
        let answer = self.waiter.answer(self.connection.submit(jobs));
        answer.map(|submitted| submitted.jobs)
    }

    /// Cancels a job.
    pub fn cancel(&mut self, job: &JobKey) -> Result<Shown, Failure> {
        self.waiter.answer(self.connection.cancel(job))
    }

    /// Notifies the programs of a running job that handle a signal. Returns the number of processes.
    pub fn notify(&mut self, job: &JobKey, signal: &str) -> Result<u64, Failure> {
        let answer = self.waiter.answer(self.connection.notify(job, signal));
        answer.map(|notified| notified.processes)
    }

    /// Asks the programs of a running job to save their work.
    pub fn checkpoint(&mut self, job: &JobKey) -> Result<Notified, Failure> {
        self.waiter.answer(self.connection.checkpoint(job))
    }

    /// Holds a waiting job: it is not planned until it is released.
    pub fn hold(&mut self, job: &JobKey) -> Result<Shown, Failure> {
        self.waiter.answer(self.connection.hold(job))
    }

    /// Releases a held job.
    pub fn release(&mut self, job: &JobKey) -> Result<Shown, Failure> {
        self.waiter.answer(self.connection.release(job))
    }

    /// Changes a job.
    pub fn alter(&mut self, job: &JobKey, alteration: &Alteration) -> Result<Shown, Failure> {
        self.waiter.answer(self.connection.alter(job, alteration))
    }

    /// Lists the jobs that match the filter.
    pub fn list(&mut self, filter: &Filter) -> Result<Vec<Job>, Failure> {
        self.waiter.answer(self.connection.list(filter)).map(|listed| listed.jobs)
    }

    /// Returns all data about a job.
    pub fn show(&mut self, job: &JobKey) -> Result<Shown, Failure> {
        self.waiter.answer(self.connection.show(job))
    }

    /// Returns the service's decision on a job, without submitting it.
    pub fn explain(&mut self, job: &Submission) -> Result<Explanation, Failure> {
        self.waiter.answer(self.connection.explain(job))
    }

    /// Returns the plan of all jobs.
    pub fn plan(&mut self) -> Result<Option<String>, Failure> {
        self.waiter.answer(self.connection.plan()).map(|plan| plan.plan)
    }

    /// Stops planning new jobs, or resumes it.
    pub fn drain(&mut self, drained: bool) -> Result<Status, Failure> {
        if drained {
            self.waiter.answer(self.connection.drain())
        } else {
            self.waiter.answer(self.connection.resume())
        }
    }

    /// Sets the amount of a resource for new jobs.
    pub fn set_resource(&mut self, name: &str, amount: u64) -> Result<Status, Failure> {
        self.waiter.answer(self.connection.set_resource(name, amount))
    }

    /// Returns the state of the service.
    pub fn status(&mut self) -> Result<Status, Failure> {
        self.waiter.answer(self.connection.status())
    }

    /// Returns what the service has counted since its start.
    pub fn metrics(&mut self) -> Result<Metrics, Failure> {
        self.waiter.answer(self.connection.metrics())
    }

    /// Reserves cores for the jobs of a user in an allocation; for root.
    pub fn allocate(
        &mut self,
        (job, step): (u32, u32),
        uid: u32,
        cores: &[u32],
        memory_bytes: Option<u64>,
        until_unix_s: Option<u64>,
    ) -> Result<Vec<u32>, Failure> {
        let connection = &mut self.connection;
        let asked = connection.allocate(job, step, uid, cores, memory_bytes, until_unix_s);
        self.waiter.answer(asked).map(|allocated| allocated.cpus)
    }

    /// Ends a step of an allocation; for root.
    pub fn deallocate(&mut self, job: u32, step: u32) -> Result<Vec<u64>, Failure> {
        let asked = self.connection.deallocate(job, step);
        self.waiter.answer(asked).map(|deallocated| deallocated.ending)
    }

    /// Passes notices to `notice` until it returns that no more are wanted.
    pub fn watch(
        mut self,
        job: Option<&JobKey>,
        notice: impl FnMut(Notice) -> bool,
    ) -> Result<(), Failure> {
        let notices = self.connection.watch(job);
        self.waiter.answers(notices, notice)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotPermitted { what } => {
                write!(
                    f,
                    "not permitted: {what}; only its owner and operators (group \
                           pbs-operators) may do that"
                )
            }
            Self::Declined { job, why, earliest_deadline_ns } => {
                write!(f, "job {job} is declined: {why}; ")?;
                match earliest_deadline_ns {
                    Some(ns) => {
                        let (written, span) = (underscored(*ns), span(*ns));
                        write!(
                            f,
                            "it would be admitted with deadline_ns = {written} ({span}), or with \
                             --best-effort, which promises nothing"
                        )
                    }
                    None => f.write_str("no deadline was found that would do"),
                }
            }
            Self::Invalid { problems, .. } => f.write_str(&problems.join("\n")),
            Self::NoSuchJob { job } if job.bytes().all(|byte| byte.is_ascii_digit()) => {
                write!(f, "there is no job {job}; pbsctl job list lists the jobs")
            }
            Self::NoSuchJob { job } => write!(
                f,
                "no job named {job} waits or runs; give the number of one that is over (pbsctl job \
                 list)"
            ),
            Self::NotInState { what } => f.write_str(what),
            Self::Busy => f.write_str("the service has too many requests; ask again later"),
            Self::Lagged => {
                f.write_str("notices were lost, since they were read too slowly; watch again")
            }
            Self::Failed { why } => f.write_str(why),
        }
    }
}

/// Answer of a service that is stopping.
const STOPPING: &str = "the service is stopping";

impl Refusal {
    /// Whether the call may succeed later as it is: the service had too much to do, or stopped.
    pub fn is_temporary(&self) -> bool {
        match self {
            Self::Busy => true,
            Self::Failed { why } => why == STOPPING,
            _ => false,
        }
    }
}

impl From<NotAnswered> for Refusal {
    fn from(why: NotAnswered) -> Self {
        match why {
            NotAnswered::Busy => Self::Busy,
            NotAnswered::Stopping => Self::Failed { why: STOPPING.into() },
        }
    }
}

impl pbs_socket::client::Refusal for Refusal {
    const SERVICE: &str = "the service pbsd";
}
