// SPDX-License-Identifier: GPL-2.0
//! A client that waits for each answer.

use std::fmt;
use std::path::Path;

use tokio::runtime::{Builder, Runtime};
use zlink::futures_util::{Stream, StreamExt};
use zlink::tokio::unix::Connection;

use crate::types::*;

/// Where the service listens.
pub const SOCKET: &str = "/run/pbs/pbs.sock";

/// A connection to the service.
#[derive(Debug)]
pub struct Client {
    connection: Connection,
    runtime: Runtime,
}

/// Why there is no answer, or that it is a refusal.
#[derive(Debug)]
pub enum Failure {
    /// The service was not reached, or does not speak as it should.
    Connection(zlink::Error),
    /// It said no.
    Refused(Refusal),
}

#[zlink::proxy("org.sched-pbs.Node")]
trait Node {
    async fn submit(&mut self, jobs: &[Submission]) -> zlink::Result<Result<Submitted, Refusal>>;
    async fn cancel(&mut self, job: &JobKey) -> zlink::Result<Result<Shown, Refusal>>;
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
    async fn status(&mut self) -> zlink::Result<Result<Status, Refusal>>;
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
    /// Connects to the service that listens there.
    ///
    /// # Errors
    ///
    /// Nobody does.
    pub fn connect(path: &Path) -> Result<Self, Failure> {
        let runtime = Builder::new_current_thread().enable_io().build();
        let runtime = runtime.map_err(|error| Failure::Connection(error.into()))?;
        let connection = runtime.block_on(zlink::tokio::unix::connect(path));
        Ok(Self {
            connection: connection.map_err(Failure::Connection)?,
            runtime,
        })
    }

    /// Has jobs be run: all of them, or none.
    pub fn submit(&mut self, jobs: &[Submission]) -> Result<Vec<Job>, Failure> {
        let answer = self.runtime.block_on(self.connection.submit(jobs));
        said(answer).map(|submitted| submitted.jobs)
    }

    /// Has a job be over before its time.
    pub fn cancel(&mut self, job: &JobKey) -> Result<Shown, Failure> {
        said(self.runtime.block_on(self.connection.cancel(job)))
    }

    /// Has a job that waits not be planned.
    pub fn hold(&mut self, job: &JobKey) -> Result<Shown, Failure> {
        said(self.runtime.block_on(self.connection.hold(job)))
    }

    /// Has a job that is held be planned again.
    pub fn release(&mut self, job: &JobKey) -> Result<Shown, Failure> {
        said(self.runtime.block_on(self.connection.release(job)))
    }

    /// Changes a job.
    pub fn alter(&mut self, job: &JobKey, alteration: &Alteration) -> Result<Shown, Failure> {
        said(
            self.runtime
                .block_on(self.connection.alter(job, alteration)),
        )
    }

    /// How jobs stand.
    pub fn list(&mut self, filter: &Filter) -> Result<Vec<Job>, Failure> {
        said(self.runtime.block_on(self.connection.list(filter))).map(|listed| listed.jobs)
    }

    /// All that is known of a job.
    pub fn show(&mut self, job: &JobKey) -> Result<Shown, Failure> {
        said(self.runtime.block_on(self.connection.show(job)))
    }

    /// What would be said of a job.
    pub fn explain(&mut self, job: &Submission) -> Result<Explanation, Failure> {
        said(self.runtime.block_on(self.connection.explain(job)))
    }

    /// The plan of all jobs.
    pub fn plan(&mut self) -> Result<Option<String>, Failure> {
        said(self.runtime.block_on(self.connection.plan())).map(|plan| plan.plan)
    }

    /// Has nothing new be admitted, or has it be again.
    pub fn drain(&mut self, drained: bool) -> Result<Status, Failure> {
        said(match drained {
            true => self.runtime.block_on(self.connection.drain()),
            false => self.runtime.block_on(self.connection.resume()),
        })
    }

    /// How the service is.
    pub fn status(&mut self) -> Result<Status, Failure> {
        said(self.runtime.block_on(self.connection.status()))
    }

    /// Has cores be only for jobs of that user in that allocation; for root.
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
        said(self.runtime.block_on(asked)).map(|allocated| allocated.cpus)
    }

    /// Has a step of an allocation be over; for root.
    pub fn deallocate(&mut self, job: u32, step: u32) -> Result<Vec<u64>, Failure> {
        let asked = self.connection.deallocate(job, step);
        said(self.runtime.block_on(asked)).map(|deallocated| deallocated.ending)
    }

    /// Hands over what happens, until `notice` says that it is enough.
    pub fn watch(
        mut self,
        job: Option<&JobKey>,
        mut notice: impl FnMut(Notice) -> bool,
    ) -> Result<(), Failure> {
        self.runtime.block_on(async {
            let notices = self.connection.watch(job).await;
            let mut notices = std::pin::pin!(notices.map_err(Failure::Connection)?);
            while let Some(next) = notices.next().await {
                if !notice(said(next)?) {
                    break;
                }
            }
            Ok(())
        })
    }
}

fn said<T>(answer: zlink::Result<Result<T, Refusal>>) -> Result<T, Failure> {
    match answer {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(refusal)) => Err(Failure::Refused(refusal)),
        Err(error) => Err(Failure::Connection(error)),
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotPermitted { what } => {
                write!(
                    f,
                    "{what}: only its owner, or an operator (group pbs-operators), may"
                )
            }
            Self::Declined {
                job,
                why,
                earliest_deadline_ns,
            } => {
                write!(f, "job {job} is declined: {why}; ")?;
                match earliest_deadline_ns {
                    Some(ns) => write!(f, "it would be admitted with deadline_ns = {ns}"),
                    None => f.write_str("it would not be admitted with any deadline"),
                }
            }
            Self::Invalid { problems, .. } => f.write_str(&problems.join("\n")),
            Self::NoSuchJob { job } => write!(f, "there is no job {job}; see pbsctl jobs"),
            Self::NotInState { what } => f.write_str(what),
            Self::Busy => f.write_str("the service has too many requests; ask again later"),
            Self::Lagged => f.write_str("notices came faster than they were read"),
            Self::Failed { why } => f.write_str(why),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connection(error) => write!(f, "the service pbsd does not answer: {error}"),
            Self::Refused(refusal) => refusal.fmt(f),
        }
    }
}

impl std::error::Error for Failure {}
