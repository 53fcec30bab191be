// SPDX-License-Identifier: GPL-2.0
//! Client that waits for each answer.

use std::fmt;
use std::path::Path;

use pbs_socket::client::Waiter;
use zlink::futures_util::Stream;
use zlink::tokio::unix::Connection;

use crate::types::*;

/// A connection to the manager.
#[derive(Debug)]
pub struct Client {
    connection: Connection,
    waiter: Waiter,
}

/// Failure of a call: no answer, or a refusal.
pub type Failure = pbs_socket::client::Failure<Refusal>;

#[zlink::proxy("org.sched-pbs.Rms")]
trait Manager {
    async fn connect(&mut self, name: &str) -> zlink::Result<Result<Connected, Refusal>>;
    async fn disconnect(&mut self, session: u64) -> zlink::Result<Result<(), Refusal>>;
    async fn request(
        &mut self,
        session: u64,
        asked: &Asked,
    ) -> zlink::Result<Result<Made, Refusal>>;
    async fn done(
        &mut self,
        session: u64,
        request: u64,
        released: &[u32],
    ) -> zlink::Result<Result<(), Refusal>>;
    async fn update(
        &mut self,
        session: u64,
        update: &Change,
    ) -> zlink::Result<Result<Made, Refusal>>;
    async fn waste(&mut self, session: u64, node_ns: u64) -> zlink::Result<Result<(), Refusal>>;
    async fn sessions(&mut self) -> zlink::Result<Result<Sessions, Refusal>>;
    async fn nodes(&mut self) -> zlink::Result<Result<AllNodes, Refusal>>;
    async fn views(&mut self, session: u64) -> zlink::Result<Result<Seen, Refusal>>;
    async fn accounts(&mut self) -> zlink::Result<Result<Accounts, Refusal>>;
    #[zlink(more)]
    async fn monitor(
        &mut self,
        session: u64,
    ) -> zlink::Result<impl Stream<Item = zlink::Result<Result<Notice, Refusal>>>>;
}

impl Client {
    /// Connects to the manager that listens there.
    pub fn connect_to(path: &Path) -> Result<Self, Failure> {
        let (connection, waiter) = pbs_socket::client::connect(path)?;
        Ok(Self { connection, waiter })
    }

    /// Begins a session.
    pub fn connect(&mut self, name: &str) -> Result<Connected, Failure> {
        self.waiter.answer(self.connection.connect(name))
    }

    /// Ends a session and all its requests.
    pub fn disconnect(&mut self, session: u64) -> Result<(), Failure> {
        self.waiter.answer(self.connection.disconnect(session))
    }

    /// Requests nodes: request().
    pub fn request(&mut self, session: u64, asked: &Asked) -> Result<u64, Failure> {
        let answer = self.connection.request(session, asked);
        self.waiter.answer(answer).map(|made| made.request)
    }

    /// Ends a request, or withdraws it: done().
    pub fn done(&mut self, session: u64, request: u64, released: &[u32]) -> Result<(), Failure> {
        let answer = self.connection.done(session, request, released);
        self.waiter.answer(answer)
    }

    /// Changes a request's nodes. Returns the number of the request that takes its place. For an
    /// announced change, also returns the number of the request that has the nodes until then.
    pub fn update(&mut self, session: u64, update: &Change) -> Result<Made, Failure> {
        let answer = self.connection.update(session, update);
        self.waiter.answer(answer)
    }

    /// Reports node-time lost by killing.
    pub fn waste(&mut self, session: u64, node_ns: u64) -> Result<(), Failure> {
        self.waiter.answer(self.connection.waste(session, node_ns))
    }

    /// Returns the state of all sessions.
    pub fn sessions(&mut self) -> Result<Vec<Session>, Failure> {
        self.waiter.answer(self.connection.sessions()).map(|all| all.sessions)
    }

    /// Returns the nodes of each cluster that no session has or waits for.
    pub fn nodes(&mut self) -> Result<Vec<ClusterNodes>, Failure> {
        self.waiter.answer(self.connection.nodes()).map(|all| all.clusters)
    }

    /// Returns the views of a session.
    pub fn views(&mut self, session: u64) -> Result<Vec<View>, Failure> {
        self.waiter.answer(self.connection.views(session)).map(|seen| seen.views)
    }

    /// Returns the accounts of the caller's sessions; for operators, of all sessions.
    pub fn accounts(&mut self) -> Result<Vec<Account>, Failure> {
        self.waiter.answer(self.connection.accounts()).map(|all| all.accounts)
    }

    /// Passes notices of a session to `notice`, beginning with its current state, until `notice`
    /// returns `false`.
    pub fn monitor(
        mut self,
        session: u64,
        notice: impl FnMut(Notice) -> bool,
    ) -> Result<(), Failure> {
        let notices = self.connection.monitor(session);
        self.waiter.answers(notices, notice)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchSession { session } => {
                write!(f, "there is no session {session}; pbsctl rms requests lists the sessions")
            }
            Self::NotPermitted { what } => {
                write!(
                    f,
                    "not permitted: {what}; only its user and operators (group \
                           pbs-operators) may do that"
                )
            }
            Self::Refused { why } => f.write_str(why),
            Self::TooManySessions { most } => {
                write!(f, "a user may have at most {most} sessions; end some first")
            }
            Self::Lagged => f.write_str(
                "notices were lost, since they were read too slowly; monitor the session again",
            ),
        }
    }
}

impl pbs_socket::client::Refusal for Refusal {
    const SERVICE: &str = "the resource manager";
}
