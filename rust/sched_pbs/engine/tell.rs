// SPDX-License-Identifier: GPL-2.0

//! Reports of events of the node, and of events that the node is not aware of.

use crate::{
    engine::emitter::Emitter,
    pbs_core::{Event, EventKind, Sink},
    percpu::cpu::Cpu,
    state::{insn_clock::TierCause, node::Node, threads::SeatNumber, State},
};

/// Time that a thread may take from others on its way to where it waits without a report.
const STOP_LONG_NS: u64 = 1_000_000;

impl State {
    /// Calls `function` with the node, if there is a plan; the resulting events are about the
    /// thread `pid`.
    pub(crate) fn with_node<R>(
        &mut self,
        cpu: &Cpu,
        pid: i32,
        tell: impl FnOnce(&mut Node, &mut Emitter<'_>) -> R,
    ) -> Option<R> {
        // A grant that was not reported yet is about no thread.
        self.tell_untold(cpu);
        let node = self.node.as_mut()?;
        let mut emitter = Emitter::new(cpu, &mut self.events, node.plan_id(), pid);
        Some(tell(node, &mut emitter))
    }

    /// Reports the present grant, if the node has not reported it yet: another event is reported
    /// next.
    pub(crate) fn tell_untold(&mut self, cpu: &Cpu) {
        if let Some(node) = &mut self.node {
            let plan_id = node.plan_id();
            node.tell_untold(&mut Emitter::new(cpu, &mut self.events, plan_id, 0));
        }
    }

    /// Reports an event that the node is not aware of.
    pub(crate) fn tell(
        &mut self,
        cpu: &Cpu,
        kind: EventKind,
        process: Option<u32>,
        reason: u16,
        value: u64,
        pid: i32,
    ) {
        self.tell_untold(cpu);
        let mut event = Event::new(kind, self.clock.now_ns());
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
        Emitter::new(cpu, &mut self.events, plan_id, pid).emit(&event);
    }

    /// Reports that the CPU counts in another way from now on.
    pub(crate) fn tell_tier(&mut self, cpu: &Cpu, cause: TierCause) {
        let tier = self.insn_clock.tier();
        cpu.counter.set_tier(tier);
        self.tell(cpu, EventKind::Tier, None, cause as u16, tier as u64, 0);
    }

    /// Ends the way of a thread to where it waits, there or because it is granted the CPU. Reports
    /// the time that the thread took from others, if that was much.
    pub(crate) fn end_way(&mut self, cpu: &Cpu, number: SeatNumber) {
        let now_ns = self.clock.now_ns();
        let Some(threads) = &mut self.threads else {
            return;
        };
        let Some(seat) = threads.get_mut(number).filter(|seat| seat.stopping) else {
            return;
        };
        seat.stopping = false;
        let way_ns = core::mem::take(&mut seat.way_ns);
        let stop_ns = now_ns.saturating_sub(seat.stopping_since_ns);
        let (row, pid) = (seat.row, seat.task.as_ref().map_or(0, |task| task.pid()));
        self.longest.note_stop(stop_ns);
        if way_ns > STOP_LONG_NS {
            let process = threads.rows().process(row);
            self.tell(cpu, EventKind::StopLong, process, 0, way_ns, pid);
        }
    }
}
