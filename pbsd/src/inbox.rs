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
use crate::reader::{self, LONG_BYTES};
use crate::turns::Turns;
use crate::wanted::{rewritten, Asked};

/// Receiver of the answer, which may have stopped waiting for it.
pub type Answer<T> = oneshot::Sender<Result<T, Refusal>>;

/// Request to the node.
#[derive(Debug)]
pub enum Request {
    Submit(Vec<Asked>, Answer<Vec<Job>>),
    Explain(Asked, Answer<Explanation>),
    Cancel(JobKey, Answer<Shown>),
    Hold(JobKey, bool, Answer<Shown>),
    /// The alteration of a job, with its request as it was read, if it was.
    Alter(JobKey, Alteration, Option<Box<pbs_node::Submission>>, Answer<Shown>),
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
            Self::Submit(jobs, _) => jobs.iter().map(asked_bytes).sum(),
            Self::Explain(job, _) => asked_bytes(job),
            Self::Alter(_, alteration, ..) => alteration.request.as_ref().map_or(0, String::len),
            _ => 0,
        }
    }

    /// Reads the jobs in it; `None`: they are invalid, and the caller has the answer.
    fn read(self, caller: &Caller) -> Option<Self> {
        match self {
            Self::Submit(jobs, answer) => {
                let read = jobs.into_iter().map(|job| job.read(caller).map(Asked::read_before));
                let jobs = or_refuse(read.collect::<Result<Vec<_>, _>>(), answer)?;
                Some(Self::Submit(jobs.0, jobs.1))
            }
            Self::Explain(job, answer) => {
                let job = or_refuse(job.first().read(caller).map(Asked::read_before), answer)?;
                Some(Self::Explain(job.0, job.1))
            }
            Self::Alter(key, mut alteration, None, answer) => {
                let request = alteration.request.take();
                let read = request.map(|request| rewritten(&key, request)).transpose();
                let (read, answer) = or_refuse(read, answer)?;
                Some(Self::Alter(key, alteration, read.map(Box::new), answer))
            }
            other => Some(other),
        }
    }
}

/// Sends a refusal; otherwise returns the result with the receiver of the answer.
fn or_refuse<T, U>(read: Result<T, Refusal>, answer: Answer<U>) -> Option<(T, Answer<U>)> {
    match read {
        Ok(read) => Some((read, answer)),
        Err(refusal) => {
            // The caller may have gone.
            let _ = answer.send(Err(refusal));
            None
        }
    }
}

/// Bytes of a submission that was sent; 0: it was read.
fn asked_bytes(asked: &Asked) -> usize {
    asked.sent().map_or(0, submission_bytes)
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
pub(crate) struct Waiting {
    caller: Caller,
    request: Request,
    /// Whether the request was read by the reader.
    was_read: bool,
    /// Given back when the node takes the request.
    place: Place,
}

impl Waiting {
    /// The user whose turn it is with this request; `None`: an operator's.
    pub(crate) fn user(&self) -> Option<u32> {
        (!self.caller.is_operator).then_some(self.caller.uid)
    }

    /// Reads the jobs in it; `None`: they are invalid, and the caller has the answer.
    pub(crate) fn read(self) -> Option<Self> {
        let Self { caller, request, place, .. } = self;
        let request = request.read(&caller)?;
        Some(Self { caller, request, was_read: true, place })
    }
}

/// Wakes the thread that waits for requests.
#[derive(Clone, Debug)]
pub(crate) struct Bell(Arc<File>);

impl Bell {
    pub(crate) fn ring(&self) {
        // It can't fail but when it has been rung a great many times.
        let _ = (&*self.0).write_all(&1u64.to_ne_bytes());
    }
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
    /// Long requests, for the reader.
    long: SyncSender<Waiting>,
    places: Places,
    bell: Bell,
    rounds: Arc<AtomicU64>,
    /// Counts of the calls.
    pub calls: Calls,
}

/// The end of the queue for the receiver.
#[derive(Debug)]
pub struct Inbox {
    queue: Receiver<Waiting>,
    /// Long requests that were read.
    read: Receiver<Waiting>,
    /// Number of them among those whose turn comes.
    read_waiting: usize,
    turns: Turns<Waiting>,
    bell: Bell,
    rounds: Arc<AtomicU64>,
}

/// Both ends.
pub fn inbox() -> io::Result<(Sender, Inbox)> {
    let (sender, receiver) = sync_channel(WAITING_CALLS);
    let (long, of_long) = sync_channel(WAITING_CALLS);
    let (to_read, read) = sync_channel(1);
    let bell = Bell(Arc::new(eventfd()?));
    reader::start(of_long, to_read, bell.clone())?;
    let rounds = Arc::default();
    let inbox = Inbox {
        queue: receiver,
        read,
        read_waiting: 0,
        turns: Turns::default(),
        bell: bell.clone(),
        rounds: Arc::clone(&rounds),
    };
    let (places, calls) = (Places::default(), Calls::default());
    Ok((Sender { queue: sender, long, places, bell, rounds, calls }, inbox))
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
        let bytes = request.bytes();
        let place = self.places.take(caller, bytes).ok_or(Refusal::Busy)?;
        let waiting = Waiting { caller: caller.clone(), request, was_read: false, place };
        let queue = if bytes > LONG_BYTES { &self.long } else { &self.queue };
        queue.try_send(waiting).map_err(|_| Refusal::Busy)?;
        self.ring();
        answered
            .await
            .unwrap_or_else(|_| Err(Refusal::Failed { why: "the service is stopping".into() }))
    }

    /// Wakes the thread that waits for requests.
    pub fn ring(&self) {
        self.bell.ring();
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
        let _ = (&*self.bell.0).read(&mut rung);
    }

    /// Takes the request whose turn it is, of those that have arrived by now; does not wait.
    pub fn take(&mut self) -> Option<(Caller, Request)> {
        for waiting in self.queue.try_iter() {
            self.turns.push(waiting.user(), waiting);
        }
        // Another is read ahead meanwhile.
        if self.read_waiting == 0 {
            if let Ok(waiting) = self.read.try_recv() {
                self.read_waiting += 1;
                self.turns.push(waiting.user(), waiting);
            }
        }
        let Waiting { caller, request, was_read, .. } = self.turns.pop()?;
        self.read_waiting -= usize::from(was_read);
        Some((caller, request))
    }
}

impl AsFd for Inbox {
    /// Returns a descriptor that is readable when something waits.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.0.as_fd()
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
    use pbs_launch::signals::wait_for;

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

    /// A long request is read before its turn, and one that is invalid never comes to the node.
    #[test]
    fn long_requests_are_read_before_they_are_taken() {
        let (sender, mut inbox) = inbox().unwrap();
        let send = |tasks: &str| {
            let request = format!(
                "name = \"long\"\ndeadline_ns = \"1h\"\n[[process]]\nid = 1\nmemory_bytes = 0\n\
                 attaches = \"itself\"\ntasks = [{tasks}]\n"
            );
            let job = Submission { request, directory: "/".into(), ..Submission::default() };
            let (answer, answered) = oneshot::channel();
            let request = Request::Submit(vec![job.into()], answer);
            let place = sender.places.take(&caller(1), request.bytes()).unwrap();
            let is_long = request.bytes() > LONG_BYTES;
            let waiting = Waiting { caller: caller(1), request, was_read: false, place };
            let queue = if is_long { &sender.long } else { &sender.queue };
            queue.try_send(waiting).unwrap();
            answered
        };
        let long = "1,".repeat(LONG_BYTES / 2);
        let invalid = send(&format!("{long}\"no task\""));
        let valid: Vec<_> = (0..3).map(|_| send(&long)).collect();
        let refused = invalid.blocking_recv().unwrap();
        assert!(matches!(refused, Err(Refusal::Invalid { .. })), "{refused:?}");
        for _ in &valid {
            wait_for([inbox.as_fd()], 60_000).unwrap();
            inbox.begin();
            let (_, taken) = std::iter::from_fn(|| Some(inbox.take())).flatten().next().unwrap();
            let Request::Submit(jobs, _) = taken else { panic!("{taken:?}") };
            assert!(jobs.iter().all(|job| job.sent().is_none()), "it was not read");
        }
        // A short one is read when it is taken.
        let _short = send("1");
        let (_, taken) = inbox.take().unwrap();
        assert!(matches!(taken, Request::Submit(jobs, _) if jobs[0].sent().is_some()));
        assert!(sender.places.0.lock().unwrap().is_empty());
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
        let jobs = (0..3).map(|_| environment(0).into()).collect();
        let request = Request::Submit(jobs, answer);
        assert_eq!(request.bytes(), 3 * submission_bytes(&environment(0)));
    }
}
