// SPDX-License-Identifier: GPL-2.0

//! Instructions retired and memory used by the running thread, and the process that they belong to.

use crate::{
    engine::emitter::Emitter,
    linux::sched_class::RunQueue,
    percpu::cpu::Cpu,
    state::{insn_clock::Tier, threads::Seat, State},
};
use kernel::mm::MemoryUse;

impl State {
    /// Charges the instructions that the running thread has retired, if the counter can be read:
    /// the run queue is this CPU's. Returns their number.
    pub(crate) fn charge(&mut self, rq: &RunQueue) -> u64 {
        if !self.occupancy.runs() || !rq.is_local() {
            return 0;
        }
        let Some(insns) = self.reading.read(rq, &mut self.insn_clock) else {
            return 0;
        };
        if insns != 0 {
            self.timer.progress();
        }
        let (Some(threads), Some(node)) = (&self.threads, &mut self.node) else {
            return insns;
        };
        if let Some(process) = threads.process_if_active(self.occupancy.running()) {
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
        let Some(seat) = threads
            .get(self.occupancy.running())
            .filter(|_| rq.is_local())
        else {
            return;
        };
        let Some(used) = MemoryUse::of_current() else {
            return;
        };
        if self.memory.is_known(&seat.memory, &used) {
            // By far the most frequent case: only a rise of a peak is reported.
            return;
        }
        let Some(process) = threads.process_if_active(self.occupancy.running()) else {
            return;
        };
        let is_new = node.memory(process, used.total_vm_bytes, used.rss_bytes);
        // A known sample would hide that the process begins with it.
        let is_early = node.is_sampled_too_early(process);
        if let Some(seat) = threads
            .get_mut(self.occupancy.running())
            .filter(|_| !is_early)
        {
            seat.memory = self.memory.sample(used);
        }
        if is_new {
            self.watch_memory(cpu, process);
        }
    }

    /// Checks the thresholds of memory, as `process` has been sampled.
    #[inline(never)]
    fn watch_memory(&mut self, cpu: &Cpu, process: u32) {
        // Shown first, then read: if two CPUs use more at once, one of them sees both.
        let elsewhere_bytes = self.show_memory();
        let now_ns = self.clock.now_ns();
        if let Some(node) = &mut self.node {
            let mut emitter = Emitter::new(cpu, &mut self.events, node.plan_id(), 0);
            node.watch_memory(process, elsewhere_bytes, now_ns, &mut emitter);
        }
    }

    /// Shows other CPUs the memory that the processes here use now. Returns the memory used there.
    pub(crate) fn show_memory(&mut self) -> u64 {
        let bytes = self.node.as_ref().map_or(0, |node| node.memory_bytes());
        self.memory.show(bytes)
    }

    /// The running thread is about to leave the CPU, or to be taken off it for a change: charges
    /// it, once a switch.
    ///
    /// A thread that goes to sleep to wait was charged when that was settled. It has been in the
    /// kernel since, which no counter counts.
    pub(crate) fn charge_switch(&mut self, rq: &RunQueue, cpu: &Cpu) {
        if !self.reading.begin_switch() {
            return;
        }
        let seat = self.running_seat();
        if self.insn_clock.tier() == Tier::Clock || !seat.is_some_and(Seat::is_parked) {
            self.charge(rq);
            self.sample_memory(rq, cpu);
        }
    }

    /// The CPU has another rate. Charge before, settle after it.
    pub(crate) fn set_rate(&mut self, cpu: &Cpu) {
        let rate = cpu.counter.rate();
        self.insn_clock.set_rate(rate);
        self.timer.set_rate(cpu.counter.fastest_rate());
        if let Some(node) = &mut self.node {
            node.set_rate(rate);
        }
    }
}
