// SPDX-License-Identifier: GPL-2.0

//! Threads that may not run any more, on their way to where they wait.

use crate::{
    linux::sched_class::RunQueue,
    pbs_core::Origin,
    percpu::cpu::Cpu,
    state::{
        threads::{SeatNumber, Threads, DEFER_NS, NO_SEAT},
        State,
    },
};
use kernel::task_work::TaskWork;

/// Number of threads that woke up out of turn and are let in at a time.
const DEFERRED_AT_ONCE: usize = 8;

/// Least number of instructions that a thread may retire to handle a signal before it is sent to
/// wait once more: a short handler. The time to the begin of the handler is the kernel's, and no
/// measure: in a kernel with many checks it exceeds the time after which the thread is checked.
const HANDLER_INSNS: u64 = 2_000;

impl State {
    /// Sends a thread to wait at the edge of user space. If it is blocked in the kernel it is sent
    /// there when it wakes up.
    pub(crate) fn stop(&mut self, number: SeatNumber) {
        if number == NO_SEAT {
            return;
        }
        let now_ns = self.clock.now_ns();
        let Some(threads) = self.threads_stopping(number, now_ns) else {
            return;
        };
        threads.push_stopping(number);
        if number == self.occupancy.running() {
            self.send_to_wait(number);
        }
    }

    /// Sends a thread that has woken up in the kernel to wait there too, but not at once: the
    /// running thread continues.
    pub(crate) fn stop_soon(&mut self, rq: &RunQueue, cpu: &Cpu, number: SeatNumber) {
        let now_ns = self.clock.now_ns();
        let Some(threads) = self.threads_stopping(number, now_ns) else {
            return;
        };
        threads.push_deferred(number);
        if !self.timer.expires_by(now_ns + DEFER_NS) {
            self.arm(rq, cpu, Origin::Call);
        }
        if !self.occupancy.runs() {
            self.preempt(rq);
        }
    }

    /// Notes that a thread has to wait, if it can run; the caller chooses the queue.
    fn threads_stopping(&mut self, number: SeatNumber, now_ns: u64) -> Option<&mut Threads> {
        let threads = self.threads.as_mut()?;
        let seat = threads.get_mut(number)?;
        if !seat.queued || seat.boosted_at_ns.is_some() {
            return None;
        }
        if !seat.stopping {
            seat.stopping = true;
            seat.let_through_to_insns = 0;
            seat.stopping_since_ns = now_ns;
        }
        Some(threads)
    }

    /// Lets in some of the threads that have waited long enough; the others follow.
    pub(super) fn let_deferred_in(&mut self, now_ns: u64) {
        for _ in 0..DEFERRED_AT_ONCE {
            let Some(threads) = &mut self.threads else {
                return;
            };
            if !threads
                .deferred_until_ns()
                .is_some_and(|at_ns| at_ns <= now_ns)
            {
                return;
            }
            threads.push_stopping(threads.first_deferred());
        }
    }

    /// Sends the running thread to wait at the edge of user space.
    pub(super) fn send_to_wait(&mut self, number: SeatNumber) {
        let Some(seat) = self.seat_mut(number) else {
            return;
        };
        if seat.stopping && seat.leaving == 0 && !seat.is_parked() {
            if let (Some(work), Some(task)) = (&seat.work, &seat.task) {
                // This fails only for an exiting thread, which leaves the class.
                let _ = TaskWork::add(work, task);
            }
        }
    }

    /// Makes the timer send a thread to wait that continues now to handle a signal.
    pub(crate) fn stop_later(&mut self, rq: &RunQueue, cpu: &Cpu, number: SeatNumber) {
        let to_insns = self.handled_at_insns();
        if let Some(threads) = &mut self.threads {
            if let Some(seat) = threads.get_mut(number) {
                seat.stopping = true;
                seat.let_through_to_insns = to_insns;
            }
            threads.push_stopping(number);
        }
        self.arm(rq, cpu, Origin::Call);
    }

    /// Whether a thread that gets the CPU was let through to handle a signal, and lost the CPU to
    /// another on that way: then it still may handle it, whatever the other has retired.
    pub(super) fn let_through_again(&mut self, number: SeatNumber) -> bool {
        let to_insns = self.handled_at_insns();
        let Some(seat) = self.seat_mut(number) else {
            return false;
        };
        let was = seat.stopping && seat.let_through_to_insns != 0;
        if was {
            seat.let_through_to_insns = to_insns;
        }
        was
    }

    /// The count at which a thread that is let through now has done enough.
    fn handled_at_insns(&self) -> u64 {
        self.insn_clock.total_insns().wrapping_add(HANDLER_INSNS)
    }

    /// Whether the running thread has retired the instructions for which it was let through.
    pub(super) fn has_handled(&self) -> bool {
        self.running_seat()
            .is_some_and(|seat| self.insn_clock.total_insns() >= seat.let_through_to_insns)
    }
}
