// SPDX-License-Identifier: GPL-2.0
//! From the thread that has the socket to the one that has the node.
//!
//! Neither waits for the other: what does not fit is refused, and who waits for the node
//! is woken by a descriptor that can be polled with its events.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, FromRawFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{sync_channel, Receiver, SyncSender};
use std::sync::Arc;

use pbs_node_api::{
    Allocated, Alteration, Deallocated, Explanation, Filter, Job, JobKey, Plan, Refusal, Shown,
    Status, Submission,
};
use pbs_socket::Caller;
use tokio::sync::oneshot;

use crate::allocations::Step;

/// Requests that wait for the node at most.
const ROOM: usize = 256;

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
    Allocate(Step, Answer<Allocated>),
    Deallocate(u32, u32, Answer<Deallocated>),
}

/// The end of the queue for senders.
#[derive(Clone, Debug)]
pub struct Sender {
    queue: SyncSender<(Caller, Request)>,
    bell: Arc<File>,
    rounds: Arc<AtomicU64>,
}

/// The end of the queue for the receiver.
#[derive(Debug)]
pub struct Inbox {
    queue: Receiver<(Caller, Request)>,
    bell: Arc<File>,
    rounds: Arc<AtomicU64>,
}

/// Both ends.
pub fn inbox() -> io::Result<(Sender, Inbox)> {
    let (sender, receiver) = sync_channel(ROOM);
    let bell = Arc::new(eventfd()?);
    let rounds = Arc::default();
    let inbox = Inbox { queue: receiver, bell: bell.clone(), rounds: Arc::clone(&rounds) };
    Ok((Sender { queue: sender, bell, rounds }, inbox))
}

impl Sender {
    /// Asks, and waits for the answer.
    pub async fn ask<T>(
        &self,
        caller: &Caller,
        request: impl FnOnce(Answer<T>) -> Request,
    ) -> Result<T, Refusal> {
        let (answer, answered) = oneshot::channel();
        let sent = self.queue.try_send((caller.clone(), request(answer)));
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
    /// The first of those that wait, at most so many; does not wait itself.
    pub fn take(&mut self, most: usize) -> Vec<(Caller, Request)> {
        self.rounds.fetch_add(1, Ordering::Relaxed);
        let mut rung = [0; 8];
        let _ = (&*self.bell).read(&mut rung);
        self.queue.try_iter().take(most).collect()
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
