// SPDX-License-Identifier: GPL-2.0

//! Threads that may not run any more, on their way to where they wait.

use super::State;
use crate::{
    engine::class,
    linux::sched_class::{self, RunQueue},
    pbs_core::Origin,
    percpu::{
        cpu::Cpu,
        threads::{SeatNumber, Threads, NO_SEAT},
    },
};
use kernel::task_work::TaskWork;

/// For how long a thread that wakes up in the kernel out of turn may be kept from going on to where
/// it waits. It may hold what others need, so it can't be for long; but often it is granted the CPU
/// sooner than that, and has not taken it from another for nothing.
const DEFER_NS: u64 = 1_000_000;

/// How many such threads are let in at a time.
const DEFERRED_AT_ONCE: usize = 8;

/// What a thread that is let through to handle a signal may retire at least before it is sent to
/// wait once more: a short handler. The time to its begin is the kernel's, and no measure: with many
/// checks in the kernel it is longer than the time after which it is looked at.
const HANDLER_INSNS: u64 = 2_000;

/// For how long a thread that sleeps may stand on the run queue: there it is woken up for less, but
/// who waits for it to sleep, as RCU tasks does, looks at whether it does.
pub(super) const DELAY_NS: u64 = 100_000_000;

/// How often they are looked for at most.
const SWEEP_NS: u64 = 4_000_000;

impl State {
    /// Sends a thread to wait at the edge of user space. If it is blocked in the kernel it is sent
    /// there when it wakes up.
    pub(crate) fn stop(&mut self, number: SeatNumber) {
        if number == NO_SEAT {
            return;
        }
        let now_ns = self.now_ns();
        let Some(threads) = self.threads_stopping(number, now_ns) else {
            return;
        };
        threads.push_stopping(number);
        if number == self.running {
            self.send_to_wait(number);
        }
    }

    /// Sends a thread that has woken up in the kernel to wait there too, but not at once: who runs
    /// goes on.
    pub(crate) fn stop_soon(&mut self, rq: &RunQueue, cpu: &Cpu, number: SeatNumber) {
        let now_ns = self.now_ns();
        let Some(threads) = self.threads_stopping(number, now_ns) else {
            return;
        };
        threads.push_deferred(number);
        if !self.expires_before(now_ns + DEFER_NS) {
            self.arm(rq, cpu, Origin::Call);
        }
        if self.running == NO_SEAT {
            self.preempt(rq);
        }
    }

    /// Notes that a thread has to wait, if it can run; the queue is for the caller to choose.
    pub(super) fn threads_stopping(
        &mut self,
        number: SeatNumber,
        now_ns: u64,
    ) -> Option<&mut Threads> {
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

    /// When the next of the threads that woke up out of turn has to be let in.
    pub(super) fn deferred_until_ns(&self) -> Option<u64> {
        let threads = self.threads.as_ref()?;
        let seat = threads.get(threads.first_deferred())?;
        Some(seat.stopping_since_ns.saturating_add(DEFER_NS))
    }

    /// Lets those in that have waited long enough; a few, the others follow.
    pub(super) fn let_deferred_in(&mut self, now_ns: u64) {
        for _ in 0..DEFERRED_AT_ONCE {
            if !self
                .deferred_until_ns()
                .is_some_and(|at_ns| at_ns <= now_ns)
            {
                return;
            }
            if let Some(threads) = &mut self.threads {
                threads.push_stopping(threads.first_deferred());
            }
        }
    }

    /// Takes threads off the run queue that have slept there for long; a few, the others follow.
    pub(super) fn block_delayed(&mut self, rq: &RunQueue) {
        let clock_ns = rq.clock_ns();
        let Some(threads) = self.threads.as_mut().filter(|t| t.has_delayed()) else {
            return;
        };
        if clock_ns.saturating_sub(self.swept_ns) < SWEEP_NS {
            return;
        }
        self.swept_ns = clock_ns;
        let since_ns = clock_ns.saturating_sub(DELAY_NS);
        threads.sweep_delayed(since_ns, |task| {
            sched_class::block_delayed(rq, class::table(), task);
        });
    }

    /// The thread that runs is not to come to user space, but to wait at its edge.
    pub(super) fn send_to_wait(&mut self, number: SeatNumber) {
        let Some(seat) = self.seat_mut(number) else {
            return;
        };
        if seat.stopping && seat.leaving == 0 && !seat.is_parked() {
            if let (Some(work), Some(task)) = (&seat.work, &seat.task) {
                // It fails for a thread that is exiting only, and that one leaves the class.
                let _ = TaskWork::add(work, task);
            }
        }
    }

    /// Has the timer send a thread to wait that goes on now to handle a signal.
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

    /// Whether the running thread should wait, but nothing will send it there: it was let through
    /// to handle a signal.
    pub(super) fn is_unenforced(&self) -> bool {
        self.threads
            .as_ref()
            .and_then(|threads| threads.get(self.running))
            .is_some_and(|seat| {
                seat.stopping
                    && seat.leaving == 0
                    && !seat.is_parked()
                    && !seat.work.as_ref().is_some_and(|work| work.is_pending())
            })
    }

    /// Whether a thread that gets the CPU was let through to handle a signal, and lost the CPU to
    /// another on that way: then it still may, whatever the other has retired.
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

    /// Whether the running thread has retired as much as it was let through for.
    pub(super) fn has_handled(&self) -> bool {
        let seat = self.threads.as_ref().and_then(|t| t.get(self.running));
        seat.is_some_and(|seat| self.insn_clock.total_insns() >= seat.let_through_to_insns)
    }
}
