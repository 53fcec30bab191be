// SPDX-License-Identifier: GPL-2.0

//! The time that threads take out of turn, while the process that is granted the CPU could use it:
//! threads of the class on their way through the kernel to where they wait, or to handle a signal,
//! and real-time threads of the kernel.
//!
//! The policy decides about that time (`pbs_core`, `turns.rs`); here it is measured.

use crate::{
    linux::sched_class::RunQueue,
    pbs_core::Origin,
    percpu::cpu::Cpu,
    state::{
        threads::{Seat, Threads, NO_SEAT},
        State,
    },
};

/// Time that a thread may take on one way without owing it: the change of slots itself takes as
/// much.
const FREE_NS: u64 = 100_000;

impl State {
    /// Accounts for the time that the running thread has taken out of turn so far: another thread
    /// may have the CPU from now on, or be granted it.
    #[inline]
    pub(super) fn end_turn(&mut self) {
        if self.turn.is_taken() {
            self.account_turn();
        }
    }

    fn account_turn(&mut self) {
        let now_ns = self.clock.now_ns();
        let took_ns = self.turn.end(now_ns);
        let (Some(threads), Some(node)) = (&mut self.threads, &mut self.node) else {
            return;
        };
        node.out_of_turn(took_ns, now_ns);
        let Some(seat) = threads.get_mut(self.occupancy.running()) else {
            return;
        };
        let before_ns = seat.way_ns;
        seat.way_ns = before_ns.saturating_add(took_ns);
        let owed_ns = seat.way_ns.max(FREE_NS) - before_ns.max(FREE_NS);
        let row = seat.row;
        if owed_ns == 0 {
            return;
        }
        if let Some(process) = threads.rows().process(row) {
            node.owe(process, owed_ns);
        }
    }

    /// Begins to measure the time that the running thread takes out of turn, if it does, now that
    /// the occupant and the grant of the CPU are settled.
    ///
    /// A real-time thread of the kernel takes its time out of turn, too.
    #[inline]
    pub(crate) fn begin_turn(&mut self, rq: &RunQueue) {
        let is_taken = if self.occupancy.runs() {
            self.occupancy.runs_another() && self.is_out_of_turn()
        } else {
            rq.has_kernel_thread() && self.is_turn_of_plan()
        };
        if is_taken {
            self.turn.begin(self.clock.now_ns());
        }
    }

    fn is_out_of_turn(&self) -> bool {
        let goes_on = |seat: &Seat| seat.queued && !seat.is_parked();
        self.running_seat().is_some_and(goes_on) && self.is_turn_of_plan()
    }

    /// Whether the thread that is granted the CPU could have it.
    fn is_turn_of_plan(&self) -> bool {
        let could_run = |seat: &Seat| seat.queued || seat.is_parked();
        let threads = self.threads.as_ref();
        let granted = threads.and_then(|threads| threads.get(self.occupancy.granted()));
        !self.is_unallocated() && granted.is_some_and(could_run)
    }

    /// Looks, as the CPU chooses, whether a real-time thread of the kernel may go first, and begins
    /// to measure its time if no thread of the class has to leave the CPU for it.
    #[inline]
    pub(super) fn meet_kernel_thread(&mut self, rq: &RunQueue, cpu: &Cpu) {
        if rq.has_kernel_thread() {
            self.admit_kernel_thread(rq, cpu);
        }
    }

    #[inline(never)]
    fn admit_kernel_thread(&mut self, rq: &RunQueue, cpu: &Cpu) {
        self.look_at_budget(rq);
        if self.occupancy.runs() || self.turn.is_taken() || self.turn.is_budget_spent() {
            return;
        }
        self.begin_turn(rq);
        if self.turn.is_taken() {
            self.arm(rq, cpu, Origin::Call);
        }
    }

    /// Checks whether any of the present window's time may still be taken out of turn.
    #[inline]
    pub(super) fn look_at_budget(&mut self, rq: &RunQueue) {
        let stopping = self.threads.as_ref().map(Threads::first_stopping);
        if stopping.is_some_and(|number| number != NO_SEAT) || rq.has_kernel_thread() {
            let is_spent = self.budget_left_ns() == 0;
            if self.turn.note_budget(is_spent) {
                if let Some(threads) = &mut self.threads {
                    // Another thread has its turn in the next window.
                    threads.rotate_stopping();
                }
            }
        }
    }

    /// Time of the present window that may still be taken out of turn.
    pub(super) fn budget_left_ns(&mut self) -> u64 {
        let now_ns = self.clock.now_ns();
        let node = self.node.as_ref();
        node.map_or(u64::MAX, |node| node.budget_left_ns(now_ns))
    }
}
