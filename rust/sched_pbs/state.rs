// SPDX-License-Identifier: GPL-2.0

//! The state of one CPU, and how a decision of the policy becomes scheduling.
//!
//! [`State`] joins the [`Node`], which decides which *process* may run, with the [`Threads`] that
//! are attached here. Whatever happens (a thread blocks, wakes, ends a task, the timer expires) is
//! first told to the node and then settled: [`State::settle`] asks the node, sends who may not run
//! any more to wait, wakes who may run now, has the CPU choose anew if another thread should run,
//! and arms the timer for the next moment at which the clock or the count will matter.

use super::{
    clock::{InsnClock, Tier, TierCause},
    cpu::Cpu,
    events::Emitter,
    pbs_core::{Decision, Event, EventKind, Grant, Node, Origin, Predictor, Presence, Rate, Sink},
    rows::{Row, NO_ROW},
    storage::KernelMemory,
    threads::{Parked, Seat, SeatNumber, Threads, NO_SEAT},
};
use kernel::{
    alloc::KBox,
    clock,
    mm::MemoryUse,
    perf_event::KernelCounter,
    sched_class::{self, RunQueue},
    task::Task,
    task_work::TaskWork,
    types::ARef,
};

/// Leaves the class without an event: its end was told already.
pub(crate) const LEAVE_SILENTLY: u16 = u16::MAX;

/// How much later than predicted the timer is set where the counter interrupts itself: it comes
/// only if the counter does not.
const BACKSTOP_NS: u64 = 50_000;

/// How soon a decision that was left unfinished is gone on with.
const AGAIN_NS: u64 = 20_000;

/// How soon a thread that was let through to handle a signal is told to wait once more.
const ENFORCE_NS: u64 = 50_000;

/// For how long a thread that wakes up in the kernel out of turn may be kept from going on to where
/// it waits. It may hold what others need, so it can't be for long; but often it is granted the CPU
/// sooner than that, and has not taken it from another for nothing.
const DEFER_NS: u64 = 1_000_000;

/// How many such threads are let in at a time.
const DEFERRED_AT_ONCE: usize = 8;

/// A thread that takes longer than this from the request to wait until it waits is reported.
const STOP_LONG_NS: u64 = 10_000_000;

/// What the lock of the CPU's run queue protects.
pub(crate) struct State {
    /// The plan and its progress; `None`: no plan.
    pub(crate) node: Option<KBox<Node<KernelMemory>>>,
    /// The attached threads; `None` until the first plan comes.
    pub(crate) threads: Option<Threads>,
    /// The counter of this CPU.
    pub(crate) insn_clock: InsnClock,
    /// The longest that a thread took to its waiting place.
    pub(crate) longest_stop_ns: u64,
    /// The longest that the run queue was locked at once for a change of plans.
    pub(crate) longest_swap_ns: u64,
    /// The last decision.
    decision: Decision,
    /// Instructions charged since that decision.
    charged_insns: u64,
    /// The seat whose thread may run by the last decision.
    granted: SeatNumber,
    /// The seat whose thread the CPU executes.
    running: SeatNumber,
    /// Nothing but this class has run since the counter was last read.
    count_valid: bool,
    /// Charged and sampled since the running thread got the CPU, in the same switch.
    charged_in_switch: bool,
    /// Who has to be woken up as soon as the lock is dropped.
    wake: Option<ARef<Task>>,
    /// The time in this section under the lock, 0: nobody has asked for it.
    now_ns: u64,
    /// The time when somebody asked for it last.
    recent_ns: u64,
    /// The granted process has its own slot, and has not run in it yet.
    slot_begins: bool,
    /// The running thread has ended a task, and the timer was not set yet for the one after it.
    task_ended: bool,
    /// When the timer will expire, 0: it isn't armed.
    timer_ns: u64,
    /// When the count will be reached that matters.
    predictor: Predictor,
}

impl Default for State {
    fn default() -> Self {
        Self {
            node: None,
            threads: None,
            insn_clock: InsnClock::default(),
            longest_stop_ns: 0,
            longest_swap_ns: 0,
            decision: NO_DECISION,
            charged_insns: 0,
            granted: NO_SEAT,
            running: NO_SEAT,
            count_valid: false,
            charged_in_switch: false,
            wake: None,
            now_ns: 0,
            recent_ns: 0,
            slot_begins: false,
            task_ended: false,
            timer_ns: 0,
            predictor: Predictor::new(Rate::new(0)),
        }
    }
}

const NO_DECISION: Decision = Decision {
    grant: None,
    reason: Grant::None,
    unallocated: false,
    until_insns: None,
    until_ns: None,
    again: false,
};

impl State {
    /// A section under the lock of the run queue begins.
    pub(crate) fn enter_section(&mut self) {
        self.now_ns = 0;
    }

    /// The time of the monotonic clock, the same in all of a section under the lock: reading the
    /// clock costs as much as a small decision.
    pub(crate) fn now_ns(&mut self) -> u64 {
        if self.now_ns == 0 {
            self.now_ns = clock::monotonic_ns();
            self.recent_ns = self.now_ns;
        }
        self.now_ns
    }

    /// The seat of that number, if it is taken.
    pub(crate) fn seat_mut(&mut self, number: SeatNumber) -> Option<&mut Seat> {
        self.threads.as_mut()?.get_mut(number)
    }

    /// Whether it is unallocated time, when lower classes have the CPU.
    pub(crate) fn is_unallocated(&self) -> bool {
        self.decision.unallocated
    }

    /// Whether the thread of that seat may run user code.
    pub(crate) fn is_granted(&self, seat: SeatNumber) -> bool {
        seat != NO_SEAT && seat == self.granted
    }

    /// The seat whose thread should have the CPU.
    fn choose(&self) -> SeatNumber {
        let Some(threads) = &self.threads else {
            return NO_SEAT;
        };
        if self.decision.unallocated {
            return NO_SEAT;
        }
        // Who has to let go of what it holds in the kernel comes first.
        match threads.first_stopping() {
            NO_SEAT if threads.get(self.granted).is_some_and(|seat| seat.queued) => self.granted,
            NO_SEAT => threads.first_deferred(),
            seat => seat,
        }
    }

    /// The thread that should have the CPU.
    pub(crate) fn pick(&self) -> Option<&Task> {
        let seat = self.threads.as_ref()?.get(self.choose())?;
        seat.task.as_deref()
    }

    /// Charges what the running thread has retired, if the counter can be read: the run queue is
    /// this CPU's. Returns it.
    pub(crate) fn charge(&mut self, rq: &RunQueue) -> u64 {
        if self.running == NO_SEAT || !rq.is_local() {
            return 0;
        }
        let insns = self.insn_clock.advance(rq);
        if !core::mem::replace(&mut self.count_valid, true) {
            // Others may have run since the last reading: the count begins here.
            return 0;
        }
        if insns != 0 {
            self.predictor.progress();
        }
        let (Some(threads), Some(node)) = (&self.threads, &mut self.node) else {
            return insns;
        };
        if let Some(process) = threads.process_if_active(self.running) {
            node.charge(process, insns);
            self.charged_insns += insns;
        }
        insns
    }

    /// Samples the memory of the running thread. The run queue is this CPU's, and the thread is
    /// the one that executes the call or was interrupted by it.
    pub(crate) fn sample_memory(&mut self, rq: &RunQueue) {
        if self.running == NO_SEAT || !rq.is_local() {
            return;
        }
        let (Some(threads), Some(node)) = (&self.threads, &mut self.node) else {
            return;
        };
        let Some(process) = threads.process_if_active(self.running) else {
            return;
        };
        if let Some(used) = MemoryUse::of_current() {
            node.memory(process, used.total_vm_bytes, used.rss_bytes);
        }
    }

    /// A thread of the class gets the CPU.
    pub(crate) fn begin_running(&mut self, rq: &RunQueue, cpu: &Cpu, seat: SeatNumber) {
        self.running = seat;
        self.charged_in_switch = false;
        self.task_ended = false;
        self.predictor.forget();
        if let Some(seat) = self.seat_mut(seat) {
            if seat.parked == Parked::Asleep {
                seat.parked = Parked::No;
            }
        }
        if seat != self.granted {
            self.send_to_wait(seat);
        }
        if rq.is_local() {
            if !core::mem::replace(&mut self.count_valid, true) {
                self.insn_clock.advance(rq);
            }
            self.arm(rq, cpu, Origin::Elsewhere);
        } else {
            // The counter can't be read from here, nor the timer be armed.
            cpu.kick();
        }
    }

    /// The running thread is about to leave the CPU, or to be taken off it for a change: charges
    /// it, once a switch.
    ///
    /// Who goes to sleep to wait was charged when that was settled, and has been in the kernel since, which
    /// no counter counts.
    pub(crate) fn charge_switch(&mut self, rq: &RunQueue) {
        if self.insn_clock.tier() != Tier::Clock {
            let seat = self.threads.as_ref().and_then(|t| t.get(self.running));
            self.charged_in_switch |= seat.is_some_and(Seat::is_parked);
        }
        if !self.charged_in_switch {
            self.charge(rq);
            self.sample_memory(rq);
            self.charged_in_switch = true;
        }
    }

    /// The running thread has left the CPU; whether a thread of the class follows it.
    pub(crate) fn end_running(&mut self, rq: &RunQueue, cpu: &Cpu, class_follows: bool) {
        self.charge_switch(rq);
        self.running = NO_SEAT;
        if rq.is_local() {
            self.count_valid &= class_follows;
        }
        if !class_follows {
            self.arm(rq, cpu, Origin::Elsewhere);
        }
    }

    /// A thread has left the class, and goes on in another one if it was running.
    pub(crate) fn lose_count(&mut self) {
        self.count_valid = false;
    }

    /// A thread of a boosted process runs in another class, and need not wait meanwhile.
    pub(crate) fn wake_boosted(&mut self, cpu: &Cpu, number: SeatNumber) {
        if let Some(threads) = &mut self.threads {
            threads.push_boosted(number);
        }
        cpu.kick();
    }

    /// Tells the node whether the process in `row` can run, by the state of its active thread.
    /// Returns whether that may lead to another decision.
    pub(crate) fn refresh_presence(&mut self, row: Row) -> bool {
        let (Some(threads), Some(node)) = (&self.threads, &mut self.node) else {
            return false;
        };
        let Some(process) = threads.rows().process(row) else {
            return false;
        };
        let presence = match threads.get(threads.active(row)) {
            None => Presence::Absent,
            Some(seat) if seat.queued || seat.is_parked() || seat.boosted_at_ns.is_some() => {
                Presence::Ready
            }
            Some(_) => Presence::Blocked,
        };
        node.set_presence(process, presence)
    }

    /// Asks the node who may run and makes it so. Who must be woken up is left in `wake`; the
    /// callbacks of the class end with [`State::hand_over`] for it.
    pub(crate) fn settle(&mut self, rq: &mut RunQueue, cpu: &'static Cpu) {
        self.settle_at(rq, cpu, Origin::Elsewhere);
    }

    fn settle_at(&mut self, rq: &mut RunQueue, cpu: &'static Cpu, origin: Origin) {
        let now_ns = self.now_ns();
        let decision = self
            .with_node(cpu, 0, |node, emitter| node.decide(now_ns, emitter))
            .unwrap_or(NO_DECISION);
        let told = |decision: &Decision| (decision.grant, decision.until_ns);
        if told(&decision) != told(&self.decision) {
            self.predictor.progress();
        }
        self.decision = decision;
        self.charged_insns = 0;

        let granted = match (self.decision.grant, &self.threads) {
            (Some(process), Some(threads)) => threads.active_of(process),
            _ => NO_SEAT,
        };
        let before = core::mem::replace(&mut self.granted, granted);
        if before != granted {
            self.stop(before);
            self.slot_begins = self.decision.reason == Grant::Slot;
        }
        if let Some(seat) = self.threads.as_mut().and_then(|t| t.get_mut(granted)) {
            seat.began = true;
            if seat.is_parked() {
                // Who stood here before is not granted any more; it is woken when it is again.
                self.wake = seat.task.clone();
            }
            if before != granted && seat.leaving == 0 {
                seat.stopping = false;
                if let Some(threads) = &mut self.threads {
                    threads.remove_waiting(granted);
                }
            }
        }
        self.preempt(rq);
        // A switch sets the timer itself.
        if self.running == NO_SEAT || self.running == self.choose() {
            self.arm(rq, cpu, origin);
        }
    }

    /// For callbacks of the class, under the core's lock: has the CPU do the wake-up.
    pub(crate) fn hand_over(&mut self, cpu: &Cpu) {
        if self.wake.is_some() {
            cpu.kick();
        }
    }

    /// Who has to be woken up, for who can do that as soon as the lock is dropped.
    pub(crate) fn take_wake(&mut self) -> Option<ARef<Task>> {
        self.wake.take()
    }

    /// One of those who have to be woken up because they are boosted. The others follow.
    pub(crate) fn take_boosted(&mut self, cpu: &Cpu) -> Option<ARef<Task>> {
        let threads = self.threads.as_mut()?;
        let number = threads.pop_boosted()?;
        if threads.has_boosted() {
            cpu.kick();
        }
        threads.get(number)?.task.clone()
    }

    /// Has the CPU choose anew if another thread than the current one should run.
    pub(crate) fn preempt(&mut self, rq: &mut RunQueue) {
        let wrong = match self.pick() {
            Some(task) => !rq.is_current(task),
            None => self.running != NO_SEAT,
        };
        if wrong {
            rq.reschedule();
        }
    }

    /// Sends a thread to wait at the edge of user space. If it is blocked in the kernel it is sent
    /// there when it wakes up.
    pub(crate) fn stop(&mut self, number: SeatNumber) {
        let now_ns = self.now_ns();
        let Some(threads) = self.threads_stopping(number, now_ns) else {
            return;
        };
        threads.push_stopping(number);
        if number == self.running {
            self.send_to_wait(number);
        }
    }

    /// Sends a thread that has woken up in the kernel to wait there too, but not at once.
    pub(crate) fn stop_soon(&mut self, rq: &RunQueue, cpu: &Cpu, number: SeatNumber) {
        let now_ns = self.now_ns();
        let Some(threads) = self.threads_stopping(number, now_ns) else {
            return;
        };
        threads.push_deferred(number);
        self.arm(rq, cpu, Origin::Elsewhere);
    }

    /// Notes that a thread has to wait, if it can run; the queue is for the caller to choose.
    fn threads_stopping(&mut self, number: SeatNumber, now_ns: u64) -> Option<&mut Threads> {
        let threads = self.threads.as_mut()?;
        let seat = threads.get_mut(number)?;
        if !seat.queued || seat.boosted_at_ns.is_some() {
            return None;
        }
        if !seat.stopping {
            seat.stopping = true;
            seat.stopping_since_ns = now_ns;
        }
        Some(threads)
    }

    /// When the next of the threads that woke up out of turn has to be let in.
    fn deferred_until_ns(&self) -> Option<u64> {
        let threads = self.threads.as_ref()?;
        let seat = threads.get(threads.first_deferred())?;
        Some(seat.stopping_since_ns.saturating_add(DEFER_NS))
    }

    /// Lets those in that have waited long enough; a few, the others follow.
    fn let_deferred_in(&mut self, now_ns: u64) {
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

    /// The thread that runs is not to come to user space, but to wait at its edge.
    fn send_to_wait(&mut self, number: SeatNumber) {
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
        if let Some(threads) = &mut self.threads {
            if let Some(seat) = threads.get_mut(number) {
                seat.stopping = true;
            }
            threads.push_stopping(number);
        }
        self.arm(rq, cpu, Origin::Elsewhere);
    }

    /// Arms the timer for the next moment that matters, unless it will expire before it anyway.
    ///
    /// A timer that is set for an earlier moment mostly stays, and is ignored then: who is woken and
    /// blocks again and again should not have to set it each time. But where a slot begins and it
    /// would soon expire for nothing, or who runs has ended a task and goes on, setting it anew
    /// costs less.
    fn arm(&mut self, rq: &RunQueue, cpu: &Cpu, origin: Origin) {
        let overflow = self.insn_clock.tier() == Tier::PmuOverflow;
        if self.timer_ns != 0
            && self.now_ns == 0
            && !self.slot_begins
            && !self.task_ended
            && !overflow
        {
            // As of an earlier time all moments are earlier; so it need not be read what time it is.
            let (at_ns, _) = self.next_moment(self.recent_ns, origin);
            if self.timer_ns <= at_ns {
                return;
            }
        }
        let now_ns = self.now_ns();
        let (mut at_ns, by_count) = self.next_moment(now_ns, origin);
        if overflow && by_count {
            if let (Some(left_insns), true) = (self.left_insns(), rq.is_local()) {
                self.insn_clock.interrupt_after(left_insns);
            }
            at_ns = at_ns.saturating_add(BACKSTOP_NS);
        }
        if at_ns == u64::MAX || self.timer_ns == at_ns {
            return;
        }
        if self.timer_ns != 0 && self.timer_ns < at_ns {
            let soon = self.timer_ns.saturating_sub(now_ns) < at_ns.saturating_sub(now_ns) / 4;
            let renews = core::mem::take(&mut self.task_ended)
                || by_count && core::mem::take(&mut self.slot_begins) && soon;
            if !renews {
                return;
            }
        }
        if rq.is_local() {
            self.timer_ns = at_ns;
            cpu.arm(at_ns);
            if by_count {
                let count_insns = self.insn_clock.total_insns();
                self.predictor.set(now_ns, count_insns, origin);
            } else {
                self.predictor.forget();
            }
        } else {
            cpu.kick();
        }
    }

    /// The next moment that matters, as of `now_ns`, and whether it is one at which a count is
    /// reached.
    fn next_moment(&self, now_ns: u64, origin: Origin) -> (u64, bool) {
        let mut at_ns = self.decision.until_ns.unwrap_or(u64::MAX);
        if self.decision.again {
            at_ns = at_ns.min(now_ns + AGAIN_NS);
        }
        if let Some(deferred_ns) = self.deferred_until_ns() {
            at_ns = at_ns.min(deferred_ns);
        }
        let mut by_count = false;
        if let Some(left_insns) = self.left_insns() {
            let count_ns = self.predictor.expiry_ns(now_ns, left_insns, origin);
            by_count = count_ns < at_ns;
            at_ns = at_ns.min(count_ns);
        } else if self.running != NO_SEAT && self.running != self.granted && self.is_unenforced() {
            at_ns = at_ns.min(now_ns + ENFORCE_NS);
        }
        (at_ns.max(self.predictor.earliest_ns(now_ns)), by_count)
    }

    /// What the running thread may retire until the node must be asked, if there is a limit.
    fn left_insns(&self) -> Option<u64> {
        if self.running == NO_SEAT || self.running != self.granted {
            return None;
        }
        let insns = self.decision.until_insns?;
        Some(insns.saturating_sub(self.charged_insns))
    }

    /// Whether the running thread should wait, but nothing will send it there: it was let through
    /// to handle a signal.
    fn is_unenforced(&self) -> bool {
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

    /// The timer has expired, on its CPU.
    pub(crate) fn expire(&mut self, rq: &mut RunQueue, cpu: &'static Cpu) {
        let now_ns = self.now_ns();
        self.timer_ns = 0;
        self.charge_and_enforce(rq, cpu);
        let in_user = sched_class::interrupted_user();
        let count_insns = self.insn_clock.total_insns();
        self.predictor.expired(now_ns, count_insns, in_user);
        self.let_deferred_in(now_ns);
        self.settle_at(rq, cpu, Origin::Expiry);
    }

    /// The counter has interrupted, on its CPU.
    pub(crate) fn overflow(&mut self, rq: &mut RunQueue, cpu: &'static Cpu) {
        self.insn_clock.interrupted();
        self.charge_and_enforce(rq, cpu);
        self.settle(rq, cpu);
    }

    /// The tick. For a CPU that does without (`nohz_full=`) another one calls once a second; as it
    /// can't read the counter, nor the memory in use, it has the tick done there.
    pub(crate) fn tick(&mut self, rq: &mut RunQueue, cpu: &'static Cpu) {
        if !rq.is_local() {
            cpu.request_tick();
            return;
        }
        self.charge_and_enforce(rq, cpu);
        self.insn_clock.look_at_times();
        self.sample_memory(rq);
        self.settle(rq, cpu);
    }

    /// The CPU came up, and retires instructions at that rate.
    pub(crate) fn set_rate(&mut self, rate: Rate) {
        self.insn_clock.set_rate(rate);
        self.predictor = Predictor::new(rate);
    }

    /// From the timer's or the tick's interrupt: charges the running thread, and sends it to wait
    /// once more if it was let through to handle a signal, and is in user space and has done
    /// something there. Before that it is still about to handle the signal.
    fn charge_and_enforce(&mut self, rq: &RunQueue, cpu: &Cpu) {
        let insns = self.charge(rq);
        if self.running == NO_SEAT || !rq.is_local() {
            return;
        }
        let in_user = sched_class::interrupted_user();
        if insns != 0 && in_user && self.is_unenforced() {
            self.stop(self.running);
        }
        self.insn_clock.look(rq, in_user);
        if let Some(cause) = self.insn_clock.take_fault() {
            self.tell_tier(cpu, cause);
            cpu.request_recovery();
        }
    }

    /// The CPU has another counter, which works, from now on. Returns the one before. On the CPU
    /// itself.
    pub(crate) fn replace_counter(
        &mut self,
        rq: &mut RunQueue,
        cpu: &'static Cpu,
        counter: Option<KernelCounter>,
        tier: Tier,
    ) -> Option<KernelCounter> {
        self.charge(rq);
        let old = self.insn_clock.install(counter, tier);
        // The new counter begins here.
        self.insn_clock.advance(rq);
        self.tell_tier(cpu, TierCause::Returned);
        self.settle(rq, cpu);
        old
    }

    /// The CPU counts in another way from now on.
    pub(crate) fn tell_tier(&mut self, cpu: &Cpu, cause: TierCause) {
        let tier = self.insn_clock.tier();
        cpu.set_tier(tier);
        self.tell(cpu, EventKind::Tier, None, cause as u16, tier as u64, 0);
    }

    /// The thread has entered the class.
    pub(crate) fn enter(&mut self, cpu: &Cpu, number: SeatNumber) {
        let Some(threads) = &mut self.threads else {
            return;
        };
        let Some(seat) = threads.get_mut(number) else {
            return;
        };
        seat.entered = true;
        let row = seat.row;
        let pid = seat.task.as_ref().map_or(0, |task| task.pid());
        let process = threads.rows().process(row);
        self.tell(cpu, EventKind::Attached, process, 0, 0, pid);
    }

    /// The thread leaves the class: it isn't one of its process any more, and goes on in the
    /// kernel and in user space until its policy is changed, which takes process context.
    ///
    /// Tells why, but for [`LEAVE_SILENTLY`]. If its process went with its plan, that is why.
    pub(crate) fn leave(&mut self, cpu: &Cpu, number: SeatNumber, reason: u16) {
        let Some(threads) = &mut self.threads else {
            return;
        };
        let Some((row, pid)) = threads
            .get(number)
            .filter(|seat| seat.leaving == 0)
            .and_then(|seat| Some((seat.row, seat.task.as_ref()?.pid())))
        else {
            return;
        };
        let process = threads.rows().process(row);
        let lost = threads.lost(number);
        threads.forget_process(number);
        if let Some(seat) = threads.get_mut(number) {
            seat.leaving = reason;
        }
        if reason != LEAVE_SILENTLY {
            threads.send_away(number);
        } else {
            // It is the thread itself that leaves.
            threads.push_stopping(number);
        }
        match lost {
            Some((id, reason)) => {
                let mut event = Event::new(EventKind::Ejected, clock::monotonic_ns());
                event.process = id;
                event.reason = reason;
                let plan_id = self.node.as_ref().map_or(0, |node| node.plan_id());
                Emitter::new(cpu, plan_id, pid).emit(&event);
            }
            None if reason != LEAVE_SILENTLY => {
                self.tell(cpu, EventKind::Ejected, process, reason, 0, pid);
            }
            None => {}
        }
        if self.granted == number {
            self.granted = NO_SEAT;
        }
        self.refresh_presence(row);
    }

    /// All threads that are left of a process leave the class.
    pub(crate) fn leave_process(&mut self, cpu: &Cpu, process: u32, reason: u16) {
        let row = self
            .threads
            .as_ref()
            .map_or(NO_ROW, |threads| threads.rows().row(process));
        // Bounded by the number of seats: each turn takes one out of the process's queue.
        while let Some(number) = self
            .threads
            .as_ref()
            .map(|threads| threads.active(row))
            .filter(|number| *number != NO_SEAT)
        {
            self.leave(cpu, number, reason);
            cpu.request_ejection();
        }
    }

    /// The active thread of `process` ended its task; returns the number of the next one.
    pub(crate) fn end_task(&mut self, cpu: &Cpu, process: u32, pid: i32) -> Option<u32> {
        let now_ns = self.now_ns();
        self.task_ended = true;
        self.with_node(cpu, pid, |node, emitter| {
            node.end_task(process, now_ns, emitter)
        })?
    }

    /// The last thread of `process` is gone.
    pub(crate) fn end_process(&mut self, cpu: &Cpu, process: u32, pid: i32) {
        let now_ns = self.now_ns();
        self.with_node(cpu, pid, |node, emitter| {
            node.end_process(process, now_ns, emitter)
        });
    }

    /// Tells the node something, if there is a plan; the events that come of it are about the
    /// thread `pid`.
    fn with_node<R>(
        &mut self,
        cpu: &Cpu,
        pid: i32,
        tell: impl FnOnce(&mut Node<KernelMemory>, &mut Emitter<'_>) -> R,
    ) -> Option<R> {
        let node = self.node.as_mut()?;
        let mut emitter = Emitter::new(cpu, node.plan_id(), pid);
        Some(tell(node, &mut emitter))
    }

    /// Tells of something that the node knows nothing of.
    pub(crate) fn tell(
        &mut self,
        cpu: &Cpu,
        kind: EventKind,
        process: Option<u32>,
        reason: u16,
        value: u64,
        pid: i32,
    ) {
        let mut event = Event::new(kind, self.now_ns());
        let mut plan_id = 0;
        if let Some(node) = &self.node {
            plan_id = node.plan_id();
            if let Some(info) = process.and_then(|process| node.process(process)) {
                event.process = info.id;
                event.task = info.task;
                event.planned_insns = info.planned_insns;
                event.retired_insns = info.retired_insns;
                event.lateness_insns = info.lateness_insns;
                event.peak_vm_bytes = info.task_peak_vm_bytes;
                event.peak_rss_bytes = info.task_peak_rss_bytes;
                event.preemptions = info.preemptions;
                event.node_lateness_insns = node.lateness_insns();
            }
        }
        event.reason = reason;
        event.value = value;
        Emitter::new(cpu, plan_id, pid).emit(&event);
    }

    /// A thread has reached its waiting place: reports it if that took long.
    pub(crate) fn told_to_wait(&mut self, cpu: &Cpu, number: SeatNumber) {
        let now_ns = self.now_ns();
        let Some(threads) = &self.threads else {
            return;
        };
        let Some((seat, task)) = threads
            .get(number)
            .and_then(|seat| Some((seat, seat.task.as_ref()?)))
        else {
            return;
        };
        if !seat.stopping {
            return;
        }
        let took_ns = now_ns.saturating_sub(seat.stopping_since_ns);
        let (process, pid) = (threads.rows().process(seat.row), task.pid());
        self.longest_stop_ns = self.longest_stop_ns.max(took_ns);
        if took_ns > STOP_LONG_NS {
            self.tell(cpu, EventKind::StopLong, process, 0, took_ns, pid);
        }
    }
}
