// SPDX-License-Identifier: GPL-2.0

//! The interrupts of the class: its timer, its counter, the tick, and requests to a CPU.

use super::lock::finish;
use crate::{
    linux::{
        sched_class::{self, RunQueue, RunQueueGuard},
        table::table,
    },
    pbs_core::Origin,
    percpu::{
        alarm::Expiry,
        counter::Overflowed,
        cpu::Cpu,
        cpus,
        requests::{Kick, Request},
        works,
    },
    state::{faults::Fault, insn_clock::Tier, threads::Seat, State},
};
use kernel::{
    hrtimer::{HrTimer, HrTimerCallback, Restart},
    irq_work::{IrqWork, IrqWorkCallback},
};

impl HrTimerCallback for Expiry {
    fn expired(this: &HrTimer<Self>) -> Restart {
        finish(RunQueueGuard::lock(this.0), |rq, cpu, state| {
            cpu.alarm.note_interrupt();
            state.expire(rq, cpu)
        });
        // Settling has armed the timer itself if there is a moment to wait for.
        Restart::No
    }
}

impl IrqWorkCallback for Overflowed {
    fn run(this: &IrqWork<Self>) {
        finish(RunQueueGuard::lock(this.0), |rq, cpu, state| {
            state.overflow(rq, cpu)
        });
    }
}

impl IrqWorkCallback for Kick {
    fn run(this: &IrqWork<Self>) {
        let Some(cpu) = cpus::get(this.0.number()) else {
            return;
        };
        let tick = cpu.requests.take(Request::Tick);
        // Taken before the check: a task end that is reported from now on comes with its own
        // request.
        let order = cpu.requests.take(Request::Order);
        cpu.lock(|rq, cpu, state| {
            if order {
                state.look_elsewhere(cpu);
            }
            if tick {
                state.tick(rq, cpu);
            } else {
                state.charge(rq);
                state.settle(rq, cpu);
            }
        });
        if cpu.requests.take(Request::Eject) {
            works::eject_soon();
        }
        if cpu.requests.take(Request::Recover) {
            works::recover_soon();
        }
    }
}

impl State {
    /// Handles the expiry of the timer, on its CPU.
    fn expire(&mut self, rq: &RunQueue, cpu: &'static Cpu) {
        let now_ns = self.clock.now_ns();
        self.timer.expire();
        self.charge_and_enforce(rq, cpu);
        let in_user = sched_class::interrupted_user();
        let count_insns = self.insn_clock.total_insns();
        let by_clock = self.insn_clock.tier() == Tier::Clock;
        self.timer.learn(now_ns, count_insns, in_user, by_clock);
        self.let_deferred_in(now_ns);
        self.block_delayed(rq);
        self.settle_at(rq, cpu, Origin::Expiry);
        if !self.occupancy.runs() && rq.is_local() && self.is_unused() {
            // The last idle slot is over. The timer of a CPU that has gone expires elsewhere.
            cpu.requests.add(Request::Eject);
        }
    }

    /// Handles an interrupt of the counter, on its CPU.
    fn overflow(&mut self, rq: &RunQueue, cpu: &'static Cpu) {
        self.insn_clock.interrupted();
        self.charge_and_enforce(rq, cpu);
        self.settle_at(rq, cpu, Origin::Interrupt);
    }

    /// The tick. For a CPU without a tick (`nohz_full=`), another CPU calls this once a second.
    /// That one can read neither the counter nor the memory in use: therefore it requests the tick
    /// there.
    pub(crate) fn tick(&mut self, rq: &RunQueue, cpu: &'static Cpu) {
        if !rq.is_local() {
            cpu.requests.add(Request::Tick);
            return;
        }
        self.clock.forget_anchor();
        if self.occupancy.has_cpu() {
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

    /// Charges the running thread, from the timer's or the tick's interrupt. A thread that was let
    /// through to handle a signal is sent to wait once more, if it is in user space and has done
    /// enough there: before that it is still about to handle the signal.
    fn charge_and_enforce(&mut self, rq: &RunQueue, cpu: &Cpu) {
        let insns = self.charge(rq);
        if !self.occupancy.runs() || !rq.is_local() {
            return;
        }
        let interrupted_user = sched_class::interrupted();
        self.look_where(rq, interrupted_user);
        let in_user = interrupted_user == Some(true);
        if insns != 0
            && in_user
            && self.running_seat().is_some_and(Seat::is_unenforced)
            && self.has_handled()
        {
            self.stop(self.occupancy.running());
        }
        if !self.faults.fails(Fault::Look) {
            self.insn_clock.look(rq, in_user);
        }
        if let Some(cause) = self.insn_clock.take_fault() {
            self.tell_tier(cpu, cause);
            cpu.requests.add(Request::Recover);
        }
    }

    /// Looks where the interrupt has found the running thread, in user space or not, and tells the
    /// node of time in the kernel and in interrupts. An interrupt that does not know is no look.
    fn look_where(&mut self, rq: &RunQueue, in_user: Option<bool>) {
        let Some(in_user) = in_user else {
            return;
        };
        let since = self.looks.take(rq, in_user);
        let (Some(threads), Some(node)) = (&self.threads, &mut self.node) else {
            return;
        };
        let Some(process) = threads.process_if_active(self.occupancy.running()) else {
            return;
        };
        let now_ns = self.clock.now_ns();
        if since.interrupted_ns != 0 && self.occupancy.is_granted(self.occupancy.running()) {
            node.interrupted(since.interrupted_ns, now_ns);
        }
        // A softirq that was interrupted does not show where the thread is.
        if in_user {
            node.in_kernel(process, 0, now_ns);
        } else if !sched_class::interrupted_softirq() {
            node.in_kernel(process, since.ran_ns, now_ns);
        }
    }

    /// Takes some of the threads off the run queue that have slept there for long; the others
    /// follow.
    fn block_delayed(&mut self, rq: &RunQueue) {
        if let Some(threads) = &mut self.threads {
            threads.sweep_delayed(rq.clock_ns(), |task| {
                sched_class::block_delayed(rq, table(), task);
            });
        }
    }
}
