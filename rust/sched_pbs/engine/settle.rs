// SPDX-License-Identifier: GPL-2.0

//! From a decision of the node to a thread that runs.

use crate::{
    engine::emitter::Emitter,
    linux::{
        entity,
        sched_class::{self, Awake, RunQueue},
    },
    pbs_core::{Grant, Origin},
    percpu::cpu::Cpu,
    state::{
        faults::Fault,
        insn_clock::Tier,
        threads::{Parked, SeatNumber, NO_SEAT},
        State,
    },
};
use core::ptr::NonNull;
use kernel::{bindings, task::Task, types::ARef};

/// Wake-up that is due for the thread that is granted the CPU where it waits.
pub(crate) enum Wake {
    /// No such thread, or it is awake.
    Nobody,
    /// The thread sleeps on the run queue, and is woken up there.
    Here(NonNull<bindings::task_struct>),
    /// The thread has left the run queue, and is woken up without the lock.
    Later(ARef<Task>),
}

impl State {
    /// Asks the node which process may run, and acts on the answer. A thread that must be woken up
    /// is left in `wake`, for [`State::take_wake`] at the end of the section.
    pub(crate) fn settle(&mut self, rq: &RunQueue, cpu: &'static Cpu) {
        self.settle_at(rq, cpu, Origin::Call);
    }

    pub(super) fn settle_at(&mut self, rq: &RunQueue, cpu: &'static Cpu, origin: Origin) {
        self.end_turn();
        let granted = self.decide(cpu);
        let before = self.occupancy.grant(granted);
        let changes = before != granted;
        if changes {
            let reason = self.node.as_ref().map(|node| node.granted().1);
            self.timer.note_grant(reason == Some(Grant::Slot));
            self.send_off(rq, cpu, before);
        }
        let Some(threads) = &mut self.threads else {
            return;
        };
        if let Some(seat) = threads.get_mut(granted) {
            if seat.is_parked() {
                self.occupancy.note_wake();
            }
            if changes && seat.leaving == 0 {
                threads.remove_waiting(granted);
                self.end_way(cpu, granted);
            }
        }
        self.look_at_budget(rq);
        self.begin_turn(rq);
        let running = self.running_seat();
        // If the thread has blocked, the core will choose anyway.
        let blocks = running.is_some_and(|seat| !seat.queued);
        entity::set_lent(rq, self.is_unallocated());
        let choice = self.choose(rq);
        if choice != self.occupancy.running() && !blocks {
            rq.reschedule();
        }
        self.timer.arm_for(NO_SEAT);
        if self.is_handing_over() {
            // Once a switch: for the next thread, which finds the timer set. The counter itself is
            // set only for the running thread.
            if self.insn_clock.tier() != Tier::PmuOverflow {
                self.arm(rq, cpu, origin.switch());
                self.timer.arm_for(granted);
            }
        } else if [NO_SEAT, granted, choice].contains(&self.occupancy.running()) {
            // Otherwise a switch follows, which sets the timer.
            self.arm(rq, cpu, origin);
        }
    }

    /// Asks the node which process may run; returns the seat of its active thread.
    fn decide(&mut self, cpu: &Cpu) -> SeatNumber {
        if self.faults.fails(Fault::Decision) {
            return self.occupancy.granted();
        }
        let now_ns = self.clock.now_ns();
        let (Some(threads), Some(node)) = (&self.threads, &mut self.node) else {
            return NO_SEAT;
        };
        let before_ns = node.settled_ns();
        let mut emitter = Emitter::new(cpu, &mut self.events, node.plan_id(), 0);
        node.settle(now_ns, &mut emitter);
        if node.settled_ns() != before_ns {
            self.timer.progress();
        }
        let (process, _) = node.granted();
        process.map_or(NO_SEAT, |process| threads.active_of(process))
    }

    /// Sends off the thread of that seat, which has lost the grant of the CPU. If it has blocked
    /// there is nothing to do.
    fn send_off(&mut self, rq: &RunQueue, cpu: &Cpu, before: SeatNumber) {
        let queued = self.seat_mut(before).is_some_and(|seat| seat.queued);
        if queued && !self.park_interrupted(rq, cpu, before) {
            self.stop(before);
        }
    }

    /// Takes the wake-up that is due, with the state left behind, for the thread that is granted
    /// the CPU where it waits.
    pub(crate) fn take_wake(&mut self, rq: &RunQueue) -> Wake {
        let number = self.occupancy.take_wake();
        if number == NO_SEAT || self.faults.fails(Fault::WakeUp) {
            return Wake::Nobody;
        }
        let seat = self.threads.as_ref().and_then(|t| t.get(number));
        let Some(task) = seat
            .filter(|seat| seat.is_parked())
            .and_then(|seat| seat.task.as_ref())
        else {
            return Wake::Nobody;
        };
        match sched_class::end_sleep(rq, task) {
            Awake::Done => Wake::Nobody,
            Awake::Delayed => NonNull::new(task.as_ptr()).map_or(Wake::Nobody, Wake::Here),
            Awake::Blocked => Wake::Later(task.clone()),
        }
    }

    /// Parks the running thread, `number`, which has lost the grant. If it was interrupted in user
    /// space it holds nothing there, and its next step is schedule(), which makes it sleep.
    fn park_interrupted(&mut self, rq: &RunQueue, cpu: &Cpu, number: SeatNumber) -> bool {
        if number == NO_SEAT || number != self.occupancy.running() {
            return false;
        }
        let Some(threads) = &mut self.threads else {
            return false;
        };
        let may = threads.get(number).is_some_and(|seat| {
            seat.queued
                && seat.entered
                && seat.leaving == 0
                && !seat.is_parked()
                && seat.boosted_at_ns.is_none()
        });
        if !may || !sched_class::sleep_interrupted(rq) {
            return false;
        }
        // The thread is runnable, and first in line, until it sleeps.
        threads.push_stopping(number);
        if let Some(seat) = threads.get_mut(number) {
            seat.parked = Parked::Interrupted;
        }
        if !self.reading.is_read() {
            // Another thread has woken up. The instructions retired before that belong to this
            // thread.
            self.charge(rq);
        }
        self.sample_memory(rq, cpu);
        rq.reschedule();
        true
    }

    /// Checks, as the CPU chooses, a thread that was to sleep on its way to user space and has not:
    /// it is not where it waits. If it may not continue it is sent there.
    pub(crate) fn look_at_interrupted(&mut self, rq: &RunQueue) {
        let number = self.occupancy.running();
        let Some(seat) = self.seat_mut(number) else {
            return;
        };
        if seat.parked != Parked::Interrupted {
            return;
        }
        seat.parked = Parked::No;
        if let Some(task) = &seat.task {
            sched_class::end_sleep(rq, task);
        }
        if self.occupancy.is_granted(number) {
            return;
        }
        self.stop(number);
    }

    /// Wakes up a thread of a boosted process: it runs in another class, and need not wait
    /// meanwhile.
    pub(crate) fn wake_boosted(&mut self, cpu: &Cpu, number: SeatNumber) {
        if let Some(threads) = &mut self.threads {
            threads.push_boosted(number);
        }
        cpu.requests.kick();
    }

    /// Takes one of the threads that must be woken up because they are boosted. The others follow.
    pub(crate) fn take_boosted(&mut self, cpu: &Cpu) -> Option<ARef<Task>> {
        let threads = self.threads.as_mut()?;
        let number = threads.pop_boosted()?;
        if threads.has_boosted() {
            cpu.requests.kick();
        }
        threads.get(number)?.task.clone()
    }
}
