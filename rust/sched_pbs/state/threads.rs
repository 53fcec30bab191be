// SPDX-License-Identifier: GPL-2.0

//! The threads that are attached to one CPU's plan: the table of seats.
//!
//! A thread of a plan process has a *seat*; `task_struct` stores its number. A seat is in the queue
//! of its process, in order of attaching; the first of the queue is the process's *active* thread.
//!
//! A seat whose thread has to reach the edge of user space and wait there is in the queue of
//! *stopping* threads while it is runnable. If it has just woken up it is in the queue of
//! *deferred* threads for a while before. A thread that waits while another class runs it, because
//! a waiter of that class boosts it, is in the queue of *boosted* threads until it is woken up.
//! Queues are linked by seat numbers: therefore everything here is O(1), allocates nothing after
//! construction and needs no `unsafe`.
//!
//! A seat names its process by a *row*, see [`Rows`], which the process keeps from plan to plan.

use super::{
    memory::MemorySample,
    rows::{RowNumber, Rows, NO_ROW, ROWS},
};
pub(crate) use crate::linux::entity::{SeatNumber, NO_SEAT};
use crate::{
    linux::{entity::NUMBER_BITS, storage::table},
    pbs_core::Presence,
};
use core::{num::NonZeroU64, ops::Range};
use kernel::{
    alloc::{KVBox, KVVec},
    init::init_array_from_fn,
    prelude::*,
    sync::Arc,
    task::Task,
    task_work::TaskWork,
    types::ARef,
};

/// The task work that makes a thread wait at the edge of user space: see
/// [`park`](crate::thread::park).
pub(crate) struct StopWork;

/// Greatest number of threads that may be attached to one CPU's plan at a time.
pub(crate) const MAX_THREADS: usize = 4096;

/// Number of seats that are checked in one go for threads that have slept on the run queue for
/// long.
const SWEPT_AT_ONCE: SeatNumber = 256;

/// Least time between two such checks.
const SWEEP_NS: u64 = 4_000_000;

/// Longest time for which a sleeping thread may stay on the run queue. There a wake-up costs less,
/// but code that waits for it to sleep, such as RCU tasks, checks whether it does.
pub(crate) const DELAY_NS: u64 = 100_000_000;

/// Longest time for which a thread that wakes up in the kernel out of turn may be kept from
/// continuing to where it waits. It may hold resources that others need: therefore the time can't
/// be long. But often it is granted the CPU sooner than that, and has then taken it from no other
/// for nothing.
pub(crate) const DEFER_NS: u64 = 1_000_000;

/// The links of one queue.
#[derive(Clone, Copy)]
struct QueueLinks {
    next: SeatNumber,
    /// The previous seat; [`NOT_LINKED`]: it is not in the queue.
    prev: SeatNumber,
}

/// See [`QueueLinks`].
const NOT_LINKED: SeatNumber = SeatNumber::MAX;

impl Default for QueueLinks {
    fn default() -> Self {
        Self {
            next: NO_SEAT,
            prev: NOT_LINKED,
        }
    }
}

/// The ends of a queue.
#[derive(Clone, Copy, Default)]
pub(crate) struct Queue {
    head: SeatNumber,
    tail: SeatNumber,
}

impl Queue {
    /// The first seat, [`NO_SEAT`] if there is none.
    pub(crate) fn head(&self) -> SeatNumber {
        self.head
    }
}

/// The links of a seat that a queue uses.
#[derive(Clone, Copy)]
enum QueueKind {
    Process,
    Stopping,
    Deferred,
    Boosted,
}

/// Whether a thread waits for its process to be granted the CPU. It holds nothing then, and all
/// instructions that it has retired in user space are charged.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Parked {
    /// The thread does not wait.
    #[default]
    No,
    /// The thread is about to sleep, at the edge of user space or in its system call.
    Going,
    /// The thread was interrupted in user space, and is about to sleep on its way back there.
    Interrupted,
    /// The thread sleeps, or was woken up and has not got the CPU yet.
    Asleep,
}

/// A thread of a plan process.
///
/// The struct fills two cache lines, and its place in the table is found without a multiplication.
#[derive(Default)]
#[repr(align(64))]
pub(crate) struct Seat {
    /// The thread; `None`: the seat is free.
    pub(crate) task: Option<ARef<Task>>,
    /// Task work that sends the thread to wait. Kept when the seat is given up, because it can't be
    /// freed under the lock of the run queue.
    pub(crate) work: Option<Arc<TaskWork<StopWork>>>,
    /// The row of its process, [`NO_ROW`] once the thread has left that.
    pub(crate) row: RowNumber,
    /// The thread's exit ends one task, not the process (`PBS_ATTACH_ONE_TASK`).
    pub(crate) one_task: bool,
    /// Whether the thread has entered the class.
    pub(crate) entered: bool,
    /// Whether the thread is on the run queue, and runnable.
    pub(crate) queued: bool,
    /// Time since which the thread sleeps on the run queue, as its dequeue is delayed, by the clock
    /// of the run queue; 0: it does not.
    delayed_since_ns: u64,
    /// Whether the thread waits where it holds nothing.
    pub(crate) parked: Parked,
    /// Whether the thread has to reach the edge of user space and wait there.
    pub(crate) stopping: bool,
    /// Time at which it was sent there, on the monotonic clock.
    pub(crate) stopping_since_ns: u64,
    /// Time for which it has had the CPU since, while it was another's turn.
    pub(crate) way_ns: u64,
    /// Count of the CPU up to which the thread may continue, as it was let through to handle a
    /// signal; 0: it was not.
    pub(crate) let_through_to_insns: u64,
    /// The memory that the node has received last.
    pub(crate) memory: MemorySample,
    /// Run time of the thread when another class began to run it, because a waiter of that class
    /// boosts it.
    pub(crate) boosted_at_ns: Option<NonZeroU64>,
    /// Reason why the thread is about to leave the class, 0: it is not.
    pub(crate) leaving: u16,
    links: [QueueLinks; 4],
}

impl Seat {
    /// Whether the thread waits where it holds nothing, or is about to.
    pub(crate) fn is_parked(&self) -> bool {
        self.parked != Parked::No
    }

    /// Whether the thread waits to be granted the CPU and for nothing else.
    pub(crate) fn goes_on(&self) -> bool {
        self.is_parked() && self.leaving == 0 && self.entered
    }

    /// Presence of its process if the thread is the active one.
    pub(crate) fn presence(&self) -> Presence {
        if self.queued || self.is_parked() || self.boosted_at_ns.is_some() {
            Presence::Ready
        } else {
            Presence::Blocked
        }
    }

    /// Whether the thread runs and should wait, but nothing will send it there: it was let through
    /// to handle a signal.
    pub(crate) fn is_unenforced(&self) -> bool {
        self.stopping
            && self.leaving == 0
            && !self.is_parked()
            && !self.work.as_ref().is_some_and(|work| work.is_pending())
    }

    fn is_linked(&self, kind: QueueKind) -> bool {
        self.links[kind as usize].prev != NOT_LINKED
    }
}

/// All seats of a CPU.
pub(crate) struct Threads {
    /// Seats by place, see [`place`].
    seats: KVBox<[Seat; MAX_THREADS]>,
    /// Queues by row.
    queues: KVVec<Queue>,
    rows: Rows,
    /// Reason why threads leave whose process went with its plan.
    lost_reason: u16,
    stopping: Queue,
    deferred: Queue,
    boosted: Queue,
    /// Number of threads that sleep on the run queue; the seat from which on those are searched for
    /// that have slept for long; and the time of the last search, by the clock of the run queue.
    delayed: u32,
    delayed_from: SeatNumber,
    swept_ns: u64,
    /// First of the free seats, linked by their process links, and the greatest that was ever
    /// taken.
    free: SeatNumber,
    last: SeatNumber,
    used: u32,
}

impl Threads {
    /// A table without a plan.
    pub(crate) fn new() -> Result<Self> {
        let seat = |place| {
            let mut seat = Seat::default();
            // The seat at place 0 is the one with the greatest number.
            if place != 0 {
                seat.links[QueueKind::Process as usize].next = place as SeatNumber + 1;
            }
            seat
        };
        Ok(Self {
            seats: KVBox::init::<Error>(init_array_from_fn(seat), GFP_KERNEL)?,
            queues: table(ROWS, Queue::default)?,
            rows: Rows::new(0)?,
            lost_reason: 0,
            stopping: Queue::default(),
            deferred: Queue::default(),
            boosted: Queue::default(),
            delayed: 0,
            delayed_from: 1,
            swept_ns: 0,
            free: 1,
            last: NO_SEAT,
            used: 0,
        })
    }

    /// The seat of that number, if there is one. A seat that was given up is like one whose thread
    /// is in no queue and waits for nothing.
    #[inline]
    pub(crate) fn get(&self, number: SeatNumber) -> Option<&Seat> {
        (number != NO_SEAT).then(|| &self.seats[place(number)])
    }

    /// The seat of that number, to be changed.
    #[inline]
    pub(crate) fn get_mut(&mut self, number: SeatNumber) -> Option<&mut Seat> {
        (number != NO_SEAT).then(|| &mut self.seats[place(number)])
    }

    /// The row of each process.
    pub(crate) fn rows(&self) -> &Rows {
        &self.rows
    }

    /// The active thread of the process in a row.
    pub(crate) fn active(&self, row: RowNumber) -> SeatNumber {
        self.queues.get(row as usize).map_or(NO_SEAT, Queue::head)
    }

    /// The active thread of a process, by the index of that in the plan.
    pub(crate) fn active_of(&self, process: u32) -> SeatNumber {
        self.active(self.rows.row(process))
    }

    /// The process of which the seat is the active one, by its index in the plan.
    pub(crate) fn process_if_active(&self, number: SeatNumber) -> Option<u32> {
        let row = self.get(number)?.row;
        if self.active(row) != number {
            return None;
        }
        self.rows.process(row)
    }

    /// The active thread of the process in a row, if that went with its plan.
    pub(crate) fn active_lost(&self, row: RowNumber) -> Option<SeatNumber> {
        let number = self.active(row);
        self.lost(number).map(|_| number)
    }

    /// Id of the process of a thread and the reason why the thread leaves, if the process went with
    /// its plan and that was not reported yet.
    pub(crate) fn lost(&self, number: SeatNumber) -> Option<(u32, u16)> {
        let seat = self.get(number).filter(|seat| seat.leaving == 0)?;
        let id = self.rows.id_of_lost(seat.row)?;
        Some((id, self.lost_reason))
    }

    /// The first of the stopping threads that are runnable.
    pub(crate) fn first_stopping(&self) -> SeatNumber {
        self.stopping.head
    }

    /// All stopping threads, in their order.
    pub(crate) fn stopping(&self) -> impl Iterator<Item = SeatNumber> + '_ {
        let after = |number: &SeatNumber| {
            let seat = self.get(*number)?;
            Some(seat.links[QueueKind::Stopping as usize].next)
        };
        core::iter::successors(Some(self.stopping.head), after)
            .take_while(|number| *number != NO_SEAT)
    }

    /// Moves the first stopping thread to the end.
    pub(crate) fn rotate_stopping(&mut self) {
        let number = self.stopping.head;
        self.remove(QueueKind::Stopping, NO_ROW, number);
        self.push(QueueKind::Stopping, NO_ROW, number);
    }

    /// The first of the threads that woke up out of turn, the one that has waited longest.
    pub(crate) fn first_deferred(&self) -> SeatNumber {
        self.deferred.head
    }

    /// Time at which the next deferred thread must be let in.
    pub(crate) fn deferred_until_ns(&self) -> Option<u64> {
        let seat = self.get(self.first_deferred())?;
        Some(seat.stopping_since_ns.saturating_add(DEFER_NS))
    }

    /// One more than the greatest number of a seat that was ever taken.
    pub(crate) fn end(&self) -> SeatNumber {
        self.last + 1
    }

    /// Number of seats that are taken.
    pub(crate) fn used(&self) -> u32 {
        self.used
    }

    /// The first of the threads that should leave the class in the seats of `range`.
    pub(crate) fn find_leaving(
        &self,
        mut range: Range<SeatNumber>,
    ) -> Option<(SeatNumber, &ARef<Task>)> {
        range.find_map(|number| {
            let seat = self.get(number).filter(|seat| seat.leaving != 0)?;
            Some((number, seat.task.as_ref()?))
        })
    }

    /// Takes a seat for a thread of the process in `row`, at the end of the process's queue.
    ///
    /// `work` gets the previous content of the seat, which can only be freed outside the lock.
    pub(crate) fn take(
        &mut self,
        task: ARef<Task>,
        row: RowNumber,
        one_task: bool,
        work: &mut Option<Arc<TaskWork<StopWork>>>,
    ) -> Result<SeatNumber> {
        let number = self.free;
        if number == NO_SEAT {
            return Err(ENOSPC);
        }
        let seat = &mut self.seats[place(number)];
        self.free = seat.links[QueueKind::Process as usize].next;
        let old_work = seat.work.take();
        *seat = Seat {
            task: Some(task),
            work: work.take(),
            row,
            one_task,
            ..Seat::default()
        };
        self.used += 1;
        self.last = self.last.max(number);
        *work = old_work;
        self.push(QueueKind::Process, row, number);
        Ok(number)
    }

    /// Gives a seat up. Returns the thread's reference, which is not the last one to it.
    pub(crate) fn release(&mut self, number: SeatNumber) -> Option<ARef<Task>> {
        let row = self.get(number).filter(|seat| seat.task.is_some())?.row;
        self.remove(QueueKind::Process, row, number);
        self.remove_waiting(number);
        self.remove(QueueKind::Boosted, NO_ROW, number);
        self.forget_delay(number);
        let free = self.free;
        let seat = self.get_mut(number)?;
        let task = seat.task.take();
        let work = seat.work.take();
        *seat = Seat {
            work,
            ..Seat::default()
        };
        seat.links[QueueKind::Process as usize].next = free;
        self.free = number;
        self.used -= 1;
        task
    }

    /// Takes a seat out of the queue of its process.
    pub(crate) fn forget_process(&mut self, number: SeatNumber) {
        let Some(seat) = self.get_mut(number) else {
            return;
        };
        let row = core::mem::replace(&mut seat.row, NO_ROW);
        self.remove(QueueKind::Process, row, number);
    }

    /// Puts a seat among the stopping ones, at the end, if it is on the run queue. Idempotent.
    pub(crate) fn push_stopping(&mut self, number: SeatNumber) {
        if self.get(number).is_some_and(|seat| seat.queued) {
            self.remove(QueueKind::Deferred, NO_ROW, number);
            self.push(QueueKind::Stopping, NO_ROW, number);
        }
    }

    /// Makes a thread that leaves the class do so itself at the edge of user space, if it runs; if
    /// it sleeps its policy must be changed by another thread.
    pub(crate) fn send_away(&mut self, number: SeatNumber) {
        let Some(seat) = self.get(number).filter(|seat| seat.queued) else {
            return;
        };
        if let (Some(work), Some(task)) = (&seat.work, &seat.task) {
            // This fails only for an exiting thread, which leaves the class by its exit.
            let _ = TaskWork::add(work, task);
        }
        self.push_stopping(number);
    }

    /// Puts a seat among those that woke up out of turn, at the end, if it is on the run queue and
    /// not stopping yet. Idempotent.
    pub(crate) fn push_deferred(&mut self, number: SeatNumber) {
        let may = self
            .get(number)
            .is_some_and(|seat| seat.queued && !seat.is_linked(QueueKind::Stopping));
        if may {
            self.push(QueueKind::Deferred, NO_ROW, number);
        }
    }

    /// Puts a seat among those that are boosted and have to be woken up, at the end. Idempotent.
    pub(crate) fn push_boosted(&mut self, number: SeatNumber) {
        self.push(QueueKind::Boosted, NO_ROW, number);
    }

    /// Takes the first boosted thread.
    pub(crate) fn pop_boosted(&mut self) -> Option<SeatNumber> {
        let number = Some(self.boosted.head()).filter(|number| *number != NO_SEAT)?;
        self.remove(QueueKind::Boosted, NO_ROW, number);
        Some(number)
    }

    /// Whether there are boosted threads.
    pub(crate) fn has_boosted(&self) -> bool {
        self.boosted.head() != NO_SEAT
    }

    /// Notes that a thread sleeps on the run queue since `now_ns`.
    pub(crate) fn note_delay(&mut self, number: SeatNumber, now_ns: u64) {
        if let Some(seat) = self.get_mut(number) {
            let before_ns = core::mem::replace(&mut seat.delayed_since_ns, now_ns.max(1));
            self.delayed += u32::from(before_ns == 0);
        }
    }

    /// Notes that a thread does not sleep on the run queue any more. Idempotent.
    pub(crate) fn forget_delay(&mut self, number: SeatNumber) {
        if let Some(seat) = self.get_mut(number) {
            let before_ns = core::mem::take(&mut seat.delayed_since_ns);
            self.delayed -= u32::from(before_ns != 0);
        }
    }

    /// Whether any thread sleeps on the run queue.
    pub(crate) fn has_delayed(&self) -> bool {
        self.delayed != 0
    }

    /// Searches the next few seats for threads that have slept on the run queue for long as of
    /// `clock_ns`, and calls `function` with each after it was forgotten. Only at intervals.
    pub(crate) fn sweep_delayed(&mut self, clock_ns: u64, mut function: impl FnMut(&Task)) {
        if !self.has_delayed() || clock_ns.saturating_sub(self.swept_ns) < SWEEP_NS {
            return;
        }
        self.swept_ns = clock_ns;
        let since_ns = clock_ns.saturating_sub(DELAY_NS);
        for _ in 0..SWEPT_AT_ONCE.min(self.last) {
            if self.delayed == 0 {
                return;
            }
            let number = self.delayed_from;
            self.delayed_from = if number < self.last { number + 1 } else { 1 };
            let delayed_since_ns = self.get(number).map_or(0, |seat| seat.delayed_since_ns);
            if delayed_since_ns == 0 || delayed_since_ns > since_ns {
                continue;
            }
            self.forget_delay(number);
            if let Some(task) = self.get(number).and_then(|seat| seat.task.as_ref()) {
                function(task);
            }
        }
    }

    /// Takes a seat from among the stopping and the deferred ones. Idempotent.
    pub(crate) fn remove_waiting(&mut self, number: SeatNumber) {
        self.remove(QueueKind::Stopping, NO_ROW, number);
        self.remove(QueueKind::Deferred, NO_ROW, number);
    }

    /// Replaces the rows by those of another plan; returns the rows of the one before.
    ///
    /// Each thread of a process that the new plan does not have must be notified that it leaves for
    /// `reason` before those rows are given to others: until then it belongs to no process.
    pub(crate) fn replace_rows(&mut self, rows: Rows, reason: u16) -> Rows {
        self.lost_reason = reason;
        core::mem::replace(&mut self.rows, rows)
    }

    /// Like [`replace_rows`](Threads::replace_rows), without a new plan: all processes are gone.
    pub(crate) fn lose_rows(&mut self, reason: u16) {
        self.lost_reason = reason;
        self.rows.lose_all();
    }

    fn queue_mut(&mut self, kind: QueueKind, row: RowNumber) -> Option<&mut Queue> {
        match kind {
            QueueKind::Process => self.queues.get_mut(row as usize),
            QueueKind::Stopping => Some(&mut self.stopping),
            QueueKind::Deferred => Some(&mut self.deferred),
            QueueKind::Boosted => Some(&mut self.boosted),
        }
    }

    fn links_mut(&mut self, kind: QueueKind, number: SeatNumber) -> &mut QueueLinks {
        &mut self.seats[place(number)].links[kind as usize]
    }

    #[inline]
    fn push(&mut self, kind: QueueKind, row: RowNumber, number: SeatNumber) {
        if number == NO_SEAT || self.links_mut(kind, number).prev != NOT_LINKED {
            return;
        }
        let Some(queue) = self.queue_mut(kind, row) else {
            return;
        };
        let prev = core::mem::replace(&mut queue.tail, number);
        if prev == NO_SEAT {
            queue.head = number;
        } else {
            self.links_mut(kind, prev).next = number;
        }
        *self.links_mut(kind, number) = QueueLinks {
            next: NO_SEAT,
            prev,
        };
    }

    #[inline]
    fn remove(&mut self, kind: QueueKind, row: RowNumber, number: SeatNumber) {
        let links = self.links_mut(kind, number);
        let QueueLinks { next, prev } = *links;
        if prev == NOT_LINKED {
            return;
        }
        *links = QueueLinks::default();
        // An end of the queue is updated instead of a neighbour.
        if prev == NO_SEAT {
            if let Some(queue) = self.queue_mut(kind, row) {
                queue.head = next;
            }
        } else {
            self.links_mut(kind, prev).next = next;
        }
        if next == NO_SEAT {
            if let Some(queue) = self.queue_mut(kind, row) {
                queue.tail = prev;
            }
        } else {
            self.links_mut(kind, next).prev = prev;
        }
    }
}

/// Place in the table of the seat of that number: always within bounds.
#[inline]
fn place(number: SeatNumber) -> usize {
    number as usize % MAX_THREADS
}

const _: () = assert!(MAX_THREADS < 1 << NUMBER_BITS);
const _: () = assert!(MAX_THREADS.is_power_of_two() && core::mem::size_of::<Seat>() == 128);
