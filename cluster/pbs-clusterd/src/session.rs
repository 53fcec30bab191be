// SPDX-License-Identifier: GPL-2.0
//! Methods of the interface, as one caller may use them.

use std::convert::Infallible;
use std::io;
use std::os::unix::net::UnixListener;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use pbs_cluster_api::{
    Alteration, Cause, Changed, Filter, Listed, NodesChanged, Notice, Object, Optimiser, PlanCost,
    PlanSearch, Reasons, Refusal, RunTimeErrors, Shown, Status, Submission,
};
use pbs_manager::ledger::{Event, Row, State};
use pbs_resources::Rset;
use pbs_site::User;
use pbs_socket::{notify, user_name, Caller, ConnectionLimits, NotAnswered, Sender, Watch};
use tokio::sync::{broadcast, oneshot};
use tokio::time::sleep;
use zlink::futures_util::future::{select, Either};
use zlink::futures_util::stream::{unfold, Stream, StreamExt};
use zlink::Reply;

use crate::call::{Answer, Call, DefectWanted, Method, NodesWanted, Part};

/// Events, for sessions that watch. Once the service drops its sender, their last answer is that it
/// is stopping.
pub type Notices = broadcast::Sender<Notice>;
/// Events of a service that may have stopped.
pub type WeakNotices = broadcast::WeakSender<Notice>;

/// Maximum number of notices that a watcher may be behind.
const NOTICES: usize = 4096;

/// Returns the sender of events to all who watch.
pub fn notices() -> Notices {
    broadcast::channel(NOTICES).0
}

/// The service, as one caller sees it.
#[derive(Clone)]
pub struct Session {
    caller: Caller,
    /// The caller, with the name that the site knows.
    user: Arc<User>,
    /// To the thread that has the cluster.
    cluster: Sender<Call>,
    /// Sender of events to sessions that watch.
    notices: WeakNotices,
}

impl Session {
    async fn ask<T>(&self, method: impl FnOnce(Answer<T>) -> Method) -> Result<T, Refusal> {
        let (answer, answered) = oneshot::channel();
        let call = Call { user: Arc::clone(&self.user), method: method(answer) };
        self.cluster.ask(&self.caller, call, answered).await
    }

    /// Returns the answers of [`Self::watch`] from now on, until notices are lost.
    async fn watch_from_now(
        &self,
        more: bool,
        request: Option<u64>,
    ) -> impl Stream<Item = Result<Reply<Notice>, Refusal>> + Unpin + use<> {
        let notices = self.notices.upgrade().map(|notices| notices.subscribe());
        let notices = notices.ok_or_else(|| Refusal::from(NotAnswered::Stopping));
        let last = match request {
            None => Ok(None),
            Some(id) => {
                let shown = self.ask(|answer| Method::Show(id, answer)).await;
                shown.map(|shown| end_of(shown.request.0))
            }
        };
        let is_wanted = move |notice: &Notice| {
            let Object(event) = &notice.event;
            request.is_none() || event.request == request
        };
        let watch = notices.and_then(|notices| Ok(Watch { notices, is_wanted, more, last: last? }));
        pbs_socket::watch(watch, Refusal::Lagged)
    }
}

/// Other end of what stops the service of a socket when it is dropped.
pub type Stopped = oneshot::Receiver<Infallible>;

/// Returns both ends of what stops the service of a socket.
pub fn stop() -> (oneshot::Sender<Infallible>, Stopped) {
    oneshot::channel()
}

/// Time for which answers are still sent when the service stops.
const FAREWELL: Duration = Duration::from_millis(100);

/// Serves callers until the other end of `stop` is dropped. Calls that wait then are answered.
///
/// # Errors
///
/// The socket is no more.
pub fn serve(
    listener: UnixListener,
    limits: ConnectionLimits,
    cluster: &Sender<Call>,
    notices: &WeakNotices,
    stop: Stopped,
) -> io::Result<()> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    let local = tokio::task::LocalSet::new();
    if let Some(every) = notify::watched_every() {
        local.spawn_local(notify::watch(cluster.clone(), every));
    }
    let session = |caller: Caller| Session {
        user: User::with_uid(&user_name(caller.uid), caller.uid).into(),
        caller,
        cluster: cluster.clone(),
        notices: notices.clone(),
    };
    let served = async {
        let serving = pin!(pbs_socket::serve(listener, limits, session));
        match select(serving, stop).await {
            Either::Left((served, _)) => served,
            Either::Right((_, serving)) => {
                // Whoever connects now is answered, too.
                match select(serving, pin!(sleep(FAREWELL))).await {
                    Either::Left((served, _)) => served,
                    Either::Right(_) => Ok(()),
                }
            }
        }
    };
    local.block_on(&runtime, served)
}

/// Refuses requests of a subordinate user: a user has tens of thousands of these, and each would
/// have limits of its own.
fn by_themselves(caller: &Caller) -> Result<(), Refusal> {
    if caller.uid == caller.account {
        return Ok(());
    }
    let owner = user_name(caller.account);
    let what = format!(
        "submit as user {}, who is subordinate to {owner} in /etc/subuid; leave the user namespace, \
         and submit as {owner}",
        caller.uid
    );
    Err(Refusal::NotPermitted { what })
}

#[zlink::service(
    interface = "org.sched-pbs.Cluster",
    types = [Alteration, Cause, Filter, PlanCost, PlanSearch, RunTimeErrors, Submission],
    vendor = "sched-pbs",
    product = "pbs-clusterd",
    version = env!("CARGO_PKG_VERSION")
)]
impl Session {
    /// Submits a request, or one for each index of an array: all of them, or none. The answer
    /// arrives when the request is planned and on the disk.
    async fn submit(&self, submission: Submission) -> Result<Changed, Refusal> {
        by_themselves(&self.caller)?;
        self.ask(|answer| Method::Submit(Part::Sent(submission.into()), answer)).await
    }

    /// Holds nodes for later requests. User or group need the privilege to reserve.
    async fn reserve(&self, submission: Submission) -> Result<Changed, Refusal> {
        by_themselves(&self.caller)?;
        self.ask(|answer| Method::Reserve(Part::Sent(submission.into()), answer)).await
    }

    /// Plans a request that has not started as something else, or leaves it as it is.
    async fn alter(&self, request: u64, alteration: Alteration) -> Result<Changed, Refusal> {
        self.ask(|answer| Method::Alter(request, Part::Sent(alteration.into()), answer)).await
    }

    /// Gives a running request another number of its chunks.
    async fn resize(&self, request: u64, rset: String) -> Result<Changed, Refusal> {
        let rset: Rset = rset.parse().map_err(|error: pbs_resources::Error| Refusal::Invalid {
            what: format!("rset, column {}: {}", error.column, error.message),
        })?;
        self.ask(|answer| Method::Resize(request, rset, answer)).await
    }

    /// Extends a running request. User or group need the privilege to extend.
    async fn extend(&self, request: u64, by_s: u64) -> Result<Changed, Refusal> {
        self.ask(|answer| Method::Extend(request, by_s, answer)).await
    }

    /// Confirms provisional requests.
    async fn confirm(&self, requests: Vec<u64>) -> Result<Changed, Refusal> {
        self.ask(|answer| Method::Confirm(requests, answer)).await
    }

    /// Ends or withdraws requests. Others move to an earlier start after the answer.
    async fn kill(&self, requests: Vec<u64>) -> Result<Changed, Refusal> {
        self.ask(|answer| Method::Kill(requests, answer)).await
    }

    /// Returns a request with its events. Only its owner and operators see its command.
    async fn show(&self, request: u64) -> Result<Shown, Refusal> {
        self.ask(|answer| Method::Show(request, answer)).await
    }

    /// Returns a part of the requests; the next part is above the number `next`.
    async fn list(&self, filter: Filter) -> Result<Listed, Refusal> {
        self.ask(|answer| Method::List(filter, answer)).await
    }

    /// Returns the causes that keep a request from an earlier start.
    async fn why(&self, request: u64) -> Result<Reasons, Refusal> {
        self.ask(|answer| Method::Why(request, answer)).await
    }

    /// Takes nodes out of use (`offline`, `down`) or back (`online`). For operators only.
    async fn set_nodes(
        &self,
        names: Vec<String>,
        state: String,
        why: String,
    ) -> Result<NodesChanged, Refusal> {
        let wanted = NodesWanted { names, state, why };
        self.ask(|answer| Method::SetNodes(wanted, answer)).await
    }

    /// Takes parts of nodes out of use, as ncpus=2:mem=16g, or none of them. For operators only.
    async fn set_defect(
        &self,
        names: Vec<String>,
        parts: String,
        why: String,
    ) -> Result<NodesChanged, Refusal> {
        let wanted = DefectWanted { names, parts, why };
        self.ask(|answer| Method::SetDefect(wanted, answer)).await
    }

    /// Returns the state of the service and its cluster.
    async fn status(&self) -> Result<Status, Refusal> {
        self.ask(Method::Status).await
    }

    /// Returns the work and the results of the search for better plans, and the errors of expected
    /// run times.
    async fn optimiser(&self) -> Result<Optimiser, Refusal> {
        self.ask(Method::Optimiser).await
    }

    /// Reports events from now on, of all requests or of one. Of a request that has ended, its end
    /// is reported at once. If events come faster than they are read, a caller that watches all is
    /// refused. A caller that watches one request always receives its end.
    #[zlink(more)]
    async fn watch(
        &self,
        more: bool,
        request: Option<u64>,
    ) -> impl Stream<Item = Result<Reply<Notice>, Refusal>> + Unpin {
        let first = self.watch_from_now(more, request).await;
        let next = move |(session, mut notices): (Self, _)| async move {
            loop {
                match StreamExt::next(&mut notices).await {
                    // Events of others came too fast; the end of the request may be among them.
                    Some(Err(Refusal::Lagged)) if request.is_some() => {
                        notices = session.watch_from_now(more, request).await;
                    }
                    next => return next.map(|next| (next, (session, notices))),
                }
            }
        };
        unfold((self.clone(), first), next).boxed_local()
    }
}

/// Notice of the end of a request that has ended.
fn end_of(row: Row) -> Option<Notice> {
    let end = Event {
        time_s: row.end_s?,
        request: Some(row.id),
        what: "ended".into(),
        text: row.outcome.unwrap_or_default(),
    };
    (row.state == State::Ended).then_some(Notice { event: Object(end) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subordinate_users_submit_nothing() {
        let caller = |uid, account| Caller {
            uid,
            account,
            gid: uid,
            groups: Vec::new(),
            is_operator: false,
            pid: 0,
        };
        assert_eq!(by_themselves(&caller(1000, 1000)), Ok(()));
        let refused = by_themselves(&caller(100_001, 0)).unwrap_err();
        let Refusal::NotPermitted { what } = refused else {
            panic!("{refused:?}");
        };
        assert!(what.contains("user 100001") && what.contains("submit as root"), "{what}");
    }
}
