// SPDX-License-Identifier: GPL-2.0
//! From the thread that has the socket to the one that has the node.
//!
//! Neither waits for the other: what does not fit is refused, and who waits for the node
//! is woken by a descriptor that can be polled with its events. Users are served in turn
//! ([`Turns`]), operators before them.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, FromRawFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{sync_channel, Receiver, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use pbs_node_api::{
    Allocated, Alteration, Deallocated, Explanation, Filter, Job, JobKey, Metrics, Plan, Refusal,
    Shown, Status, Submission,
};
use pbs_socket::Caller;
use tokio::sync::oneshot;

use crate::allocations::Step;
use crate::calls::Calls;
use crate::limits::{ALL_CALL_BYTES, OPERATOR_CALLS, USER_CALL_BYTES, WAITING_CALLS};
use crate::turns::Turns;

/// Receiver of the answer, which may have stopped waiting for it.
pub type Answer<T> = oneshot::Sender<Result<T, Refusal>>;

/// Request to the node.
#[derive(Debug)]
pub enum Request {
    Submit(Vec<Submission>, Answer<Vec<Job>>),
    Explain(Submission, Answer<Explanation>),
    Cancel(JobKey, Answer<Shown>),
    Hold(JobKey, bool, Answer<Shown>),
    Alter(JobKey, Alteration, Answer<Shown>),
    List(Filter, Answer<Vec<Job>>),
    Show(JobKey, Answer<Shown>),
    Plan(Answer<Plan>),
    Drain(bool, Answer<Status>),
    Status(Answer<Status>),
    Metrics(Answer<Metrics>),
    Allocate(Step, Answer<Allocated>),
    Deallocate(u32, u32, Answer<Deallocated>),
}

impl Request {
    /// Name of the method that is called.
    fn method(&self) -> &'static str {
        match self {
            Self::Submit(..) => "Submit",
            Self::Explain(..) => "Explain",
            Self::Cancel(..) => "Cancel",
            Self::Hold(_, true, _) => "Hold",
            Self::Hold(_, false, _) => "Release",
            Self::Alter(..) => "Alter",
            Self::List(..) => "List",
            Self::Show(..) => "Show",
            Self::Plan(..) => "Plan",
            Self::Drain(true, _) => "Drain",
            Self::Drain(false, _) => "Resume",
            Self::Status(..) => "Status",
            Self::Metrics(..) => "Metrics",
            Self::Allocate(..) => "Allocate",
            Self::Deallocate(..) => "Deallocate",
        }
    }

    /// Bytes of the texts in it; 0 for one that is always short.
    fn bytes(&self) -> usize {
        match self {
            Self::Submit(jobs, _) => jobs.iter().map(submission_bytes).sum(),
            Self::Explain(job, _) => submission_bytes(job),
            Self::Alter(_, alteration, _) => alteration.request.as_ref().map_or(0, String::len),
            _ => 0,
        }
    }
}

/// Bytes of a submission: its texts, and what each item of a list takes besides.
fn submission_bytes(job: &Submission) -> usize {
    const ITEM_BYTES: usize = 48;
    let variables = job.environment.iter().map(|it| ITEM_BYTES + it.name.len() + it.value.len());
    let limits = job.limits.iter().flatten().map(|it| ITEM_BYTES + it.resource.len());
    let texts = [&job.name, &job.output].into_iter().flatten().map(String::len);
    let numbers = [&job.after, &job.afterok].into_iter().flatten();
    size_of::<Submission>()
        + job.file.len()
        + job.request.len()
        + job.directory.len()
        + variables.sum::<usize>()
        + limits.sum::<usize>()
        + texts.sum::<usize>()
        + numbers.map(|ids| size_of_val(&ids[..])).sum::<usize>()
}

/// A request that waits for the node.
#[derive(Debug)]
struct Waiting {
    caller: Caller,
    request: Request,
    /// Given back when the node takes the request.
    _place: Place,
}

/// Places of requests that wait, and the bytes that those of each user have.
#[derive(Clone, Debug, Default)]
struct Places(Arc<Mutex<HashMap<u32, (usize, usize)>>>);

/// The place of a request, until it is taken.
#[derive(Debug)]
struct Place {
    places: Places,
    uid: u32,
    bytes: usize,
}

impl Places {
    /// Takes a place for a request of so many bytes; `None`: there is none for that user. Some
    /// places are left to operators.
    fn take(&self, caller: &Caller, bytes: usize) -> Option<Place> {
        let mut users = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let all = users.values().fold((0, 0), |all, user| (all.0 + user.0, all.1 + user.1));
        let own = users.entry(caller.uid).or_default();
        let is_full = all.0 + OPERATOR_CALLS >= WAITING_CALLS
            || own.1 + bytes > USER_CALL_BYTES
            || all.1 + bytes > ALL_CALL_BYTES;
        if is_full && !caller.is_operator {
            if own.0 == 0 {
                users.remove(&caller.uid);
            }
            return None;
        }
        *own = (own.0 + 1, own.1 + bytes);
        Some(Place { places: self.clone(), uid: caller.uid, bytes })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut users = self.places.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = users.get_mut(&self.uid) {
            *own = (own.0 - 1, own.1 - self.bytes);
            if own.0 == 0 {
                users.remove(&self.uid);
            }
        }
    }
}

/// The end of the queue for senders.
#[derive(Clone, Debug)]
pub struct Sender {
    queue: SyncSender<Waiting>,
    places: Places,
    bell: Arc<File>,
    rounds: Arc<AtomicU64>,
    /// Counts of the calls.
    pub calls: Calls,
}

/// The end of the queue for the receiver.
#[derive(Debug)]
pub struct Inbox {
    queue: Receiver<Waiting>,
    turns: Turns<Waiting>,
    bell: Arc<File>,
    rounds: Arc<AtomicU64>,
}

/// Both ends.
pub fn inbox() -> io::Result<(Sender, Inbox)> {
    let (sender, receiver) = sync_channel(WAITING_CALLS);
    let bell = Arc::new(eventfd()?);
    let rounds = Arc::default();
    let inbox = Inbox {
        queue: receiver,
        turns: Turns::default(),
        bell: bell.clone(),
        rounds: Arc::clone(&rounds),
    };
    let (places, calls) = (Places::default(), Calls::default());
    Ok((Sender { queue: sender, places, bell, rounds, calls }, inbox))
}

impl Sender {
    /// Asks, and waits for the answer.
    pub async fn ask<T>(
        &self,
        caller: &Caller,
        request: impl FnOnce(Answer<T>) -> Request,
    ) -> Result<T, Refusal> {
        let (answer, answered) = oneshot::channel();
        let request = request(answer);
        let (method, begun) = (request.method(), Instant::now());
        let answer = self.queued(caller, request, answered).await;
        self.calls.answered(method, begun.elapsed(), answer.is_err());
        answer
    }

    async fn queued<T>(
        &self,
        caller: &Caller,
        request: Request,
        answered: oneshot::Receiver<Result<T, Refusal>>,
    ) -> Result<T, Refusal> {
        let place = self.places.take(caller, request.bytes()).ok_or(Refusal::Busy)?;
        let sent = self.queue.try_send(Waiting { caller: caller.clone(), request, _place: place });
        sent.map_err(|_| Refusal::Busy)?;
        self.ring();
        answered
            .await
            .unwrap_or_else(|_| Err(Refusal::Failed { why: "the service is stopping".into() }))
    }

    /// Wakes the thread that waits for requests.
    pub fn ring(&self) {
        // It can't fail but when it has been rung a great many times.
        let _ = (&*self.bell).write_all(&1u64.to_ne_bytes());
    }

    /// Number of times that the other end has taken requests.
    pub fn rounds(&self) -> u64 {
        self.rounds.load(Ordering::Relaxed)
    }
}

impl Inbox {
    /// Begins another round of requests, and stops the bell.
    pub fn begin(&mut self) {
        self.rounds.fetch_add(1, Ordering::Relaxed);
        let mut rung = [0; 8];
        // A bell that was not rung has nothing to read.
        let _ = (&*self.bell).read(&mut rung);
    }

    /// Takes the request whose turn it is, of those that have arrived by now; does not wait.
    pub fn take(&mut self) -> Option<(Caller, Request)> {
        for waiting in self.queue.try_iter() {
            let user = (!waiting.caller.is_operator).then_some(waiting.caller.uid);
            self.turns.push(user, waiting);
        }
        self.turns.pop().map(|Waiting { caller, request, .. }| (caller, request))
    }
}

impl AsFd for Inbox {
    /// Returns a descriptor that is readable when something waits.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

#[allow(unsafe_code)]
fn eventfd() -> io::Result<File> {
    // SAFETY: the call gives a new descriptor, or -1.
    unsafe {
        match libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) {
            -1 => Err(io::Error::last_os_error()),
            fd => Ok(File::from_raw_fd(fd)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(uid: u32) -> Caller {
        Caller { uid, gid: uid, groups: Vec::new(), is_operator: uid == 0, pid: 0 }
    }

    /// Calls of a megabyte wait as long as they are few; those of others are accepted, and an
    /// operator's are when all other places are taken.
    #[test]
    fn requests_that_wait_have_a_share_of_each_user() {
        let places = Places::default();
        let megabyte = 1 << 20;
        let take = |uid, bytes| places.take(&caller(uid), bytes);
        let long: Vec<_> = (0..64).filter_map(|_| take(1, megabyte)).collect();
        assert_eq!(long.len(), USER_CALL_BYTES / megabyte);
        assert!(take(1, 0).is_some() && take(2, megabyte).is_some());
        let more: Vec<_> = (2..64).filter_map(|uid| take(uid, USER_CALL_BYTES)).collect();
        assert_eq!(long.len() * megabyte + more.len() * USER_CALL_BYTES, ALL_CALL_BYTES);
        assert!(take(99, 1).is_none() && take(0, megabyte).is_some());
        drop((long, more));
        assert!(places.0.lock().unwrap().is_empty());

        let short: Vec<_> = (0..1000).filter_map(|uid| take(1 + uid, 0)).collect();
        assert_eq!(short.len(), WAITING_CALLS - OPERATOR_CALLS);
        let of_root: Vec<_> = (0..OPERATOR_CALLS).filter_map(|_| take(0, 0)).collect();
        assert_eq!(of_root.len(), OPERATOR_CALLS);
        drop((short, of_root));
        assert!(places.0.lock().unwrap().is_empty());
    }

    /// All parts of a request count, not only the file of its job.
    #[test]
    fn all_of_a_submission_counts() {
        let environment = |count| {
            let variable = pbs_node_api::Environment { name: "A".into(), value: "b".into() };
            Submission { environment: vec![variable; count], ..Submission::default() }
        };
        let bytes = submission_bytes(&environment(40_000)) - submission_bytes(&environment(0));
        assert_eq!(bytes, 40_000 * 50);
        let (answer, _answered) = oneshot::channel();
        let request = Request::Submit(vec![environment(0); 3], answer);
        assert_eq!(request.bytes(), 3 * submission_bytes(&environment(0)));
    }
}
