// SPDX-License-Identifier: GPL-2.0

//! Writing the records of a plan, in the machine's byte order.

use super::super::config::Config;
use super::format::{
    ARRIVAL_BYTES, CONFIG_BYTES, CPU_BYTES, EDGE_BYTES, HEADER_BYTES, IDLE, MAGIC, NO_DEADLINE,
    NO_TASK, PLAN_ARRIVALS, PROCESS_BYTES, SLOT_BYTES, VERSION,
};

fn put<const N: usize>(record: &mut [u8], at: usize, field: [u8; N]) {
    if let Some(place) = record.get_mut(at..at + N) {
        place.copy_from_slice(&field);
    }
}

/// The size of a plan with a configuration or without, of as many CPUs,
/// processes, slots and edges.  Planned arrivals come on top: [`arrivals_bytes`].
pub const fn total_bytes(
    with_config: bool,
    nr_cpus: u64,
    nr_processes: u64,
    nr_slots: u64,
    nr_edges: u64,
) -> u64 {
    HEADER_BYTES as u64
        + if with_config { CONFIG_BYTES as u64 } else { 0 }
        + nr_cpus * CPU_BYTES as u64
        + nr_processes * PROCESS_BYTES as u64
        + nr_slots * SLOT_BYTES as u64
        + nr_edges * EDGE_BYTES as u64
}

/// The size of the planned arrivals of so many edges.
pub const fn arrivals_bytes(nr_edges: u64) -> u64 {
    nr_edges * ARRIVAL_BYTES as u64
}

/// `struct pbs_plan_header`
#[derive(Clone, Copy, Debug, Default)]
pub struct Header {
    /// See [`Message::plan_id`](super::Message::plan_id).
    pub plan_id: u64,
    /// See [`total_bytes`].
    pub total_bytes: u64,
    /// Number of CPUs of the plan.
    pub nr_cpus: u32,
    /// Whether a configuration follows.
    pub with_config: bool,
    /// Whether the edges have planned arrivals.
    pub with_arrivals: bool,
    /// See [`Message::dealt_seq`](super::Message::dealt_seq).
    pub dealt_seq: u64,
    /// See [`Message::lease_ns`](super::Message::lease_ns).
    pub lease_ns: u64,
    /// See [`Message::memory_bytes`](super::Message::memory_bytes).
    pub memory_bytes: u64,
}

impl Header {
    /// The record.
    pub fn bytes(&self) -> [u8; HEADER_BYTES] {
        let config_bytes = if self.with_config {
            CONFIG_BYTES as u32
        } else {
            0
        };
        let mut record = [0; HEADER_BYTES];
        put(&mut record, 0, MAGIC.to_ne_bytes());
        put(&mut record, 4, VERSION.to_ne_bytes());
        put(&mut record, 6, (HEADER_BYTES as u16).to_ne_bytes());
        put(&mut record, 8, self.total_bytes.to_ne_bytes());
        put(&mut record, 16, self.plan_id.to_ne_bytes());
        put(&mut record, 24, self.nr_cpus.to_ne_bytes());
        put(&mut record, 28, config_bytes.to_ne_bytes());
        if self.with_arrivals {
            put(&mut record, 32, PLAN_ARRIVALS.to_ne_bytes());
        }
        put(&mut record, 40, self.dealt_seq.to_ne_bytes());
        put(&mut record, 48, self.lease_ns.to_ne_bytes());
        put(&mut record, 56, self.memory_bytes.to_ne_bytes());
        record
    }
}

/// `struct pbs_config`
pub fn config(config: &Config) -> [u8; CONFIG_BYTES] {
    let mut record = [0; CONFIG_BYTES];
    for (index, value) in config.values().into_iter().enumerate() {
        put(&mut record, 8 * index, value.to_ne_bytes());
    }
    record
}

/// `struct pbs_plan_cpu`
#[derive(Clone, Copy, Debug, Default)]
pub struct Cpu {
    /// Number of the CPU.
    pub cpu: u32,
    /// Number of processes that follow.
    pub nr_processes: u32,
    /// Number of slots that follow.
    pub nr_slots: u64,
    /// Number of edges that follow.
    pub nr_edges: u64,
    /// See [`Section::rate_insns_per_ms`](super::Section::rate_insns_per_ms).
    pub rate_insns_per_ms: u64,
}

impl Cpu {
    /// The record.
    pub fn bytes(&self) -> [u8; CPU_BYTES] {
        let mut record = [0; CPU_BYTES];
        put(&mut record, 0, self.cpu.to_ne_bytes());
        put(&mut record, 4, self.nr_processes.to_ne_bytes());
        put(&mut record, 8, self.nr_slots.to_ne_bytes());
        put(&mut record, 16, self.nr_edges.to_ne_bytes());
        put(&mut record, 24, self.rate_insns_per_ms.to_ne_bytes());
        record
    }
}

/// `struct pbs_plan_process`; see [`Process`](super::super::Process).
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)] // The fields are those of the plan's process.
pub struct Process {
    pub id: u32,
    pub buffer_insns: u64,
    pub memory_bytes: u64,
    pub rate_insns_per_ms: u64,
    pub deadline_ns: u64,
}

impl Default for Process {
    /// A process of which the plan says nothing.
    fn default() -> Process {
        Process {
            id: 0,
            buffer_insns: 0,
            memory_bytes: 0,
            rate_insns_per_ms: 0,
            deadline_ns: NO_DEADLINE,
        }
    }
}

impl Process {
    /// The record.
    pub fn bytes(&self) -> [u8; PROCESS_BYTES] {
        let mut record = [0; PROCESS_BYTES];
        put(&mut record, 0, self.id.to_ne_bytes());
        put(&mut record, 8, self.buffer_insns.to_ne_bytes());
        put(&mut record, 16, self.memory_bytes.to_ne_bytes());
        put(&mut record, 24, self.rate_insns_per_ms.to_ne_bytes());
        put(&mut record, 32, self.deadline_ns.to_ne_bytes());
        record
    }
}

/// `struct pbs_plan_slot` of a process.
pub fn slot(length_insns: u64, process: u32, task: u32) -> [u8; SLOT_BYTES] {
    let mut record = [0; SLOT_BYTES];
    put(&mut record, 0, length_insns.to_ne_bytes());
    put(&mut record, 8, process.to_ne_bytes());
    put(&mut record, 12, task.to_ne_bytes());
    record
}

/// `struct pbs_plan_slot` that is idle.
pub fn idle_slot(length_insns: u64) -> [u8; SLOT_BYTES] {
    slot(length_insns, IDLE, NO_TASK)
}

/// `struct pbs_plan_edge`: `task` of `process` waits for `after_task` of
/// `after_process`.
pub fn edge(process: u32, task: u32, after_process: u32, after_task: u32) -> [u8; EDGE_BYTES] {
    let mut record = [0; EDGE_BYTES];
    for (index, number) in [process, task, after_process, after_task]
        .into_iter()
        .enumerate()
    {
        put(&mut record, 4 * index, number.to_ne_bytes());
    }
    record
}
