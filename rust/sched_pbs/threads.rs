// SPDX-License-Identifier: GPL-2.0

//! The threads that are attached to one CPU's plan: the table of seats.
//!
//! A thread of a plan process has a *seat*; `task_struct` keeps its number. A seat is in the queue
//! of its process, in order of attaching; the first of the queue is the process's *active* thread.
//! A seat whose thread has to reach the edge of user space and wait there is in the queue of
//! *stopping* threads while it is runnable; if it has just woken up it is in that of *deferred*
//! threads for a while before. Queues are linked by seat numbers, so everything here
//! is O(1), allocates nothing after construction and needs no `unsafe`.

use super::{park::Stop, storage::table};
use kernel::{alloc::KVVec, prelude::*, sync::Arc, task::Task, task_work::TaskWork, types::ARef};

/// Number of a seat; [`NO_SEAT`] is none.
pub(crate) type SeatNumber = u32;

/// No seat. The first place of the table stays empty, so that zeroed memory means this.
pub(crate) const NO_SEAT: SeatNumber = 0;

/// Index of no process.
pub(crate) const NO_PROCESS: u32 = u32::MAX;

/// How many threads may be attached to one CPU's plan at a time.
pub(crate) const MAX_THREADS: usize = 4096;

/// The links of one queue.
#[derive(Clone, Copy, Default)]
struct Links {
    next: SeatNumber,
    prev: SeatNumber,
    linked: bool,
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

/// Which links of a seat a queue uses.
#[derive(Clone, Copy)]
enum Kind {
    Process,
    Stopping,
    Deferred,
}

/// A thread of a plan process.
#[derive(Default)]
pub(crate) struct Seat {
    /// The thread; `None`: the seat is free.
    pub(crate) task: Option<ARef<Task>>,
    /// What sends the thread to wait. Kept when the seat is given up, because it can't be freed
    /// under the lock of the run queue.
    pub(crate) work: Option<Arc<TaskWork<Stop>>>,
    /// Index of its process in the plan, [`NO_PROCESS`] once the plan does not have it any more.
    pub(crate) process: u32,
    /// The thread's exit ends one task, not the process (`PBS_ATTACH_ONE_TASK`).
    pub(crate) one_task: bool,
    /// It has entered the class.
    pub(crate) entered: bool,
    /// It is on the run queue.
    pub(crate) queued: bool,
    /// It waits, or is about to wait, at the edge of user space.
    pub(crate) parked: bool,
    /// It has to reach the edge of user space and wait there.
    pub(crate) stopping: bool,
    /// When it was told to, on the monotonic clock.
    pub(crate) stopping_since_ns: u64,
    /// Its task has begun: it was active and had the CPU.
    pub(crate) began: bool,
    /// Another class runs it, because a waiter of that class boosts it; its run time so far.
    pub(crate) boosted_at_ns: Option<u64>,
    /// Why it is about to leave the class, 0: it is not.
    pub(crate) leaving: u16,
    links: [Links; 3],
}

impl Seat {
    fn is_linked(&self, kind: Kind) -> bool {
        self.links[kind as usize].linked
    }
}

/// All seats of a CPU.
pub(crate) struct Threads {
    seats: KVVec<Seat>,
    processes: KVVec<Queue>,
    stopping: Queue,
    deferred: Queue,
    /// First of the free seats, linked by their process links.
    free: SeatNumber,
    used: u32,
}

impl Threads {
    /// A table without a plan.
    pub(crate) fn new() -> Result<Self> {
        let mut seats: KVVec<Seat> = table(MAX_THREADS + 1, Seat::default)?;
        for (number, seat) in seats.iter_mut().enumerate().skip(1) {
            seat.links[Kind::Process as usize].next = if number < MAX_THREADS {
                number as SeatNumber + 1
            } else {
                NO_SEAT
            };
        }
        Ok(Self {
            seats,
            processes: KVVec::new(),
            stopping: Queue::default(),
            deferred: Queue::default(),
            free: 1,
            used: 0,
        })
    }

    /// The queues of a plan with `len` processes, for [`Threads::replace_processes`].
    pub(crate) fn queues(len: usize) -> Result<KVVec<Queue>> {
        table(len, Queue::default)
    }

    /// The seat of that number, if it is taken.
    pub(crate) fn get(&self, number: SeatNumber) -> Option<&Seat> {
        self.seats
            .get(number as usize)
            .filter(|seat| seat.task.is_some())
    }

    /// The seat of that number, if it is taken.
    pub(crate) fn get_mut(&mut self, number: SeatNumber) -> Option<&mut Seat> {
        self.seats
            .get_mut(number as usize)
            .filter(|seat| seat.task.is_some())
    }

    /// The active thread of a process.
    pub(crate) fn active(&self, process: u32) -> SeatNumber {
        self.processes
            .get(process as usize)
            .map_or(NO_SEAT, Queue::head)
    }

    /// Whether the seat is its process's active one.
    pub(crate) fn is_active(&self, number: SeatNumber) -> bool {
        self.get(number)
            .is_some_and(|seat| self.active(seat.process) == number)
    }

    /// The first of the stopping threads that are runnable.
    pub(crate) fn first_stopping(&self) -> SeatNumber {
        self.stopping.head
    }

    /// The first of the threads that woke up out of turn, the one that has waited longest.
    pub(crate) fn first_deferred(&self) -> SeatNumber {
        self.deferred.head
    }

    /// How many seats are taken.
    pub(crate) fn used(&self) -> u32 {
        self.used
    }

    /// The first thread that should leave the class in a seat from `from` on.
    ///
    /// May look at the whole table: for process context, where the lock is dropped between two
    /// calls.
    pub(crate) fn find_leaving(&self, from: SeatNumber) -> Option<(SeatNumber, &ARef<Task>)> {
        let seats = (from..).zip(self.seats.iter().skip(from as usize));
        seats
            .filter(|(_, seat)| seat.leaving != 0)
            .find_map(|(number, seat)| Some((number, seat.task.as_ref()?)))
    }

    /// Takes a seat for a thread of `process`, at the end of the process's queue.
    ///
    /// `work` gets what the seat held before, which can only be freed outside the lock.
    pub(crate) fn take(
        &mut self,
        task: ARef<Task>,
        process: u32,
        one_task: bool,
        work: &mut Option<Arc<TaskWork<Stop>>>,
    ) -> Result<SeatNumber> {
        let number = self.free;
        if number == NO_SEAT {
            return Err(ENOSPC);
        }
        let seat = self.seats.get_mut(number as usize).ok_or(EINVAL)?;
        self.free = seat.links[Kind::Process as usize].next;
        let old_work = seat.work.take();
        *seat = Seat {
            task: Some(task),
            work: work.take(),
            process,
            one_task,
            ..Seat::default()
        };
        self.used += 1;
        *work = old_work;
        self.push(Kind::Process, process, number);
        Ok(number)
    }

    /// Gives a seat up. Returns the thread's reference, which is not the last one to it.
    pub(crate) fn release(&mut self, number: SeatNumber) -> Option<ARef<Task>> {
        let process = self.get(number)?.process;
        self.remove(Kind::Process, process, number);
        self.remove_waiting(number);
        let free = self.free;
        let seat = self.get_mut(number)?;
        let task = seat.task.take();
        let work = seat.work.take();
        *seat = Seat {
            work,
            ..Seat::default()
        };
        seat.links[Kind::Process as usize].next = free;
        self.free = number;
        self.used -= 1;
        task
    }

    /// Takes a seat out of the queue of its process.
    pub(crate) fn forget_process(&mut self, number: SeatNumber) {
        let Some(seat) = self.get_mut(number) else {
            return;
        };
        let process = core::mem::replace(&mut seat.process, NO_PROCESS);
        self.remove(Kind::Process, process, number);
    }

    /// Puts a seat among the stopping ones, at the end, if it is on the run queue. Idempotent.
    pub(crate) fn push_stopping(&mut self, number: SeatNumber) {
        if self.get(number).is_some_and(|seat| seat.queued) {
            self.remove(Kind::Deferred, NO_PROCESS, number);
            self.push(Kind::Stopping, NO_PROCESS, number);
        }
    }

    /// Has a thread that leaves the class do so itself at the edge of user space, if it runs; if it
    /// sleeps somebody else has to change its policy.
    pub(crate) fn send_away(&mut self, number: SeatNumber) {
        let Some(seat) = self.get(number).filter(|seat| seat.queued) else {
            return;
        };
        if let (Some(work), Some(task)) = (&seat.work, &seat.task) {
            // It fails for a thread that is exiting only, which leaves the class by that.
            let _ = TaskWork::add(work, task);
        }
        self.push_stopping(number);
    }

    /// Puts a seat among those that woke up out of turn, at the end, if it is on the run queue and
    /// not stopping yet. Idempotent.
    pub(crate) fn push_deferred(&mut self, number: SeatNumber) {
        let may = self
            .get(number)
            .is_some_and(|seat| seat.queued && !seat.is_linked(Kind::Stopping));
        if may {
            self.push(Kind::Deferred, NO_PROCESS, number);
        }
    }

    /// Takes a seat from among the stopping and the deferred ones. Idempotent.
    pub(crate) fn remove_waiting(&mut self, number: SeatNumber) {
        self.remove(Kind::Stopping, NO_PROCESS, number);
        self.remove(Kind::Deferred, NO_PROCESS, number);
    }

    /// Moves the threads over to the processes of a new plan: those of the old process `i` go to
    /// the process `map(i)`; those of a process that it does not have are marked as leaving for
    /// `reason`, and `lost` is told of them.
    ///
    /// O(processes + threads). Returns the old queues, to be freed outside the lock.
    pub(crate) fn replace_processes(
        &mut self,
        new: KVVec<Queue>,
        map: impl Fn(u32) -> Option<u32>,
        reason: u16,
        mut lost: impl FnMut(u32, &Task),
    ) -> KVVec<Queue> {
        let old = core::mem::replace(&mut self.processes, new);
        for (index, queue) in (0..).zip(old.iter()) {
            let target = map(index);
            let mut number = queue.head;
            while let Some(seat) = self.get_mut(number) {
                let leaving = number;
                number = seat.links[Kind::Process as usize].next;
                seat.process = target.unwrap_or(NO_PROCESS);
                if target.is_none() {
                    seat.links[Kind::Process as usize] = Links::default();
                    seat.leaving = reason;
                    if let Some(task) = &seat.task {
                        lost(index, task);
                    }
                    self.send_away(leaving);
                }
            }
            if let Some(place) = target.and_then(|target| self.processes.get_mut(target as usize)) {
                *place = *queue;
            }
        }
        old
    }

    fn queue_mut(&mut self, kind: Kind, process: u32) -> Option<&mut Queue> {
        match kind {
            Kind::Process => self.processes.get_mut(process as usize),
            Kind::Stopping => Some(&mut self.stopping),
            Kind::Deferred => Some(&mut self.deferred),
        }
    }

    fn links_mut(&mut self, kind: Kind, number: SeatNumber) -> Option<&mut Links> {
        self.get_mut(number)
            .map(|seat| &mut seat.links[kind as usize])
    }

    fn push(&mut self, kind: Kind, process: u32, number: SeatNumber) {
        if self
            .links_mut(kind, number)
            .map_or(true, |links| links.linked)
        {
            return;
        }
        let Some(queue) = self.queue_mut(kind, process) else {
            return;
        };
        let prev = queue.tail;
        queue.tail = number;
        if prev == NO_SEAT {
            queue.head = number;
        } else if let Some(links) = self.links_mut(kind, prev) {
            links.next = number;
        }
        if let Some(links) = self.links_mut(kind, number) {
            *links = Links {
                next: NO_SEAT,
                prev,
                linked: true,
            };
        }
    }

    fn remove(&mut self, kind: Kind, process: u32, number: SeatNumber) {
        let Some(links) = self.links_mut(kind, number) else {
            return;
        };
        let Links { next, prev, linked } = core::mem::take(links);
        if !linked {
            return;
        }
        if let Some(links) = self.links_mut(kind, prev) {
            links.next = next;
        }
        if let Some(links) = self.links_mut(kind, next) {
            links.prev = prev;
        }
        if let Some(queue) = self.queue_mut(kind, process) {
            if queue.head == number {
                queue.head = next;
            }
            if queue.tail == number {
                queue.tail = prev;
            }
        }
    }
}
