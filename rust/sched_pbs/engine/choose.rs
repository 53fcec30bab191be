// SPDX-License-Identifier: GPL-2.0

//! The choice of the thread that should have the CPU.

use crate::{
    linux::sched_class::{self, RunQueue},
    state::{
        threads::{SeatNumber, Threads, NO_SEAT},
        State,
    },
};
use kernel::task::Task;

/// Number of stopping threads that are searched for one that runs even without a budget.
const LOOKED_AT: usize = 8;

impl State {
    /// The seat whose thread should have the CPU.
    pub(crate) fn choose(&self, rq: &RunQueue) -> SeatNumber {
        let Some(threads) = &self.threads else {
            return NO_SEAT;
        };
        if self.gives_way(rq) {
            return NO_SEAT;
        }
        // A thread that must release what it holds in the kernel goes first, as long as it may.
        let stopping = threads.first_stopping();
        if stopping != NO_SEAT {
            let first = self.first_out_of_turn(threads);
            if first != NO_SEAT {
                return first;
            }
        }
        if threads
            .get(self.occupancy.granted())
            .is_some_and(|seat| seat.queued)
        {
            return self.occupancy.granted();
        }
        match stopping {
            NO_SEAT => threads.first_deferred(),
            seat => seat,
        }
    }

    /// The thread that should have the CPU.
    pub(crate) fn pick(&self, rq: &RunQueue) -> Option<&Task> {
        let seat = self.threads.as_ref()?.get(self.choose(rq))?;
        seat.task.as_deref()
    }

    /// The thread that goes before the one that is granted the CPU. A separate function, because
    /// mostly no thread is stopping.
    #[inline(never)]
    fn first_out_of_turn(&self, threads: &Threads) -> SeatNumber {
        if !self.turn.is_budget_spent() {
            return threads.first_stopping();
        }
        // Nothing is gained from keeping those waiting.
        let goes_on = |number: &SeatNumber| {
            let seat = threads.get(*number);
            let task = seat.and_then(|seat| seat.task.as_ref());
            task.is_some_and(|task| sched_class::must_not_wait(task))
        };
        let mut stopping = threads.stopping().take(LOOKED_AT);
        stopping.find(goes_on).unwrap_or(NO_SEAT)
    }

    /// Makes the CPU choose anew if another thread than the current one should run.
    pub(crate) fn preempt(&mut self, rq: &RunQueue) {
        if self.choose(rq) != self.occupancy.running() {
            rq.reschedule();
        }
    }
}
