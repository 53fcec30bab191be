// SPDX-License-Identifier: GPL-2.0
//! To the wire format and back.

use std::mem::offset_of;

use pbs_core::wire::{Message, ARRIVAL_BYTES, PROCESS_BYTES_2};
use pbs_core::{Rate, StdMemory};
use pbs_text::{Line, Problem};
use pbs_uapi::record::{
    self, bytes_of, from_bytes, PlanCpu, PlanEdge, PlanHeader, PlanProcess, PlanSlot,
};
use pbs_uapi::{IDLE, NO_ARRIVAL, NO_DEADLINE, NO_TASK, PLAN_ARRIVALS, PLAN_MAGIC, VERSION};

use crate::{After, Cpu, Plan, Process, Slot, Task};

/// A plan in the wire format, with the way back to the lines it came from.
#[derive(Clone, Debug)]
pub struct Encoded {
    /// Bytes to write to the device.
    pub bytes: Vec<u8>,
    /// Offsets of the records and the lines that they came from; ascending.
    places: Vec<(usize, Line)>,
}

impl Encoded {
    /// The line that the byte at `offset_bytes` comes from.
    pub fn line_at(&self, offset_bytes: u64) -> Line {
        let after = self.places.partition_point(|&(start, _)| start as u64 <= offset_bytes);
        self.places[..after].last().and_then(|&(_, line)| line)
    }

    fn push<T: record::Record>(&mut self, record: &T, line: Line) {
        self.places.push((self.bytes.len(), line));
        self.bytes.extend_from_slice(bytes_of(record));
    }
}

/// An event of the policy core as the record that the kernel makes of it, for
/// those who run the core themselves. What only a kernel knows is 0: the number,
/// the plan, the CPU and the thread.
pub fn event_record(event: &pbs_core::Event) -> record::Event {
    record::Event {
        time_ns: event.time_ns,
        kind: event.kind as u16,
        reason: event.reason,
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
        node_lateness_insns: event.node_lateness_insns,
        stress: event.stress,
        level_percent: event.level_percent,
        memory_bytes: event.memory_bytes,
        ..record::Event::default()
    }
}

/// The plan as it is written to the device. It is not checked: whatever is
/// wrong with the plan is wrong with the bytes.
pub fn encode(plan: &Plan) -> Encoded {
    let mut encoded = Encoded { bytes: Vec::new(), places: Vec::new() };
    let has_messages = plan.has_messages();
    let mut header = PlanHeader {
        magic: PLAN_MAGIC,
        version: VERSION,
        header_bytes: size_of::<PlanHeader>() as u16,
        total_bytes: 0,
        plan_id: plan.plan_id,
        dealt_seq: plan.dealt_seq,
        lease_ns: plan.lease_ns,
        memory_bytes: plan.memory_bytes,
        nr_cpus: plan.cpus.len() as u32,
        flags: if has_messages { PLAN_ARRIVALS } else { 0 },
        config_bytes: if plan.config.is_some() { size_of::<record::Config>() as u32 } else { 0 },
    };
    encoded.push(&header, None);
    // Of the header only these are things of the file that can be refused.
    let dealt_seq = offset_of!(PlanHeader, dealt_seq);
    let lease_ns = offset_of!(PlanHeader, lease_ns);
    encoded.places.push((dealt_seq, plan.dealt_seq_line));
    encoded.places.push((lease_ns, plan.lease_ns_line));
    encoded.places.push((lease_ns + size_of::<u64>(), None));
    if let Some(config) = &plan.config {
        let at = encoded.bytes.len();
        encoded.bytes.extend_from_slice(&pbs_core::wire::encode::config(config));
        // Each number has a line of its own.
        for (index, &line) in plan.config_lines.iter().enumerate() {
            encoded.places.push((at + index * size_of::<u64>(), line));
        }
    }
    let mut cpus: Vec<&Cpu> = plan.cpus.iter().collect();
    cpus.sort_by_key(|cpu| cpu.cpu);
    for cpu in cpus {
        encode_cpu(plan, cpu, has_messages, &mut encoded);
    }
    header.total_bytes = encoded.bytes.len() as u64;
    encoded.bytes[..size_of::<PlanHeader>()].copy_from_slice(bytes_of(&header));
    encoded
}

fn encode_cpu(plan: &Plan, cpu: &Cpu, has_messages: bool, encoded: &mut Encoded) {
    let processes = plan.processes_on(cpu);
    let mut edges = Vec::new();
    for process in processes.iter().map(|&index| &plan.processes[index]) {
        for task in &process.tasks {
            edges.extend(task.after.iter().map(|after| (edge(process, task, after), after)));
        }
    }
    edges.sort_by_key(|(edge, _)| (edge.process, edge.task, edge.after_process, edge.after_task));
    encoded.push(
        &PlanCpu {
            cpu: cpu.cpu,
            nr_processes: processes.len() as u32,
            nr_slots: cpu.slots.len() as u64,
            nr_edges: edges.len() as u64,
            rate_insns_per_ms: cpu.rate_insns_per_ms,
        },
        cpu.line,
    );
    for process in processes.into_iter().map(|index| &plan.processes[index]) {
        encoded.push(
            &PlanProcess {
                id: process.id,
                buffer_insns: process.buffer_insns,
                memory_bytes: process.memory_bytes,
                rate_insns_per_ms: process.rate_insns_per_ms,
                deadline_ns: process.deadline_ns.unwrap_or(NO_DEADLINE),
                ..PlanProcess::default()
            },
            process.line,
        );
    }
    for (number, slot) in plan.place(cpu).enumerate() {
        let line = cpu.slot_lines.get(number).copied().flatten();
        let (process, task) = match slot.task {
            Some((process, task)) => {
                let process = &plan.processes[process];
                let task = process.tasks.get(task);
                (process.id, task.map_or(NO_TASK, |task| task.id))
            }
            None => (IDLE, NO_TASK),
        };
        encoded.push(&PlanSlot { length_insns: slot.length_insns, process, task }, line);
    }
    for (edge, after) in &edges {
        encoded.push(edge, after.line);
    }
    if has_messages {
        for (_, after) in edges {
            encoded.places.push((encoded.bytes.len(), after.line));
            let arrival_ns = after.arrival_ns.unwrap_or(NO_ARRIVAL);
            encoded.bytes.extend_from_slice(&arrival_ns.to_ne_bytes());
        }
    }
}

fn edge(process: &Process, task: &Task, after: &After) -> PlanEdge {
    PlanEdge {
        process: process.id,
        task: task.id,
        after_process: after.process,
        after_task: after.task,
    }
}

/// Validates the plan as the kernel would, with the kernel's code.
pub fn validate(encoded: &Encoded) -> Result<(), Problem> {
    match validate_bytes(&encoded.bytes) {
        Ok(_) => Ok(()),
        Err(refusal) => {
            let line = encoded.line_at(refusal.offset_bytes);
            Err(Problem::at(line, refusal.to_string()))
        }
    }
}

/// Whether each CPU's part can be what the kernel has; the edges of one that was
/// read back alone may lead to others.
fn parse_bytes(bytes: &[u8]) -> Result<Message<'_>, pbs_core::Refusal> {
    let message = Message::parse::<StdMemory>(bytes)?;
    for section in message.sections() {
        pbs_core::Plan::<StdMemory>::build(&section)?;
    }
    Ok(message)
}

fn validate_bytes(bytes: &[u8]) -> Result<Message<'_>, pbs_core::Refusal> {
    let message = Message::parse::<StdMemory>(bytes)?;
    let plans = message.sections().map(|section| {
        let plan = pbs_core::Plan::<StdMemory>::build(&section)?;
        Ok((section, plan))
    });
    let mut plans = plans.collect::<Result<Vec<_>, pbs_core::Refusal>>()?;
    pbs_core::join(&mut plans)?;
    Ok(message)
}

/// A plan from the wire format. Names, commands and lines are not in it; nor, in
/// that of one CPU, the processes of others that it waits for. The configuration
/// of version 1, which is in instructions, is taken for that of a CPU that
/// retires one in a nanosecond.
pub fn decode(bytes: &[u8]) -> Result<Plan, Problem> {
    let message = parse_bytes(bytes).map_err(|refusal| Problem::at(None, refusal.to_string()))?;
    let mut decoder = Decoder { rest: bytes, version: message.version(), has_arrivals: false };
    let plan = decoder.plan().unwrap_or_default();
    Ok(Plan { config: message.config(Rate::new(1_000_000)), ..plan })
}

/// Takes valid bytes apart; so nothing is ever missing.
struct Decoder<'a> {
    rest: &'a [u8],
    version: u16,
    /// Whether the edges have planned arrivals.
    has_arrivals: bool,
}

impl Decoder<'_> {
    fn take<T: record::Record>(&mut self) -> Option<T> {
        let record = from_bytes(self.rest)?;
        self.rest = &self.rest[size_of::<T>()..];
        Some(record)
    }

    /// The next record of a process; before version 3 it ends before the deadline.
    fn take_process(&mut self) -> Option<PlanProcess> {
        if self.version == VERSION {
            return self.take();
        }
        let (old, rest) = self.rest.split_at_checked(PROCESS_BYTES_2)?;
        self.rest = rest;
        let mut record =
            bytes_of(&PlanProcess { deadline_ns: NO_DEADLINE, ..PlanProcess::default() }).to_vec();
        record[..old.len()].copy_from_slice(old);
        from_bytes(&record)
    }

    fn plan(&mut self) -> Option<Plan> {
        let header: PlanHeader = self.take()?;
        self.has_arrivals = header.flags & PLAN_ARRIVALS != 0;
        let mut plan = Plan {
            plan_id: header.plan_id,
            dealt_seq: header.dealt_seq,
            lease_ns: header.lease_ns,
            // Of version 1 a reserved field, which is 0.
            memory_bytes: header.memory_bytes,
            ..Plan::default()
        };
        if header.config_bytes != 0 {
            self.rest = self.rest.get(header.config_bytes as usize..)?;
        }
        for _ in 0..header.nr_cpus {
            self.cpu(&mut plan)?;
        }
        Some(plan)
    }

    fn cpu(&mut self, plan: &mut Plan) -> Option<()> {
        let section: PlanCpu = self.take()?;
        let first = plan.processes.len();
        for _ in 0..section.nr_processes {
            let process = self.take_process()?;
            plan.processes.push(Process {
                id: process.id,
                buffer_insns: process.buffer_insns,
                memory_bytes: process.memory_bytes,
                rate_insns_per_ms: process.rate_insns_per_ms,
                deadline_ns: (process.deadline_ns != NO_DEADLINE).then_some(process.deadline_ns),
                ..Process::default()
            });
        }
        let mut cpu = Cpu {
            cpu: section.cpu,
            rate_insns_per_ms: section.rate_insns_per_ms,
            ..Cpu::default()
        };
        for _ in 0..section.nr_slots {
            let slot: PlanSlot = self.take()?;
            if slot.process == IDLE {
                cpu.slots.push(Slot::Idle { length_insns: slot.length_insns, real_insns: None });
                continue;
            }
            // The ids of a section ascend.
            let processes = &plan.processes[first..];
            let found = processes.binary_search_by_key(&slot.process, |process| process.id);
            let process = first + found.ok()?;
            plan.processes[process].tasks.push(Task {
                id: slot.task,
                planned_insns: slot.length_insns,
                ..Task::default()
            });
            cpu.slots.push(Slot::Process { process });
        }
        let (_, after_edges) =
            self.rest.split_at_checked(section.nr_edges as usize * size_of::<PlanEdge>())?;
        let mut arrivals = after_edges.chunks_exact(ARRIVAL_BYTES);
        for _ in 0..section.nr_edges {
            let edge: PlanEdge = self.take()?;
            let arrival = arrivals.next().filter(|_| self.has_arrivals);
            let arrival_ns =
                arrival.and_then(|bytes| Some(u64::from_ne_bytes(bytes.try_into().ok()?)));
            let processes = &mut plan.processes[first..];
            let found = processes.binary_search_by_key(&edge.process, |process| process.id);
            let process = processes.get_mut(found.ok()?)?;
            let position = process.position_of(edge.task)?;
            process.tasks[position].after.push(After {
                process: edge.after_process,
                task: edge.after_task,
                arrival_ns: arrival_ns.filter(|&arrival_ns| arrival_ns != NO_ARRIVAL),
                line: None,
            });
        }
        if self.has_arrivals {
            self.rest = self.rest.get(section.nr_edges as usize * ARRIVAL_BYTES..)?;
        }
        plan.cpus.push(cpu);
        Some(())
    }
}
