// SPDX-License-Identifier: GPL-2.0

//! What is told beside what the node tells.

use super::State;
use crate::{
    clock::TierCause,
    cpu::Cpu,
    events::Emitter,
    pbs_core::{Event, EventKind, Sink},
    threads::SeatNumber,
};

/// A thread that takes longer than this from the request to wait until it waits is reported.
const STOP_LONG_NS: u64 = 10_000_000;

impl State {
    /// Tells the present grant, if the node has not told it yet: something else is told next.
    pub(crate) fn tell_untold(&mut self, cpu: &Cpu) {
        if let Some(node) = &mut self.node {
            let plan_id = node.plan_id();
            node.tell_untold(&mut Emitter::new(cpu, &mut self.events, plan_id, 0));
        }
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
        self.tell_untold(cpu);
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
        Emitter::new(cpu, &mut self.events, plan_id, pid).emit(&event);
    }

    /// The CPU counts in another way from now on.
    pub(crate) fn tell_tier(&mut self, cpu: &Cpu, cause: TierCause) {
        let tier = self.insn_clock.tier();
        cpu.set_tier(tier);
        self.tell(cpu, EventKind::Tier, None, cause as u16, tier as u64, 0);
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
