// SPDX-License-Identifier: GPL-2.0
//! Calls on their way from the thread that has the socket to the one that answers.
//!
//! Neither waits for the other: what does not fit is refused, and the thread that answers is woken
//! by a descriptor that can be polled with its events. Users are served in turn ([`Turns`]),
//! operators before them.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, FromRawFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{sync_channel, Receiver, SyncSender, TrySendError};
use std::sync::Arc;

use tokio::sync::oneshot;

use crate::caller::Caller;
use crate::places::{CallLimits, Place, Places};
use crate::reader::{self, LONG_BYTES};
use crate::turns::Turns;

/// Call of a method, with the receiver of its answer.
pub trait Call: Send + Sized + 'static {
    /// Bytes of the texts in the call; 0 for one that is always short.
    fn bytes(&self) -> usize;

    /// Reads the texts in the call; `None`: they are invalid, and the caller has the answer.
    fn read(self, caller: &Caller) -> Option<Self>;
}

/// Reason for which a call was not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotAnswered {
    /// Too many calls wait.
    Busy,
    /// The service is stopping.
    Stopping,
}

/// A call that waits.
#[derive(Debug)]
pub(crate) struct Waiting<C> {
    caller: Caller,
    call: C,
    /// Whether the call was read by the reader.
    was_read: bool,
    /// Given back when the call is taken.
    place: Place,
}

impl<C: Call> Waiting<C> {
    /// The user whose turn it is with this call, or to whom that user counts; `None`: an operator's.
    pub(crate) fn user(&self) -> Option<u32> {
        (!self.caller.is_operator).then_some(self.caller.account)
    }

    /// Reads the texts in it; `None`: they are invalid, and the caller has the answer.
    pub(crate) fn read(self) -> Option<Self> {
        let Self { caller, call, place, .. } = self;
        let call = call.read(&caller)?;
        Some(Self { caller, call, was_read: true, place })
    }
}

/// Wakes the thread that waits for calls.
#[derive(Clone, Debug)]
pub(crate) struct Bell(Arc<File>);

impl Bell {
    pub(crate) fn ring(&self) {
        // It can't fail but when it has been rung a great many times.
        let _ = (&*self.0).write_all(&1u64.to_ne_bytes());
    }
}

/// The end of the queue for senders.
#[derive(Debug)]
pub struct Sender<C> {
    queue: SyncSender<Waiting<C>>,
    /// Long calls, for the reader.
    long: SyncSender<Waiting<C>>,
    places: Places,
    bell: Bell,
    rounds: Arc<AtomicU64>,
}

impl<C> Clone for Sender<C> {
    fn clone(&self) -> Self {
        Self {
            queue: self.queue.clone(),
            long: self.long.clone(),
            places: self.places.clone(),
            bell: self.bell.clone(),
            rounds: Arc::clone(&self.rounds),
        }
    }
}

/// The end of the queue for the receiver.
#[derive(Debug)]
pub struct Inbox<C> {
    queue: Receiver<Waiting<C>>,
    /// Long calls that were read.
    read: Receiver<Waiting<C>>,
    /// Number of them among those whose turn comes.
    read_waiting: usize,
    turns: Turns<Waiting<C>>,
    bell: Bell,
    rounds: Arc<AtomicU64>,
}

/// Creates both ends of a queue.
///
/// # Errors
///
/// The system has no descriptor or no thread for it.
pub fn inbox<C: Call>(limits: CallLimits) -> io::Result<(Sender<C>, Inbox<C>)> {
    let (sender, receiver) = sync_channel(limits.calls);
    let (long, of_long) = sync_channel(limits.calls);
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
    Ok((Sender { queue: sender, long, places: Places::of_calls(limits), bell, rounds }, inbox))
}

impl<C: Call> Sender<C> {
    /// Sends a call, and waits for its answer, which arrives at `answered`.
    pub async fn ask<T, R: From<NotAnswered>>(
        &self,
        caller: &Caller,
        call: C,
        answered: oneshot::Receiver<Result<T, R>>,
    ) -> Result<T, R> {
        self.send(caller, call)?;
        answered.await.unwrap_or_else(|_| Err(NotAnswered::Stopping.into()))
    }

    /// Sends a call.
    ///
    /// # Errors
    ///
    /// [`NotAnswered::Busy`] if it does not fit, and [`NotAnswered::Stopping`] if nobody takes calls.
    pub fn send(&self, caller: &Caller, call: C) -> Result<(), NotAnswered> {
        let bytes = call.bytes();
        let place = self.places.take(caller, bytes).ok_or(NotAnswered::Busy)?;
        let waiting = Waiting { caller: caller.clone(), call, was_read: false, place };
        let queue = if bytes > LONG_BYTES { &self.long } else { &self.queue };
        queue.try_send(waiting).map_err(|error| match error {
            TrySendError::Full(_) => NotAnswered::Busy,
            TrySendError::Disconnected(_) => NotAnswered::Stopping,
        })?;
        self.ring();
        Ok(())
    }

    /// Wakes the thread that waits for calls.
    pub fn ring(&self) {
        self.bell.ring();
    }

    /// Number of times that the other end has taken calls.
    pub fn rounds(&self) -> u64 {
        self.rounds.load(Ordering::Relaxed)
    }
}

impl<C: Call> Inbox<C> {
    /// Begins another round of calls, and stops the bell.
    pub fn begin(&mut self) {
        self.rounds.fetch_add(1, Ordering::Relaxed);
        let mut rung = [0; 8];
        // A bell that was not rung has nothing to read.
        let _ = (&*self.bell.0).read(&mut rung);
    }

    /// Takes the call whose turn it is, of those that have arrived by now; does not wait.
    pub fn take(&mut self) -> Option<(Caller, C)> {
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
        let Waiting { caller, call, was_read, .. } = self.turns.pop()?;
        self.read_waiting -= usize::from(was_read);
        Some((caller, call))
    }
}

impl<C> AsFd for Inbox<C> {
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
pub(crate) mod tests {
    use super::*;

    pub(crate) const LIMITS: CallLimits =
        CallLimits { calls: 256, of_operators: 32, user_bytes: 16 << 20, all_bytes: 64 << 20 };

    /// A call without a method.
    pub(crate) struct Nothing;

    impl Call for Nothing {
        fn bytes(&self) -> usize {
            0
        }

        fn read(self, _: &Caller) -> Option<Self> {
            Some(self)
        }
    }

    fn caller(uid: u32) -> Caller {
        Caller { uid, gid: uid, groups: Vec::new(), is_operator: uid == 0, pid: 0, account: uid }
    }

    /// Calls of a megabyte wait as long as they are few; those of others are accepted, and an
    /// operator's are when all other places are taken.
    #[test]
    fn calls_that_wait_have_a_share_of_each_user() {
        let places = Places::of_calls(LIMITS);
        let megabyte = 1 << 20;
        let take = |uid, bytes| places.take(&caller(uid), bytes);
        let long: Vec<_> = (0..64).filter_map(|_| take(1, megabyte)).collect();
        assert_eq!(long.len(), LIMITS.user_bytes / megabyte);
        assert!(take(1, 0).is_some() && take(2, megabyte).is_some());
        let more: Vec<_> = (2..64).filter_map(|uid| take(uid, LIMITS.user_bytes)).collect();
        assert_eq!(long.len() * megabyte + more.len() * LIMITS.user_bytes, LIMITS.all_bytes);
        assert!(take(99, 1).is_none() && take(0, megabyte).is_some());
        drop((long, more));
        assert!(places.users.lock().unwrap().is_empty());

        let short: Vec<_> = (0..1000).filter_map(|uid| take(1 + uid, 0)).collect();
        assert_eq!(short.len(), LIMITS.calls - LIMITS.of_operators);
        let of_root: Vec<_> = (0..LIMITS.of_operators).filter_map(|_| take(0, 0)).collect();
        assert_eq!(of_root.len(), LIMITS.of_operators);
        drop((short, of_root));
        assert!(places.users.lock().unwrap().is_empty());
    }

    /// A call that was taken has left its place; one that does not fit is refused at once.
    #[test]
    fn a_full_queue_refuses() {
        let limits = CallLimits { calls: 3, of_operators: 1, ..LIMITS };
        let (sender, mut inbox) = inbox::<Nothing>(limits).unwrap();
        assert_eq!(sender.send(&caller(1), Nothing), Ok(()));
        assert_eq!(sender.send(&caller(2), Nothing), Ok(()));
        assert_eq!(sender.send(&caller(3), Nothing), Err(NotAnswered::Busy));
        inbox.begin();
        assert_eq!(inbox.take().map(|(caller, _)| caller.uid), Some(1));
        assert_eq!(sender.send(&caller(3), Nothing), Ok(()));
        assert_eq!(sender.rounds(), 1);
    }
}
