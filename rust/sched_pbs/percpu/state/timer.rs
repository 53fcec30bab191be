// SPDX-License-Identifier: GPL-2.0

//! The next moment at which the clock or the count matters, and what is done then.

use super::{stopping::DELAY_NS, State};
use crate::{
    linux::sched_class::{self, RunQueue},
    pbs_core::Origin,
    percpu::{
        cpu::Cpu,
        insn_clock::Tier,
        threads::{Threads, NO_SEAT},
    },
    protect::fault::Fault,
};

/// How much later than predicted the timer is set where the counter interrupts itself: it comes
/// only if the counter does not.
const BACKSTOP_NS: u64 = 50_000;

/// The time of a tick, about.
const TICK_NS: u64 = 4_000_000;

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
        let begins = core::mem::take(&mut self.slot_begins) | core::mem::take(&mut self.task_ended);
        let ticks = origin == Origin::Interrupt;
        let overflow = self.insn_clock.tier() == Tier::PmuOverflow;
        if begins || ticks || overflow || !self.expires_first() {
            self.arm_anew(rq, cpu, origin, begins);
        } else {
            self.predictor.forget();
        }
    }

    /// The same where that has to be looked at closely; `begins`: a slot or a task does.
    #[inline(never)]
    fn arm_anew(&mut self, rq: &RunQueue, cpu: &Cpu, origin: Origin, begins: bool) {
        let ticks = origin == Origin::Interrupt;
        let overflow = self.insn_clock.tier() == Tier::PmuOverflow;
        let now_ns = self.now_ns();
        let (mut at_ns, by_count) = self.next_moment(now_ns, origin);
        if overflow && by_count {
            if let (Some(left_insns), true) = (self.left_insns(), rq.is_local()) {
                self.insn_clock.interrupt_after(rq, left_insns);
            }
            at_ns = at_ns.saturating_add(BACKSTOP_NS);
        }
        if self.is_renewed(now_ns, at_ns, begins, ticks) {
            if !rq.is_local() {
                cpu.kick();
                return;
            }
            self.timer_ns = at_ns;
            if !self.fails(Fault::Timer) {
                cpu.arm(at_ns);
            }
        }
        // Whatever it was set for: when it expires, the count tells of the way from here to who runs.
        if self.charged && self.timer_ns != 0 && self.left_insns().is_some() {
            let count_insns = self.insn_clock.total_insns();
            self.predictor
                .set(now_ns, self.timer_ns, count_insns, origin);
        } else {
            self.predictor.forget();
        }
    }

    /// Whether the timer is set anew, for `at_ns`.
    fn is_renewed(&self, now_ns: u64, at_ns: u64, begins: bool, ticks: bool) -> bool {
        if at_ns == u64::MAX || self.timer_ns == at_ns {
            return false;
        }
        if self.timer_ns == 0 || self.timer_ns > at_ns {
            return true;
        }
        let first_ns = self.timer_ns.saturating_sub(now_ns);
        if begins {
            first_ns < at_ns.saturating_sub(now_ns) / 2
        } else {
            // The ticks before the last one need not.
            ticks && first_ns < TICK_NS
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
        let before = |at_ns: Option<u64>| at_ns.map_or(true, |at_ns| self.timer_ns <= at_ns);
        let count_ns = |left_insns| self.recent_ns + self.predictor.least_ns(left_insns);
        self.timer_ns != 0
            && [NO_SEAT, self.granted].contains(&self.running)
            && !node.is_unfinished()
            && before(node.until_ns())
            && before(self.left_insns().map(count_ns))
            && before(self.deferred_until_ns())
    }

    /// Whether the timer will expire before that time.
    pub(super) fn expires_before(&self, at_ns: u64) -> bool {
        self.timer_ns != 0 && self.timer_ns <= at_ns
    }

    /// The next moment that matters, as of `now_ns`, and whether it is one at which a count is
    /// reached.
    pub(super) fn next_moment(&mut self, now_ns: u64, origin: Origin) -> (u64, bool) {
        let node = self.node.as_ref();
        let mut at_ns = node.and_then(|node| node.until_ns()).unwrap_or(u64::MAX);
        if node.is_some_and(|node| node.is_unfinished()) {
            at_ns = at_ns.min(now_ns + AGAIN_NS);
        }
        if let Some(deferred_ns) = self.deferred_until_ns() {
            at_ns = at_ns.min(deferred_ns);
        }
        if self.turn_since_ns != 0 {
            at_ns = at_ns.min(now_ns.saturating_add(self.budget_left_ns()));
        }
        let mut by_count = false;
        if let Some(left_insns) = self.left_insns() {
            let count_ns = self.predictor.expiry_ns(now_ns, left_insns, origin);
            by_count = count_ns < at_ns;
            at_ns = at_ns.min(count_ns);
        } else if self.running != NO_SEAT && self.running != self.granted && self.is_unenforced() {
            at_ns = at_ns.min(now_ns + ENFORCE_NS);
        } else if self.running == NO_SEAT && self.threads.as_ref().is_some_and(Threads::has_delayed)
        {
            // No tick of the class looks at them.
            at_ns = at_ns.min(now_ns + DELAY_NS);
        }
        (at_ns.max(self.predictor.earliest_ns(now_ns)), by_count)
    }

    /// What the thread that runs, or that takes its place as it goes to sleep, may retire until the
    /// node must be asked, if there is a limit.
    pub(super) fn left_insns(&self) -> Option<u64> {
        if self.running == NO_SEAT || self.running != self.granted && !self.is_handing_over() {
            return None;
        }
        self.node.as_ref()?.left_insns()
    }

    /// The timer has expired, on its CPU.
    pub(crate) fn expire(&mut self, rq: &RunQueue, cpu: &'static Cpu) {
        let now_ns = self.now_ns();
        self.timer_ns = 0;
        self.charge_and_enforce(rq, cpu);
        let in_user = sched_class::interrupted_user();
        let count_insns = self.insn_clock.total_insns();
        let by_clock = self.insn_clock.tier() == Tier::Clock;
        self.predictor
            .expired(now_ns, count_insns, in_user, by_clock);
        self.let_deferred_in(now_ns);
        self.block_delayed(rq);
        self.settle_at(rq, cpu, Origin::Expiry);
        if self.running == NO_SEAT && rq.is_local() && self.is_unused() {
            // The last idle slot is over. The timer of a CPU that has gone expires elsewhere.
            cpu.request_ejection();
        }
    }

    /// The counter has interrupted, on its CPU.
    pub(crate) fn overflow(&mut self, rq: &RunQueue, cpu: &'static Cpu) {
        self.insn_clock.interrupted();
        self.charge_and_enforce(rq, cpu);
        self.settle_at(rq, cpu, Origin::Interrupt);
    }

    /// The tick. For a CPU that does without (`nohz_full=`) another one calls once a second; as it
    /// can't read the counter, nor the memory in use, it has the tick done there.
    pub(crate) fn tick(&mut self, rq: &RunQueue, cpu: &'static Cpu) {
        if !rq.is_local() {
            cpu.request_tick();
            return;
        }
        self.forget_anchor();
        if self.has_cpu {
            rq.update_real_time_load(true);
        }
        self.charge_and_enforce(rq, cpu);
        self.insn_clock.look_at_times();
        self.sample_memory(rq, cpu);
        self.block_delayed(rq);
        let origin = if sched_class::interrupted_user() {
            Origin::Interrupt
        } else {
            Origin::Call
        };
        self.settle_at(rq, cpu, origin);
    }
}
