// SPDX-License-Identifier: GPL-2.0
//! A client that waits for each answer.

use std::fmt;
use std::path::Path;

use pbs_manager::ledger::Row;
use pbs_manager::Error;
use pbs_socket::client::Waiter;
use pbs_socket::NotAnswered;
use zlink::futures_util::Stream;
use zlink::tokio::unix::Connection;

use crate::types::*;

/// Path of the service's socket.
pub const SOCKET: &str = "/run/pbs/cluster.sock";

/// A connection to the service.
#[derive(Debug)]
pub struct Client {
    connection: Connection,
    waiter: Waiter,
}

/// Reason for which there is no answer, or a refusal as the answer.
pub type Failure = pbs_socket::client::Failure<Refusal>;

#[zlink::proxy("org.sched-pbs.Cluster")]
trait Cluster {
    async fn submit(&mut self, submission: &Submission) -> zlink::Result<Result<Changed, Refusal>>;
    async fn reserve(&mut self, submission: &Submission)
        -> zlink::Result<Result<Changed, Refusal>>;
    async fn alter(
        &mut self,
        request: u64,
        alteration: &Alteration,
    ) -> zlink::Result<Result<Changed, Refusal>>;
    async fn resize(&mut self, request: u64, rset: &str)
        -> zlink::Result<Result<Changed, Refusal>>;
    async fn extend(&mut self, request: u64, by_s: u64) -> zlink::Result<Result<Changed, Refusal>>;
    async fn confirm(&mut self, requests: &[u64]) -> zlink::Result<Result<Changed, Refusal>>;
    async fn kill(&mut self, requests: &[u64]) -> zlink::Result<Result<Changed, Refusal>>;
    async fn show(&mut self, request: u64) -> zlink::Result<Result<Shown, Refusal>>;
    async fn list(&mut self, filter: &Filter) -> zlink::Result<Result<Listed, Refusal>>;
    async fn why(&mut self, request: u64) -> zlink::Result<Result<Reasons, Refusal>>;
    async fn set_nodes(
        &mut self,
        names: &[&str],
        state: &str,
        why: &str,
    ) -> zlink::Result<Result<NodesChanged, Refusal>>;
    async fn set_defect(
        &mut self,
        names: &[&str],
        parts: &str,
        why: &str,
    ) -> zlink::Result<Result<NodesChanged, Refusal>>;
    async fn status(&mut self) -> zlink::Result<Result<Status, Refusal>>;
    async fn optimiser(&mut self) -> zlink::Result<Result<Optimiser, Refusal>>;
    #[zlink(more)]
    async fn watch(
        &mut self,
        request: Option<u64>,
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

    /// Submits a request, or all requests of an array.
    pub fn submit(&mut self, submission: &Submission) -> Result<Vec<Row>, Failure> {
        rows(self.waiter.answer(self.connection.submit(submission)))
    }

    /// Holds nodes for later requests.
    pub fn reserve(&mut self, submission: &Submission) -> Result<Vec<Row>, Failure> {
        rows(self.waiter.answer(self.connection.reserve(submission)))
    }

    /// Plans a request that has not started as something else.
    pub fn alter(&mut self, request: u64, change: &Alteration) -> Result<Vec<Row>, Failure> {
        rows(self.waiter.answer(self.connection.alter(request, change)))
    }

    /// Gives a running request another number of its chunks.
    pub fn resize(&mut self, request: u64, rset: &str) -> Result<Vec<Row>, Failure> {
        rows(self.waiter.answer(self.connection.resize(request, rset)))
    }

    /// Extends a running request.
    pub fn extend(&mut self, request: u64, by_s: u64) -> Result<Vec<Row>, Failure> {
        rows(self.waiter.answer(self.connection.extend(request, by_s)))
    }

    /// Confirms provisional requests.
    pub fn confirm(&mut self, requests: &[u64]) -> Result<Vec<Row>, Failure> {
        rows(self.waiter.answer(self.connection.confirm(requests)))
    }

    /// Ends or withdraws requests.
    pub fn kill(&mut self, requests: &[u64]) -> Result<Vec<Row>, Failure> {
        rows(self.waiter.answer(self.connection.kill(requests)))
    }

    /// Returns a request with its events.
    pub fn show(&mut self, request: u64) -> Result<Shown, Failure> {
        self.waiter.answer(self.connection.show(request))
    }

    /// Returns the time, and all requests that match the filter. They are read in parts, and each
    /// part is as the plan was then.
    pub fn list(&mut self, filter: &Filter) -> Result<(u64, Vec<Row>), Failure> {
        let (mut all, mut filter) = (Vec::new(), filter.clone());
        loop {
            let listed = self.waiter.answer(self.connection.list(&filter))?;
            all.extend(listed.requests.into_iter().map(|row| row.0));
            if listed.next.is_none() {
                return Ok((listed.clock_s, all));
            }
            filter.above = listed.next;
        }
    }

    /// Returns the causes that keep a request from an earlier start.
    pub fn why(&mut self, request: u64) -> Result<Reasons, Failure> {
        self.waiter.answer(self.connection.why(request))
    }

    /// Takes nodes out of use (`offline`, `down`) or back (`online`); for operators.
    pub fn set_nodes(
        &mut self,
        names: &[&str],
        state: &str,
        why: &str,
    ) -> Result<NodesChanged, Failure> {
        self.waiter.answer(self.connection.set_nodes(names, state, why))
    }

    /// Takes parts of nodes out of use, as `ncpus=2:mem=16g`, or `none` of them; for operators.
    pub fn set_defect(
        &mut self,
        names: &[&str],
        parts: &str,
        why: &str,
    ) -> Result<NodesChanged, Failure> {
        self.waiter.answer(self.connection.set_defect(names, parts, why))
    }

    /// Returns the state of the service.
    pub fn status(&mut self) -> Result<Status, Failure> {
        self.waiter.answer(self.connection.status())
    }

    /// Returns the work and the results of the search for better plans, and the errors of expected
    /// run times.
    pub fn optimiser(&mut self) -> Result<Optimiser, Failure> {
        self.waiter.answer(self.connection.optimiser())
    }

    /// Passes notices of all requests, or of one, to `notice` until it returns that no more are
    /// wanted.
    pub fn watch(
        mut self,
        request: Option<u64>,
        notice: impl FnMut(Notice) -> bool,
    ) -> Result<(), Failure> {
        let notices = self.connection.watch(request);
        self.waiter.answers(notices, notice)
    }
}

/// Returns the requests of an answer.
fn rows(answer: Result<Changed, Failure>) -> Result<Vec<Row>, Failure> {
    answer.map(|changed| changed.requests.into_iter().map(|row| row.0).collect())
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotPermitted { what } => Error::NotPermitted(what.clone()).fmt(f),
            Self::Declined { why } | Self::Failed { why } => f.write_str(why),
            Self::Invalid { what } | Self::NotInState { what } => f.write_str(what),
            Self::NoSuchRequest { request } => Error::NoRequest(*request).fmt(f),
            Self::Busy => f.write_str("the service has too many calls; ask again later"),
            Self::Lagged => {
                f.write_str("notices were lost, since they were read too slowly; watch again")
            }
        }
    }
}

impl From<NotAnswered> for Refusal {
    fn from(why: NotAnswered) -> Self {
        match why {
            NotAnswered::Busy => Self::Busy,
            NotAnswered::Stopping => Self::Failed { why: "the service is stopping".into() },
        }
    }
}

impl pbs_socket::client::Refusal for Refusal {
    const SERVICE: &str = "the service pbs-clusterd";
}
