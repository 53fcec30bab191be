// SPDX-License-Identifier: GPL-2.0

//! What the running thread has retired and uses, and to whom it goes.

use super::State;
use crate::{
    linux::{
        entity,
        sched_class::{self, RunQueue},
    },
    pbs_core::{Origin, Predictor},
    percpu::{
        cpu::Cpu,
        events::Emitter,
        insn_clock::{Tier, TierCause},
        threads::{Parked, Seat, SeatNumber, NO_SEAT},
    },
    protect::fault::Fault,
};
use core::sync::atomic::{AtomicU64, Ordering};
use kernel::{mm::MemoryUse, perf_event::KernelCounter};

/// What the plan processes of all CPUs use: the sum of what each has shown, which it changes under
/// the lock of its run queue.
static SHOWN_BYTES: AtomicU64 = AtomicU64::new(0);

impl State {
    /// Charges what the running thread has retired, if the counter can be read: the run queue is
    /// this CPU's. Returns it.
    pub(crate) fn charge(&mut self, rq: &RunQueue) -> u64 {
        if self.running == NO_SEAT || !rq.is_local() {
            return 0;
        }
        self.charged = true;
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
        }
        insns
    }

    /// Samples the memory of the running thread. The run queue is this CPU's, and the thread is
    /// the one that executes the call or was interrupted by it.
    pub(crate) fn sample_memory(&mut self, rq: &RunQueue, cpu: &Cpu) {
        let (Some(threads), Some(node)) = (&mut self.threads, &mut self.node) else {
            return;
        };
        let Some(seat) = threads.get(self.running).filter(|_| rq.is_local()) else {
            return;
        };
        let Some(used) = MemoryUse::of_current() else {
            return;
        };
        if used.is_within(&seat.told_memory.0) && seat.told_memory.1 == self.tasks {
            // By far the most frequent case: of peaks only what is more is told.
            return;
        }
        let Some(process) = threads.process_if_active(self.running) else {
            return;
        };
        let is_new = node.memory(process, used.total_vm_bytes, used.rss_bytes);
        if let Some(seat) = threads.get_mut(self.running) {
            seat.told_memory = (used, self.tasks);
        }
        if is_new {
            self.watch_memory(cpu, process);
        }
    }

    /// Looks at the thresholds of memory, as `process` has been sampled.
    #[inline(never)]
    fn watch_memory(&mut self, cpu: &Cpu, process: u32) {
        // First shown, then asked for: of two CPUs that use more at once, one sees both.
        let elsewhere_bytes = self.show_memory();
        let now_ns = self.now_ns();
        if let Some(node) = &mut self.node {
            let mut emitter = Emitter::new(cpu, &mut self.events, node.plan_id(), 0);
            node.watch_memory(process, elsewhere_bytes, now_ns, &mut emitter);
        }
    }

    /// Shows other CPUs what the processes here use now. Returns what those there use.
    pub(crate) fn show_memory(&mut self) -> u64 {
        let bytes = self.node.as_ref().map_or(0, |node| node.memory_bytes());
        let before_bytes = core::mem::replace(&mut self.shown_memory_bytes, bytes);
        let change = bytes.wrapping_sub(before_bytes);
        let shown_bytes = if change == 0 {
            SHOWN_BYTES.load(Ordering::SeqCst)
        } else {
            SHOWN_BYTES.fetch_add(change, Ordering::SeqCst)
        };
        shown_bytes.wrapping_sub(before_bytes)
    }

    /// A thread of the class gets the CPU.
    pub(crate) fn begin_running(&mut self, rq: &RunQueue, cpu: &Cpu, seat: SeatNumber) {
        if !core::mem::replace(&mut self.has_cpu, true) {
            rq.update_real_time_load(false);
        }
        self.running = seat;
        self.charged_in_switch = false;
        self.task_ended = false;
        let armed = core::mem::replace(&mut self.armed_for, NO_SEAT) == seat;
        let armed = armed && seat == self.granted && rq.is_local();
        if !armed {
            self.predictor.forget();
        }
        if let Some(seat) = self.seat_mut(seat) {
            // Who sleeps may be put off the CPU and on again, as something about it is changed.
            if seat.parked == Parked::Asleep && seat.queued {
                seat.parked = Parked::No;
                if let Some(task) = seat.task.as_ref().filter(|_| seat.leaving == 0) {
                    entity::set_let_on(rq, task, true);
                }
            }
        }
        if seat != self.granted {
            if !self.let_through_again(seat) {
                self.send_to_wait(seat);
            }
            self.begin_turn();
        }
        if rq.is_local() {
            if !core::mem::replace(&mut self.count_valid, true) {
                self.insn_clock.advance(rq);
            }
            // Who ran before was, and since then nothing has been retired in user space.
            self.charged = true;
            if !armed {
                self.arm(rq, cpu, Origin::Call);
            }
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
    pub(crate) fn charge_switch(&mut self, rq: &RunQueue, cpu: &Cpu) {
        if core::mem::replace(&mut self.charged_in_switch, true) {
            return;
        }
        let seat = self.threads.as_ref().and_then(|t| t.get(self.running));
        if self.insn_clock.tier() == Tier::Clock || !seat.is_some_and(Seat::is_parked) {
            self.charge(rq);
            self.sample_memory(rq, cpu);
        }
    }

    /// The running thread has left the CPU; whether a thread of the class follows it.
    pub(crate) fn end_running(&mut self, rq: &RunQueue, cpu: &Cpu, class_follows: bool) {
        self.charge_switch(rq, cpu);
        self.end_turn();
        self.running = NO_SEAT;
        if rq.is_local() {
            self.count_valid &= class_follows;
        }
        if !class_follows {
            self.has_cpu = false;
            rq.update_real_time_load(true);
            self.arm(rq, cpu, Origin::Call);
        }
    }

    /// A thread has left the class, and goes on in another one if it was running.
    pub(crate) fn lose_count(&mut self) {
        self.count_valid = false;
    }

    /// From the timer's or the tick's interrupt: charges the running thread, and sends it to wait
    /// once more if it was let through to handle a signal, and is in user space and has done enough
    /// there. Before that it is still about to handle the signal.
    pub(super) fn charge_and_enforce(&mut self, rq: &RunQueue, cpu: &Cpu) {
        let insns = self.charge(rq);
        if self.running == NO_SEAT || !rq.is_local() {
            return;
        }
        let in_user = sched_class::interrupted_user();
        if insns != 0 && in_user && self.is_unenforced() && self.has_handled() {
            self.stop(self.running);
        }
        if !self.fails(Fault::Look) {
            self.insn_clock.look(rq, in_user);
        }
        if let Some(cause) = self.insn_clock.take_fault() {
            self.tell_tier(cpu, cause);
            cpu.request_recovery();
        }
    }

    /// The CPU has another rate. Charge before, settle after it.
    pub(crate) fn set_rate(&mut self, cpu: &Cpu) {
        let rate = cpu.rate();
        self.insn_clock.set_rate(rate);
        self.predictor = Predictor::new(cpu.fastest_rate());
        if let Some(node) = &mut self.node {
            node.set_rate(rate);
        }
    }

    /// The CPU has another counter, which works, from now on. Returns the one before. On the CPU
    /// itself.
    pub(crate) fn replace_counter(
        &mut self,
        rq: &RunQueue,
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
}
