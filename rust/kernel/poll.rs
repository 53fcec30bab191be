// SPDX-License-Identifier: GPL-2.0

//! Support of `poll(2)`, `select(2)` and `epoll(7)` for files.
//!
//! C header: [`include/linux/poll.h`](srctree/include/linux/poll.h)

use crate::{bindings, wait_queue::WaitQueue};
use core::marker::PhantomData;

/// The file can be read.
pub const IN: u32 = bindings::EPOLLIN;
/// Normal data can be read.
pub const RDNORM: u32 = bindings::EPOLLRDNORM;
/// The file can be written.
pub const OUT: u32 = bindings::EPOLLOUT;
/// The file is in error.
pub const ERR: u32 = bindings::EPOLLERR;

/// Collects the queues whose waking makes a poller look again.
///
/// `'file` stands for the life of the open file. Pollers leave the queues at its end at the latest,
/// so every queue must live as long.
///
/// # Invariants
///
/// `file` and `table` are what C code handed to the file's `poll` function, and both stay valid as
/// long as this exists; `table` may be null.
pub struct PollTable<'file> {
    file: *mut bindings::file,
    table: *mut bindings::poll_table,
    /// Invariant in `'file`: a shorter life would let a queue in that dies too early.
    _file: PhantomData<fn(&'file ()) -> &'file ()>,
}

impl<'file> PollTable<'file> {
    /// Wraps the arguments of a file's `poll` function.
    ///
    /// # Safety
    ///
    /// The pointers must be as the type invariant says, and the `release` function of `file` must
    /// end `'file`.
    pub(crate) unsafe fn new(file: *mut bindings::file, table: *mut bindings::poll_table) -> Self {
        // INVARIANT: By the function's requirements.
        Self {
            file,
            table,
            _file: PhantomData,
        }
    }

    /// Makes the poller look again whenever `queue` is woken.
    ///
    /// To be called before looking at the condition.
    pub fn register(&self, queue: &'file WaitQueue) {
        // SAFETY: By the type invariant, `file` and `table` are valid for this call. The queue is
        // initialised and lives as long as the file, which pollers leave before.
        unsafe { bindings::poll_wait(self.file, queue.as_ptr(), self.table) };
    }
}
