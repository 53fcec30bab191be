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

/// How much later than predicted the timer is set where the counter interrupts itself: it comes
/// only if the counter does not.
const BACKSTOP_NS: u64 = 50_000;

/// How soon a decision that was left unfinished is gone on with.
const AGAIN_NS: u64 = 20_000;

/// How soon a thread that was let through to handle a signal is told to wait once more.
const ENFORCE_NS: u64 = 50_000;

impl State {
    /// Arms the timer for the next moment that matters, unless it will expire before it anyway.
    ///
    /// A timer that is set for an earlier moment mostly stays, and is ignored then: who is woken and
    /// blocks again and again should not have to set it each time. But where a slot or a task
    /// begins, or a tick has just shown how far the thread is, one that would expire in the first
    /// half of the time is set anew: that costs less than an interrupt for nothing.
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

    /// The same where that has to be looked at closely; `begins`: a slot or a task does.
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
        // Whatever it was set for: when it expires, the count tells of the way from here to who runs.
        if self.reading.is_read() && self.timer.is_armed() && self.left_insns().is_some() {
            let count_insns = self.insn_clock.total_insns();
            self.timer.predict(now_ns, count_insns, origin);
        } else {
            self.timer.forget_prediction();
        }
    }

    /// Whether the timer is set, and expires before anything can matter that the node has said.
    ///
    /// That is asked often, so it is cheap and says no in case of doubt: as of an earlier time all
    /// moments are earlier, so it need not be read what time it is.
    fn expires_first(&self) -> bool {
        let Some(node) = &self.node else {
            return false;
        };
        let before = |at_ns: Option<u64>| at_ns.map_or(true, |at_ns| self.timer.expires_by(at_ns));
        let count_ns = |left_insns| self.clock.recent_ns() + self.timer.least_ns(left_insns);
        self.timer.is_armed()
            && !self.occupancy.runs_another()
            && !node.is_unfinished()
            && before(node.until_ns())
            && before(self.left_insns().map(count_ns))
            && before(self.threads.as_ref().and_then(Threads::deferred_until_ns))
    }

    /// The next moment that matters, as of `now_ns`, and whether it is one at which a count is
    /// reached.
    fn next_moment(&mut self, now_ns: u64, origin: Origin) -> (u64, bool) {
        let node = self.node.as_ref();
        let mut at_ns = node.and_then(|node| node.until_ns()).unwrap_or(u64::MAX);
        if node.is_some_and(|node| node.is_unfinished()) {
            at_ns = at_ns.min(now_ns + AGAIN_NS);
        }
        if let Some(deferred_ns) = self.threads.as_ref().and_then(Threads::deferred_until_ns) {
            at_ns = at_ns.min(deferred_ns);
        }
        if self.turn.is_taken() {
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
        } else if !self.occupancy.runs() && self.threads.as_ref().is_some_and(Threads::has_delayed)
        {
            // No tick of the class looks at them.
            at_ns = at_ns.min(now_ns + DELAY_NS);
        }
        (at_ns.max(self.timer.earliest_ns(now_ns)), by_count)
    }

    /// What the thread that runs, or that takes its place as it goes to sleep, may retire until the
    /// node must be asked, if there is a limit.
    fn left_insns(&self) -> Option<u64> {
        if !self.occupancy.runs() || self.occupancy.runs_another() && !self.is_handing_over() {
            return None;
        }
        self.node.as_ref()?.left_insns()
    }

    /// Whether the running thread is about to sleep, and who is granted the CPU runs next.
    pub(super) fn is_handing_over(&self) -> bool {
        self.running_seat().is_some_and(Seat::is_parked)
            && self.occupancy.granted() != NO_SEAT
            && self.occupancy.runs_another()
            && !self.is_unallocated()
    }
}
