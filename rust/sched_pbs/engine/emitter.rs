// SPDX-License-Identifier: GPL-2.0

//! The way of an event from the node to its ring, to the tracepoints, and to other CPUs.

use crate::{
    linux::trace,
    pbs_core::{Ended, Event, PresentSlot, Sink},
    percpu::{cpu::Cpu, cpus, requests::Request},
    rings::events::Record,
    state::outlet::Outlet,
};

/// Receives the events of a CPU's node, and adds the fields that only the kernel has.
pub(crate) struct Emitter<'a> {
    cpu: &'a Cpu,
    outlet: &'a mut Outlet,
    plan_id: u64,
    pid: i32,
}

impl<'a> Emitter<'a> {
    /// An emitter for events of the plan `plan_id` on `cpu`, about the thread `pid`, 0 if it is not
    /// known. `outlet` is the outlet of the CPU.
    pub(crate) fn new(cpu: &'a Cpu, outlet: &'a mut Outlet, plan_id: u64, pid: i32) -> Self {
        Self {
            cpu,
            outlet,
            plan_id,
            pid,
        }
    }
}

impl Sink for Emitter<'_> {
    fn emit(&mut self, event: &Event) -> u64 {
        self.cpu.counts.add_one(event.kind);
        // Without a plan nothing happens.
        let Some(ring) = self.outlet.ring_mut() else {
            return 0;
        };
        let record = |seq| Record {
            seq,
            time_ns: event.time_ns,
            plan_id: self.plan_id,
            kind: event.kind as u16,
            reason: event.reason,
            cpu: self.cpu.number(),
            process: event.process,
            task: event.task,
            slot: event.slot,
            planned_insns: event.planned_insns,
            retired_insns: event.retired_insns,
            lateness_insns: event.lateness_insns,
            value: event.value,
            peak_vm_bytes: event.peak_vm_bytes,
            peak_rss_bytes: event.peak_rss_bytes,
            preemptions: event.preemptions,
            pid: self.pid,
            node_lateness_insns: event.node_lateness_insns,
            stress: event.stress,
            level_percent: event.level_percent,
            memory_bytes: event.memory_bytes,
        };
        ring.write(record, |record| trace::event(event.kind, record))
    }

    fn await_elsewhere(&mut self, predecessor: u32, task: u32) -> Ended {
        let cpu = self.cpu.number();
        self.outlet.links().wait(cpu, predecessor, task)
    }

    #[cold]
    fn tell_elsewhere(&mut self, process: u32, ended: Ended) {
        self.outlet.links().tell(process, ended, request_order);
    }

    fn slot_begin(&mut self, slot: impl FnOnce() -> Option<PresentSlot>) {
        trace::slot_begin(self.cpu.number(), self.plan_id, slot);
    }

    fn slot_end(&mut self, slot: impl FnOnce() -> Option<PresentSlot>) {
        trace::slot_end(self.cpu.number(), self.plan_id, slot);
    }
}

/// Makes a CPU check the tasks on other CPUs that a process there waits for. Any context but NMI.
pub(crate) fn request_order(cpu: u32) {
    if let Some(cpu) = cpus::get(cpu) {
        cpu.requests.add(Request::Order);
    }
}
