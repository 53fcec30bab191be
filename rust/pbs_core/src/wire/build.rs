// SPDX-License-Identifier: GPL-2.0

//! Conversion of a section of a written plan to a [`Plan`], with all checks of the slots, and back.

use core::iter;

use super::super::config::Config;
use super::super::memory::{pause, Memory};
use super::super::plan::{Edge, Plan, Predecessor, Process, Slot, SUM_EVERY};
use super::super::refusal::{Fault, Refusal};
use super::super::sort::sort;
use super::encode;
use super::format::{
    ARRIVAL_BYTES, EDGE_BYTES, IDLE, MAX_PLAN_INSNS, MAX_SLOT_INSNS, NO_ARRIVAL, NO_TASK,
};
use super::message::Section;

impl<M: Memory> Plan<M> {
    /// Builds the plan of one CPU; refuses slots that are wrong.
    ///
    /// Takes time in proportion to the number of slots: up to millions.
    pub fn build(section: &Section<'_>) -> Result<Plan<M>, Refusal> {
        let mut processes = read_processes::<M>(section)?;
        let (slots, owned) = read_slots::<M>(section, &mut processes)?;
        let mut first = 0;
        for (process, index) in processes.iter_mut().zip(0..) {
            if process.count == 0 {
                return Err(Fault::NoSlotOfProcess {
                    cpu: section.cpu(),
                    process: process.id,
                }
                .at(section.process(index)?.offset));
            }
            process.first = first;
            first += process.count;
        }
        let mut order = M::alloc::<u32>(owned, 0)?;
        for (slot, number) in slots.iter().zip(0..) {
            pause::<M>(number)?;
            let Some(process) = processes.get(slot.process as usize) else {
                continue;
            };
            if let Some(place) = order.get_mut((process.first + slot.position) as usize) {
                *place = number;
            }
        }
        let mut sums_insns = M::alloc::<u64>(owned / SUM_EVERY + 1, 0)?;
        let mut sum_insns = 0;
        let pieces = order.chunks(SUM_EVERY).map(Some).chain(iter::repeat(None));
        for ((place, numbers), number) in sums_insns.iter_mut().zip(pieces).zip(0..) {
            pause::<M>(number)?;
            *place = sum_insns;
            for &number in numbers.unwrap_or(&[]) {
                // The sum of all slots is at most 2^62.
                sum_insns += slots.get(number as usize).map_or(0, |s| s.length_insns);
            }
        }
        let mut plan = Plan {
            processes,
            slots,
            order,
            sums_insns,
            edges: M::alloc(0, Edge::NONE)?,
            arrivals_ns: M::alloc(0, NO_ARRIVAL)?,
            predecessors: M::alloc(0, NO_PREDECESSOR)?,
            rate_insns_per_ms: section.rate_insns_per_ms(),
            memory_bytes: section.memory_bytes()?,
        };
        if section.nr_edges() != 0 {
            plan.read_edges(section)?;
        }
        Ok(plan)
    }

    /// Reads the edges.  Whether the awaited processes have the awaited tasks is checked when the
    /// plans of all CPUs are [joined](super::super::join).
    fn read_edges(&mut self, section: &Section<'_>) -> Result<(), Refusal> {
        let cpu = section.cpu();
        let nr_edges = section.nr_edges();
        self.predecessors = read_predecessors::<M>(section)?;
        for predecessor in self.predecessors.iter_mut() {
            let found = self
                .processes
                .binary_search_by_key(&predecessor.id, |process| process.id);
            predecessor.process = found.map_or(Predecessor::NONE, |index| index as u32);
        }
        for (predecessor, index) in self.predecessors.iter().zip(0..) {
            if let Some(process) = self.processes.get_mut(predecessor.process as usize) {
                process.predecessor = index;
            }
        }
        let mut edges = M::alloc(nr_edges as usize, Edge::NONE)?;
        // The process whose edges are being read.
        let mut process = 0;
        for (place, edge) in edges.iter_mut().zip(0..) {
            pause::<M>(edge)?;
            let record = section.edge(edge)?;
            let [id, task, after_process, after_task] = [0, 4, 8, 12].map(|at| record.u32(at));
            if id == after_process {
                return Err(Fault::EdgeSelf {
                    cpu,
                    edge,
                    process: id,
                }
                .at(record.offset));
            }
            let position = self.find(id).and_then(|found| {
                while process < found {
                    process += 1;
                    self.processes.get_mut(process as usize)?.first_edge = edge;
                }
                let position = self.position_of(process, task);
                (self.task(process, position) == Some(task)).then_some(position)
            });
            let Some(position) = position else {
                return Err(Fault::EdgeTask {
                    cpu,
                    edge,
                    process: id,
                    task,
                }
                .at(record.offset));
            };
            let found = self
                .predecessors
                .binary_search_by_key(&after_process, |predecessor| predecessor.id);
            *place = Edge {
                position,
                predecessor: found.map_or(Predecessor::NONE, |index| index as u32),
                task: after_task,
            };
        }
        let rest = self.processes.iter_mut().skip(process as usize + 1);
        rest.for_each(|process| process.first_edge = nr_edges);
        self.edges = edges;
        if section.has_arrivals() {
            let mut arrivals_ns = M::alloc(nr_edges as usize, NO_ARRIVAL)?;
            for (arrival_ns, edge) in arrivals_ns.iter_mut().zip(0..) {
                pause::<M>(edge)?;
                *arrival_ns = section.arrival_ns(edge)?;
            }
            self.arrivals_ns = arrivals_ns;
        }
        Ok(())
    }

    /// The size of the output of [`Plan::encode`].
    pub fn encoded_bytes(&self) -> u64 {
        let processes = self.processes.len() as u64;
        let (slots, edges) = (self.slots.len() as u64, self.edges.len() as u64);
        encode::total_bytes(true, 1, processes, slots, edges)
            + encode::arrivals_bytes(self.arrivals_ns.len() as u64)
    }

    /// Writes the plan as a plan of one CPU with its configuration, piece by
    /// piece, until `sink` fails.
    pub fn encode<E>(
        &self,
        cpu: u32,
        config: &Config,
        plan_id: u64,
        mut sink: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let header = encode::Header {
            plan_id,
            total_bytes: self.encoded_bytes(),
            nr_cpus: 1,
            with_config: true,
            with_arrivals: self.has_arrivals(),
            ..encode::Header::default()
        };
        sink(&header.bytes())?;
        sink(&encode::config(config))?;
        sink(&self.cpu_record(cpu).bytes())?;
        for process in self.processes.iter() {
            sink(&process.record().bytes())?;
        }
        for slot in self.slots.iter() {
            let process = self
                .process(slot.process)
                .map_or(IDLE, |process| process.id);
            sink(&encode::slot(slot.length_insns, process, slot.task))?;
        }
        for edge in 0..self.edges.len() as u32 {
            sink(&self.edge_record(edge))?;
        }
        for edge in 0..self.arrivals_ns.len() as u32 {
            sink(&self.arrival_record(edge))?;
        }
        Ok(())
    }

    /// The record of the CPU, with that number.
    pub fn cpu_record(&self, cpu: u32) -> encode::Cpu {
        encode::Cpu {
            cpu,
            nr_processes: self.processes.len() as u32,
            nr_slots: self.slots.len() as u64,
            nr_edges: self.edges.len() as u64,
            rate_insns_per_ms: self.rate_insns_per_ms,
        }
    }

    /// The record of the edge with that number.
    pub fn edge_record(&self, edge: u32) -> [u8; EDGE_BYTES] {
        let up_to = |process: &Process| process.first_edge <= edge;
        let process = self.processes.partition_point(up_to).saturating_sub(1) as u32;
        let edge = self.edges.get(edge as usize).unwrap_or(&Edge::NONE);
        let id = self.process(process).map_or(IDLE, |process| process.id);
        let task = self.task(process, edge.position).unwrap_or(NO_TASK);
        let after = self.predecessors.get(edge.predecessor as usize);
        encode::edge(id, task, after.map_or(IDLE, |after| after.id), edge.task)
    }

    /// The record of the planned arrival of the edge with that number.
    pub fn arrival_record(&self, edge: u32) -> [u8; ARRIVAL_BYTES] {
        let arrival_ns = self.arrivals_ns.get(edge as usize).copied();
        arrival_ns.unwrap_or(NO_ARRIVAL).to_ne_bytes()
    }
}

impl Process {
    /// The record of the process.
    pub fn record(&self) -> encode::Process {
        encode::Process {
            id: self.id,
            buffer_insns: self.buffer_insns,
            memory_bytes: self.memory_bytes,
            rate_insns_per_ms: self.rate_insns_per_ms.into(),
            deadline_ns: self.deadline_ns,
        }
    }
}

const NO_PREDECESSOR: Predecessor = Predecessor {
    id: IDLE,
    process: Predecessor::NONE,
};

/// The processes that edges wait for, ascending.
fn read_predecessors<M: Memory>(section: &Section<'_>) -> Result<M::Slice<Predecessor>, Refusal> {
    let mut ids = M::alloc(section.nr_edges() as usize, IDLE)?;
    for (id, edge) in ids.iter_mut().zip(0..) {
        pause::<M>(edge)?;
        *id = section.edge(edge)?.u32(8);
    }
    sort::<M, _>(&mut ids, u32::cmp);
    let mut count = 0;
    for place in 0..ids.len() {
        let before = place.checked_sub(1).and_then(|before| ids.get(before));
        if ids.get(place) != before {
            count += 1;
        }
    }
    let mut predecessors = M::alloc(count, NO_PREDECESSOR)?;
    let mut before = None;
    let distinct = ids.iter().filter(|&&id| before.replace(id) != Some(id));
    for (predecessor, &id) in predecessors.iter_mut().zip(distinct) {
        predecessor.id = id;
    }
    Ok(predecessors)
}

fn read_processes<M: Memory>(section: &Section<'_>) -> Result<M::Slice<Process>, Refusal> {
    let mut processes = M::alloc(section.nr_processes() as usize, Process::NONE)?;
    for (process, index) in processes.iter_mut().zip(0..) {
        let record = section.process(index)?;
        process.id = record.u32(0);
        process.buffer_insns = record.u64(8);
        process.memory_bytes = record.u64(16);
        // The section refuses greater ones.
        process.rate_insns_per_ms = record.u64(24) as u32;
        process.deadline_ns = section.deadline_ns(&record);
    }
    Ok(processes)
}

/// Reads the slots and counts those of each process.  Returns them and the number of those that are
/// not idle.
fn read_slots<M: Memory>(
    section: &Section<'_>,
    processes: &mut [Process],
) -> Result<(M::Slice<Slot>, usize), Refusal> {
    let cpu = section.cpu();
    let mut slots = M::alloc(section.nr_slots() as usize, Slot::NONE)?;
    // The task that each process has had last.
    let mut last_tasks = M::alloc(processes.len(), NO_TASK)?;
    let mut owned = 0;
    let mut sum_insns = 0;
    for ((place, record), number) in slots.iter_mut().zip(section.slots()).zip(0..) {
        pause::<M>(number)?;
        let slot = u64::from(number);
        let length_insns = record.u64(0);
        let process = record.u32(8);
        let task = record.u32(12);
        if length_insns == 0 || length_insns > MAX_SLOT_INSNS {
            return Err(Fault::SlotLength {
                cpu,
                slot,
                found_insns: length_insns,
            }
            .at(record.offset));
        }
        sum_insns += length_insns;
        if sum_insns > MAX_PLAN_INSNS {
            return Err(Fault::PlanLength { cpu, slot }.at(record.offset));
        }
        if process == IDLE {
            if task != NO_TASK {
                return Err(Fault::IdleTask { cpu, slot, task }.at(record.offset + 12));
            }
            place.length_insns = length_insns;
            continue;
        }
        let index = processes.binary_search_by_key(&process, |process| process.id);
        let Ok(index) = index else {
            return Err(Fault::UnknownProcess { cpu, slot, process }.at(record.offset + 8));
        };
        if task == NO_TASK {
            return Err(Fault::NoTask { cpu, slot, process }.at(record.offset + 12));
        }
        let (Some(owner), Some(last_task)) = (processes.get_mut(index), last_tasks.get_mut(index))
        else {
            continue;
        };
        let before = *last_task;
        if before != NO_TASK && task <= before {
            let fault = if task == before {
                Fault::DuplicateTask {
                    cpu,
                    slot,
                    process,
                    task,
                }
            } else {
                Fault::TaskOrder {
                    cpu,
                    slot,
                    process,
                    task,
                    before,
                }
            };
            return Err(fault.at(record.offset + 12));
        }
        *last_task = task;
        *place = Slot {
            length_insns,
            process: index as u32,
            task,
            position: owner.count,
        };
        owner.count += 1;
        owner.end_insns = sum_insns;
        owned += 1;
    }
    Ok((slots, owned))
}
