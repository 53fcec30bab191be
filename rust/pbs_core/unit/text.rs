// SPDX-License-Identifier: GPL-2.0

//! Plans for tests, all of them written and read in the wire format.

use std::collections::BTreeMap;
use std::vec::Vec;

use crate::wire::encode;
use crate::wire::{Message, IDLE, NO_TASK};
use crate::{Config, Plan, Refusal, StdMemory};

/// One CPU of a plan: its processes (id, buffer) and its slots (length,
/// process, task).
#[derive(Clone, Debug)]
pub(super) struct Cpu {
    pub(super) cpu: u32,
    pub(super) processes: Vec<(u32, u64)>,
    pub(super) slots: Vec<(u64, u32, u32)>,
}

impl Cpu {
    /// A CPU with slots (process, length), the tasks of each process numbered
    /// from 0.
    pub(super) fn numbered(cpu: u32, slots: &[(u32, u64)]) -> Cpu {
        let mut tasks = BTreeMap::new();
        let mut numbered = Vec::new();
        for &(process, length_insns) in slots {
            if process == IDLE {
                numbered.push((length_insns, IDLE, NO_TASK));
                continue;
            }
            let next = tasks.entry(process).or_insert(0);
            numbered.push((length_insns, process, *next));
            *next += 1;
        }
        Cpu {
            cpu,
            processes: tasks.into_keys().map(|id| (id, 0)).collect(),
            slots: numbered,
        }
    }
}

pub(super) fn write(plan_id: u64, config: Option<&Config>, cpus: &[Cpu]) -> Vec<u8> {
    let total_bytes = encode::total_bytes(
        config.is_some(),
        cpus.len() as u64,
        cpus.iter().map(|cpu| cpu.processes.len() as u64).sum(),
        cpus.iter().map(|cpu| cpu.slots.len() as u64).sum(),
    );
    let nr_cpus = cpus.len() as u32;
    let mut bytes = Vec::new();
    bytes.extend(encode::header(
        plan_id,
        total_bytes,
        nr_cpus,
        config.is_some(),
        0,
        0,
    ));
    if let Some(config) = config {
        bytes.extend(encode::config(config));
    }
    for cpu in cpus {
        let nr_processes = cpu.processes.len() as u32;
        bytes.extend(encode::cpu(cpu.cpu, nr_processes, cpu.slots.len() as u64));
        for &(id, buffer_insns) in &cpu.processes {
            bytes.extend(encode::process(id, buffer_insns));
        }
        for &(length_insns, process, task) in &cpu.slots {
            bytes.extend(encode::slot(length_insns, process, task));
        }
    }
    bytes
}

/// Reads a whole plan as the kernel does: the message, then every section.
pub(super) fn read(bytes: &[u8]) -> Result<Vec<(u32, Plan<StdMemory>)>, Refusal> {
    let message = Message::parse::<StdMemory>(bytes)?;
    message
        .sections()
        .map(|section| Ok((section.cpu(), Plan::build(&section)?)))
        .collect()
}

/// The plan of one CPU with these slots (process, length).
pub(super) fn plan(slots: &[(u32, u64)]) -> Plan<StdMemory> {
    plan_of(Cpu::numbered(0, slots))
}

pub(super) fn plan_of(cpu: Cpu) -> Plan<StdMemory> {
    read(&write(1, None, &[cpu])).unwrap().remove(0).1
}
