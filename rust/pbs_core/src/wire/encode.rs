// SPDX-License-Identifier: GPL-2.0

//! Writing the records of a plan, in the machine's byte order.

use super::super::Config;
use super::{
    CONFIG_BYTES, CPU_BYTES, HEADER_BYTES, IDLE, MAGIC, NO_TASK, PROCESS_BYTES, SLOT_BYTES, VERSION,
};

fn put<const N: usize>(record: &mut [u8], at: usize, field: [u8; N]) {
    if let Some(place) = record.get_mut(at..at + N) {
        place.copy_from_slice(&field);
    }
}

/// The size of a plan with a configuration or without, of as many CPUs,
/// processes and slots.
pub const fn total_bytes(with_config: bool, nr_cpus: u64, nr_processes: u64, nr_slots: u64) -> u64 {
    HEADER_BYTES as u64
        + if with_config { CONFIG_BYTES as u64 } else { 0 }
        + nr_cpus * CPU_BYTES as u64
        + nr_processes * PROCESS_BYTES as u64
        + nr_slots * SLOT_BYTES as u64
}

/// `struct pbs_plan_header`; for `total_bytes` see [`total_bytes`], for
/// `dealt_seq` [`Message::dealt_seq`](super::Message::dealt_seq), for `lease_ns`
/// [`Message::lease_ns`](super::Message::lease_ns).
pub fn header(
    plan_id: u64,
    total_bytes: u64,
    nr_cpus: u32,
    with_config: bool,
    dealt_seq: u64,
    lease_ns: u64,
) -> [u8; HEADER_BYTES] {
    let config_bytes = if with_config { CONFIG_BYTES as u32 } else { 0 };
    let mut record = [0; HEADER_BYTES];
    put(&mut record, 0, MAGIC.to_ne_bytes());
    put(&mut record, 4, VERSION.to_ne_bytes());
    put(&mut record, 6, (HEADER_BYTES as u16).to_ne_bytes());
    put(&mut record, 8, total_bytes.to_ne_bytes());
    put(&mut record, 16, plan_id.to_ne_bytes());
    put(&mut record, 24, nr_cpus.to_ne_bytes());
    put(&mut record, 28, config_bytes.to_ne_bytes());
    put(&mut record, 40, dealt_seq.to_ne_bytes());
    put(&mut record, 48, lease_ns.to_ne_bytes());
    record
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
pub fn cpu(cpu: u32, nr_processes: u32, nr_slots: u64) -> [u8; CPU_BYTES] {
    let mut record = [0; CPU_BYTES];
    put(&mut record, 0, cpu.to_ne_bytes());
    put(&mut record, 4, nr_processes.to_ne_bytes());
    put(&mut record, 8, nr_slots.to_ne_bytes());
    record
}

/// `struct pbs_plan_process`
pub fn process(id: u32, buffer_insns: u64) -> [u8; PROCESS_BYTES] {
    let mut record = [0; PROCESS_BYTES];
    put(&mut record, 0, id.to_ne_bytes());
    put(&mut record, 8, buffer_insns.to_ne_bytes());
    record
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
