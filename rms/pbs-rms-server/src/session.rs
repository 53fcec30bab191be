// SPDX-License-Identifier: GPL-2.0
//! Calls of one client: the methods of the interface.

use std::cell::RefCell;
use std::rc::Rc;

use pbs_rms_api::{
    Account, Accounts, AllNodes, Asked, Cap, Change, Cluster, ClusterNodes, Connected, Held, Made,
    Notice, Refusal, Seen, Sessions, Step, View,
};
use pbs_socket::Caller;
use zlink::futures_util::stream::{unfold, Stream, StreamExt};
use zlink::Reply;

use crate::hub::{Hub, NextNotice};

/// Service, as one caller sees it.
pub(crate) struct Session {
    pub(crate) caller: Caller,
    pub(crate) hub: Rc<RefCell<Hub>>,
}

#[zlink::service(
    interface = "org.sched-pbs.Rms",
    types = [
        Account, Asked, Cap, Change, Cluster, ClusterNodes, Held, pbs_rms_api::Session, Step, View
    ],
    vendor = "sched-pbs",
    product = "pbsctl rms",
    version = env!("CARGO_PKG_VERSION")
)]
impl Session {
    /// Begins a session. The session ends when it is disconnected, or when nobody has monitored it
    /// for a while.
    async fn connect(&self, name: String) -> Result<Connected, Refusal> {
        self.hub.borrow_mut().connect(&self.caller, &name)
    }

    /// Ends a session and all its requests.
    async fn disconnect(&self, session: u64) -> Result<(), Refusal> {
        self.hub.borrow_mut().disconnect(&self.caller, session)
    }

    /// Requests nodes. They are granted once they are available.
    async fn request(&self, session: u64, asked: Asked) -> Result<Made, Refusal> {
        let made = self.hub.borrow_mut().request(&self.caller, session, asked);
        made.map(|request| Made { request, until: None })
    }

    /// Ends a request, or withdraws it if it has not started. If its successor has fewer nodes, the
    /// nodes that the successor does not get are released.
    async fn done(&self, session: u64, request: u64, released: Vec<u32>) -> Result<(), Refusal> {
        let mut hub = self.hub.borrow_mut();
        hub.done(&self.caller, session, request, &released)
    }

    /// Changes a request's nodes, at once or announced. Returns the number of the request that
    /// takes its place.
    async fn update(&self, session: u64, update: Change) -> Result<Made, Refusal> {
        self.hub.borrow_mut().update(&self.caller, session, update)
    }

    /// Reports node-time lost by killing, for the account.
    async fn waste(&self, session: u64, node_ns: u64) -> Result<(), Refusal> {
        self.hub.borrow_mut().waste(&self.caller, session, node_ns)
    }

    /// Returns the state of all sessions.
    async fn sessions(&self) -> Result<Sessions, Refusal> {
        let sessions = self.hub.borrow().sessions();
        Ok(Sessions { sessions })
    }

    /// Returns the nodes that no session has or waits for.
    async fn nodes(&self) -> Result<AllNodes, Refusal> {
        let clusters = self.hub.borrow().nodes();
        Ok(AllNodes { clusters })
    }

    /// Returns the current views of a session.
    async fn views(&self, session: u64) -> Result<Seen, Refusal> {
        let views = self.hub.borrow().views(&self.caller, session)?;
        Ok(Seen { views })
    }

    /// Returns the accounts of the caller's sessions; for operators, of all sessions.
    async fn accounts(&self) -> Result<Accounts, Refusal> {
        let accounts = self.hub.borrow().accounts(&self.caller);
        Ok(Accounts { accounts })
    }

    /// Reports notices of a session: first its current state, then all changes.
    #[zlink(more)]
    async fn monitor(
        &self,
        more: bool,
        session: u64,
    ) -> impl Stream<Item = Result<Reply<Notice>, Refusal>> + Unpin {
        let begun = self.hub.borrow_mut().monitor(&self.caller, session);
        let watched = begun.map(|monitor| Watched { hub: Rc::clone(&self.hub), session, monitor });
        let next = move |watched: Option<Result<Watched, Refusal>>| async move {
            match watched? {
                Ok(watched) => {
                    let notice = watched.next().await?;
                    let is_last = notice.is_err() || !more;
                    let reply = |notice| Reply::new(Some(notice)).set_continues(Some(more));
                    Some((notice.map(reply), (!is_last).then_some(Ok(watched))))
                }
                Err(refusal) => Some((Err(refusal), None)),
            }
        };
        unfold(Some(watched), next).boxed_local()
    }
}

/// Session that is monitored, as long as this value exists.
struct Watched {
    hub: Rc<RefCell<Hub>>,
    session: u64,
    monitor: u64,
}

impl Watched {
    async fn next(&self) -> Option<Result<Notice, Refusal>> {
        loop {
            let next = self.hub.borrow_mut().next(self.session, self.monitor);
            match next {
                NextNotice::Notice(notice) => return Some(Ok(*notice)),
                NextNotice::Lagged => return Some(Err(Refusal::Lagged)),
                NextNotice::Over => return None,
                NextNotice::Wait(bell) => bell.notified().await,
            }
        }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.hub.borrow_mut().left(self.session, self.monitor);
    }
}
