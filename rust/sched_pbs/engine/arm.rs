// SPDX-License-Identifier: GPL-2.0

//! The next moment at which the clock or the count matters.

use crate::{
    linux::sched_class::RunQueue,
    pbs_core::Origin,
    percpu::cpu::Cpu,
    state::{
        faults::Fault,
        insn_clock::Tier,
        threads::{Seat, Threads, DELAY_NS, NO_SEAT},
        State,
    },
};

/// Delay of the timer after the predicted moment, where the counter interrupts itself: the timer
/// expires only if the counter fails to interrupt.
const BACKSTOP_NS: u64 = 50_000;

/// Time after which an unfinished decision is continued.
const AGAIN_NS: u64 = 20_000;

/// Time after which a thread that was let through to handle a signal is sent to wait once more.
const ENFORCE_NS: u64 = 50_000;

impl State {
    /// Arms the timer for the next moment that matters, unless it will expire before it anyway.
    ///
    /// A timer that is set for an earlier moment mostly stays, and its expiry is then ignored: a
    /// thread that wakes up and blocks again and again should not have to set it each time. But if
    /// a slot or a task begins, or a tick has just shown how far the thread is, a timer that would
    /// expire in the first half of the time is set anew: that costs less than an interrupt for
    /// nothing.
    pub(super) fn arm(&mut self, rq: &RunQueue, cpu: &Cpu, origin: Origin) {
        let begins = self.timer.take_begins();
        let ticks = origin == Origin::Interrupt;
        let overflow = self.insn_clock.tier() == Tier::PmuOverflow;
        if begins || ticks || overflow || !self.expires_first() {
            self.arm_anew(rq, cpu, origin, begins);
        } else {
            self.timer.forget_prediction();
        }
    }

    /// The part of [`State::arm`] for the cases that need a close check; `begins`: a slot or a task
    /// begins.
    #[inline(never)]
    fn arm_anew(&mut self, rq: &RunQueue, cpu: &Cpu, origin: Origin, begins: bool) {
        let ticks = origin == Origin::Interrupt;
        let overflow = self.insn_clock.tier() == Tier::PmuOverflow;
        let now_ns = self.clock.now_ns();
        let (mut at_ns, by_count) = self.next_moment(now_ns, origin);
        if overflow && by_count {
            if let (Some(left_insns), true) = (self.left_insns(), rq.is_local()) {
                self.insn_clock.interrupt_after(rq, left_insns);
            }
            at_ns = at_ns.saturating_add(BACKSTOP_NS);
        }
        if self.timer.is_renewed(now_ns, at_ns, begins, ticks) {
            if !rq.is_local() {
                cpu.requests.kick();
                return;
            }
            self.timer.arm(at_ns);
            if !self.faults.fails(Fault::Timer) {
                cpu.alarm.arm(at_ns);
            }
        }
        // Whatever the timer was set for: at its expiry the count shows the way to the running
        // thread.
        if self.reading.is_read() && self.timer.is_armed() && self.left_insns().is_some() {
            let count_insns = self.insn_clock.total_insns();
            self.timer.predict(now_ns, count_insns, origin);
        } else {
            self.timer.forget_prediction();
        }
    }

    /// Whether the timer is set, and expires before anything that the node has announced can
    /// matter.
    ///
    /// This is checked often: therefore it is cheap, and says no in case of doubt. Seen from an
    /// earlier time all moments are earlier: therefore it need not read the clock.
    fn expires_first(&self) -> bool {
        let Some(node) = &self.node else {
            return false;
        };
        let before = |at_ns: Option<u64>| at_ns.map_or(true, |at_ns| self.timer.expires_by(at_ns));
        let count_ns = |left_insns| self.clock.recent_ns() + self.timer.least_ns(left_insns);
        self.timer.is_armed()
            && !self.occupancy.runs_another()
            && !self.turn.is_taken()
            && !node.is_unfinished()
            && before(node.until_ns())
            && before(self.left_insns().map(count_ns))
            && before(self.threads.as_ref().and_then(Threads::deferred_until_ns))
            && before(self.delayed_until_ns(self.clock.recent_ns()))
    }

    /// The next moment that matters, as of `now_ns`, and whether it is one at which a count is
    /// reached.
    fn next_moment(&mut self, now_ns: u64, origin: Origin) -> (u64, bool) {
        let node = self.node.as_ref();
        let mut at_ns = node.and_then(|node| node.until_ns()).unwrap_or(u64::MAX);
        if node.is_some_and(|node| node.is_unfinished()) {
            at_ns = at_ns.min(now_ns + AGAIN_NS);
        }
        if let Some(delayed_ns) = self.delayed_until_ns(now_ns) {
            at_ns = at_ns.min(delayed_ns);
        }
        if let Some(deferred_ns) = self.threads.as_ref().and_then(Threads::deferred_until_ns) {
            at_ns = at_ns.min(deferred_ns);
        }
        // Once all of it is spent, only the next window changes anything.
        if self.turn.is_taken() && !self.turn.is_budget_spent() {
            at_ns = at_ns.min(now_ns.saturating_add(self.budget_left_ns()));
        }
        let mut by_count = false;
        if let Some(left_insns) = self.left_insns() {
            let count_ns = self.timer.count_ns(now_ns, left_insns, origin);
            by_count = count_ns < at_ns;
            at_ns = at_ns.min(count_ns);
        } else if self.occupancy.runs_another()
            && self.running_seat().is_some_and(Seat::is_unenforced)
        {
            at_ns = at_ns.min(now_ns + ENFORCE_NS);
        }
        (at_ns.max(self.timer.earliest_ns(now_ns)), by_count)
    }

    /// Time at which threads are checked that sleep on the run queue, if there are any: a tick
    /// checks them only where the class runs and the CPU has ticks.
    fn delayed_until_ns(&self, now_ns: u64) -> Option<u64> {
        let threads = self.threads.as_ref()?;
        threads
            .has_delayed()
            .then(|| now_ns.saturating_add(DELAY_NS))
    }

    /// Instructions that the running thread, or the one that replaces it as it goes to sleep, may
    /// retire until the node must be asked, if there is a limit.
    fn left_insns(&self) -> Option<u64> {
        if !self.occupancy.runs() || self.occupancy.runs_another() && !self.is_handing_over() {
            return None;
        }
        self.node.as_ref()?.left_insns()
    }

    /// Whether the running thread is about to sleep, and the thread that is granted the CPU runs
    /// next.
    pub(super) fn is_handing_over(&self) -> bool {
        self.running_seat().is_some_and(Seat::is_parked)
            && self.occupancy.granted() != NO_SEAT
            && self.occupancy.runs_another()
            && !self.is_unallocated()
    }
}
