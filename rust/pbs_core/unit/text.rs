// SPDX-License-Identifier: GPL-2.0

//! Plans for tests, all of them written and read in the wire format.

use std::collections::BTreeMap;
use std::vec::Vec;

use crate::wire::encode;
use crate::wire::{Message, IDLE, NO_ARRIVAL, NO_DEADLINE, NO_TASK};
use crate::{join, Config, Plan, Refusal, StdMemory};

/// One CPU of a plan: its processes (id, buffer) and its slots (length,
/// process, task).
#[derive(Clone, Debug)]
pub(super) struct Cpu {
    pub(super) cpu: u32,
    pub(super) processes: Vec<(u32, u64)>,
    pub(super) slots: Vec<(u64, u32, u32)>,
    /// Process, task, the process that it waits for, its task.
    pub(super) edges: Vec<(u32, u32, u32, u32)>,
    /// Deadlines of some of the processes (id, nanoseconds).
    pub(super) deadlines: Vec<(u32, u64)>,
    /// Planned arrivals of the edges, of all or of none.
    pub(super) arrivals_ns: Vec<u64>,
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
            edges: Vec::new(),
            deadlines: Vec::new(),
            arrivals_ns: Vec::new(),
        }
    }
}

/// Edges between tasks of these slots (process, length), whose tasks are numbered from 0.  Of each
/// pair of slots the later one waits: therefore there is no circle.
pub(super) fn edges(slots: &[(u32, u64)], pairs: &[(usize, usize)]) -> Vec<(u32, u32, u32, u32)> {
    let numbered = Cpu::numbered(0, slots).slots;
    let mut edges = Vec::new();
    for &(one, other) in pairs {
        let (one, other) = (one % slots.len(), other % slots.len());
        let (_, after_process, after_task) = numbered[one.min(other)];
        let (_, process, task) = numbered[one.max(other)];
        if process != after_process && ![process, after_process].contains(&IDLE) {
            edges.push((process, task, after_process, after_task));
        }
    }
    edges.sort_unstable();
    edges.dedup();
    edges
}

/// Planned arrivals of `count` edges, derived from `dice`: none at all, or of most of them.
pub(super) fn arrivals_ns(count: usize, dice: u64) -> Vec<u64> {
    if dice.is_multiple_of(3) {
        return Vec::new();
    }
    let edges = 0..count as u64;
    let arrivals_ns = edges.map(|edge| match (edge + dice) % 4 {
        0 => NO_ARRIVAL,
        1 => 0,
        kind => (edge * 7 + dice) % 50 * 100 * kind,
    });
    arrivals_ns.collect()
}

pub(super) fn write(plan_id: u64, config: Option<&Config>, cpus: &[Cpu]) -> Vec<u8> {
    let count = |count: fn(&Cpu) -> usize| cpus.iter().map(|cpu| count(cpu) as u64).sum();
    let with_arrivals = cpus.iter().any(|cpu| !cpu.arrivals_ns.is_empty());
    let header = encode::Header {
        plan_id,
        total_bytes: encode::total_bytes(
            config.is_some(),
            cpus.len() as u64,
            count(|cpu| cpu.processes.len()),
            count(|cpu| cpu.slots.len()),
            count(|cpu| cpu.edges.len()),
        ) + if with_arrivals {
            encode::arrivals_bytes(count(|cpu| cpu.edges.len()))
        } else {
            0
        },
        nr_cpus: cpus.len() as u32,
        with_config: config.is_some(),
        with_arrivals,
        ..encode::Header::default()
    };
    let mut bytes = Vec::new();
    bytes.extend(header.bytes());
    if let Some(config) = config {
        bytes.extend(encode::config(config));
    }
    for cpu in cpus {
        let record = encode::Cpu {
            cpu: cpu.cpu,
            nr_processes: cpu.processes.len() as u32,
            nr_slots: cpu.slots.len() as u64,
            nr_edges: cpu.edges.len() as u64,
            ..encode::Cpu::default()
        };
        bytes.extend(record.bytes());
        for &(id, buffer_insns) in &cpu.processes {
            let deadline = cpu.deadlines.iter().find(|deadline| deadline.0 == id);
            let record = encode::Process {
                id,
                buffer_insns,
                deadline_ns: deadline.map_or(NO_DEADLINE, |deadline| deadline.1),
                ..encode::Process::default()
            };
            bytes.extend(record.bytes());
        }
        for &(length_insns, process, task) in &cpu.slots {
            bytes.extend(encode::slot(length_insns, process, task));
        }
        for &(process, task, after_process, after_task) in &cpu.edges {
            bytes.extend(encode::edge(process, task, after_process, after_task));
        }
        if with_arrivals {
            for edge in 0..cpu.edges.len() {
                let arrival_ns = cpu.arrivals_ns.get(edge).copied();
                bytes.extend(arrival_ns.unwrap_or(NO_ARRIVAL).to_ne_bytes());
            }
        }
    }
    bytes
}

/// Reads a whole plan as the kernel does: the message, then every section.
pub(super) fn read(bytes: &[u8]) -> Result<Vec<(u32, Plan<StdMemory>)>, Refusal> {
    let message = Message::parse::<StdMemory>(bytes)?;
    let plans = message.sections().map(|section| {
        let plan = Plan::build(&section)?;
        Ok((section, plan))
    });
    let mut plans = plans.collect::<Result<Vec<_>, Refusal>>()?;
    join(&mut plans)?;
    let cpus = plans.into_iter();
    Ok(cpus.map(|(section, plan)| (section.cpu(), plan)).collect())
}

/// The plan of one CPU with these slots (process, length).
pub(super) fn plan(slots: &[(u32, u64)]) -> Plan<StdMemory> {
    plan_of(Cpu::numbered(0, slots))
}

/// CPU 0 with these slots (process, length) and edges.
pub(super) fn net(slots: &[(u32, u64)], edges: &[(u32, u32, u32, u32)]) -> Cpu {
    Cpu {
        edges: edges.to_vec(),
        ..Cpu::numbered(0, slots)
    }
}

pub(super) fn plan_of(cpu: Cpu) -> Plan<StdMemory> {
    read(&write(1, None, &[cpu])).unwrap().remove(0).1
}
