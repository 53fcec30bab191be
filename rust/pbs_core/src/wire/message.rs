// SPDX-License-Identifier: GPL-2.0

//! A written plan: its header, its configuration, and the bounds of its
//! sections, one for each CPU.

use super::super::config::{Config, Dispatch};
use super::super::memory::{Memory, PAUSE_EVERY};
use super::super::rate::Rate;
use super::super::refusal::{Fault, Part, Refusal};
use super::super::sort::sort;
use super::format::{
    ARRIVAL_BYTES, CONFIG_BYTES, CPU_BYTES, EDGE_BYTES, HEADER_BYTES, IDLE, LEASE_NS,
    LEAST_CONFIG_BYTES, MAGIC, MAX_BUFFER_INSNS, MAX_EDGES, MAX_PROCESSES, MAX_SLOTS, NO_DEADLINE,
    PLAN_ARRIVALS, PROCESS_BYTES, PROCESS_BYTES_2, SLOT_BYTES, VERSION, VERSION_1, VERSION_2,
};
use super::read::Record;
use super::version_1;

/// A written plan whose header, configuration, CPU records and process records
/// are right.
///
/// The slots of a section are checked when a [`Plan`](super::super::Plan) is
/// built of it.  Before anything is installed, build the plans of all sections.
#[derive(Clone, Copy)]
pub struct Message<'a> {
    bytes: &'a [u8],
    version: u16,
    plan_id: u64,
    dealt_seq: u64,
    lease_ns: u64,
    memory_bytes: u64,
    /// Length of its configuration; 0: it has none.
    config_bytes: usize,
    nr_cpus: u32,
}

impl<'a> Message<'a> {
    /// Reads and checks `bytes`, one whole plan.
    ///
    /// `M` is needed only during the call, to check whether a process is on two CPUs.
    pub fn parse<M: Memory>(bytes: &'a [u8]) -> Result<Message<'a>, Refusal> {
        let message = Message::header(bytes)?;
        message.check_sections::<M>()?;
        message.check_owners::<M>()?;
        Ok(message)
    }

    fn header(bytes: &'a [u8]) -> Result<Message<'a>, Refusal> {
        let header = Record::new(bytes, 0, HEADER_BYTES, Part::Header)?;
        let magic = header.u32(0);
        if magic != MAGIC {
            return Err(Fault::Magic { found: magic }.at(0));
        }
        let version = header.u16(4);
        if ![VERSION_1, VERSION_2, VERSION].contains(&version) {
            return Err(Fault::Version { found: version }.at(4));
        }
        let header_bytes = header.u16(6);
        if usize::from(header_bytes) != HEADER_BYTES {
            return Err(Fault::HeaderBytes {
                found: header_bytes,
            }
            .at(6));
        }
        let total_bytes = header.u64(8);
        if total_bytes != bytes.len() as u64 {
            return Err(Fault::TotalBytes {
                said_bytes: total_bytes,
                have_bytes: bytes.len() as u64,
            }
            .at(8));
        }
        let nr_cpus = header.u32(24);
        if nr_cpus == 0 {
            return Err(Fault::NoCpus.at(24));
        }
        let config_bytes = header.u32(28);
        let known = if version == VERSION { PLAN_ARRIVALS } else { 0 };
        header.no_flags(header.u64(32) & !known, 32)?;
        let lease_ns = header.u64(48);
        if lease_ns != 0 && !LEASE_NS.contains(&lease_ns) {
            return Err(Fault::Lease { found: lease_ns }.at(48));
        }
        let memory_bytes = if version == VERSION_1 {
            header.reserved(56)?;
            0
        } else {
            header.u64(56)
        };
        match config_bytes as usize {
            0 => {}
            length @ LEAST_CONFIG_BYTES..=CONFIG_BYTES if length % 8 == 0 => {
                check_config(bytes, version, length)?;
            }
            _ => {
                return Err(Fault::ConfigBytes {
                    found: config_bytes,
                }
                .at(28))
            }
        }
        Ok(Message {
            bytes,
            version,
            plan_id: header.u64(16),
            dealt_seq: header.u64(40),
            lease_ns,
            memory_bytes,
            config_bytes: config_bytes as usize,
            nr_cpus,
        })
    }

    /// Offset of the first section.
    fn first_section(&self) -> usize {
        HEADER_BYTES + self.config_bytes
    }

    fn check_sections<M: Memory>(&self) -> Result<(), Refusal> {
        let mut offset = self.first_section();
        let mut before = None;
        for _ in 0..self.nr_cpus {
            M::pause()?;
            let section = Section::read(self.bytes, self.version, offset)?;
            if let Some(before) = before.filter(|&before| section.cpu <= before) {
                let cpu = section.cpu;
                return Err(Fault::CpuOrder { cpu, before }.at(offset));
            }
            section.check_processes()?;
            section.check_edges::<M>()?;
            before = Some(section.cpu);
            offset = section.end();
        }
        match self.bytes.len() - offset {
            0 => Ok(()),
            extra => Err(Fault::Trailing {
                extra_bytes: extra as u64,
            }
            .at(offset)),
        }
    }

    /// Refuses a process that two sections have.
    fn check_owners<M: Memory>(&self) -> Result<(), Refusal> {
        if self.nr_cpus < 2 {
            return Ok(());
        }
        let total = self.sections().map(|s| s.nr_processes as usize).sum();
        // Sorted by process, then by section.
        let mut owners = M::alloc::<(u32, u32)>(total, (0, 0))?;
        let processes = self
            .sections()
            .zip(0..)
            .flat_map(|(s, number)| (0..s.nr_processes).map(move |i| (s.process_id(i), number)));
        for (owner, process) in owners.iter_mut().zip(processes) {
            *owner = process;
        }
        sort::<M, _>(&mut owners, Ord::cmp);
        for pair in owners.windows(2) {
            let &[(process, first), (other, second)] = pair else {
                continue;
            };
            if process != other {
                continue;
            }
            let cpu_of = |number: u32| self.sections().nth(number as usize);
            if let (Some(first), Some(second)) = (cpu_of(first), cpu_of(second)) {
                let index = (0..second.nr_processes).find(|&i| second.process_id(i) == process);
                return Err(Fault::ProcessOnTwoCpus {
                    process,
                    cpu: first.cpu,
                    other_cpu: second.cpu,
                }
                .at(second.process_offset(index.unwrap_or(0))));
            }
        }
        Ok(())
    }

    /// The version in which it is written.
    pub fn version(&self) -> u16 {
        self.version
    }

    /// The planner's name for the plan.
    pub fn plan_id(&self) -> u64 {
        self.plan_id
    }

    /// The plan deals with the prediction failures of all events whose number is smaller; 0: with
    /// none.
    pub fn dealt_seq(&self) -> u64 {
        self.dealt_seq
    }

    /// Time without a renewal after which the plan is dropped; 0: never.
    pub fn lease_ns(&self) -> u64 {
        self.lease_ns
    }

    /// Memory that the plan may use on the node; 0: not declared.
    pub fn memory_bytes(&self) -> u64 {
        self.memory_bytes
    }

    /// Refuses a plan that deals with failures of the future: `next_seq` is the number of the next
    /// event.
    pub fn check_dealt(&self, next_seq: u64) -> Result<(), Refusal> {
        if self.dealt_seq <= next_seq {
            return Ok(());
        }
        let fault = Fault::DealtSeq {
            found: self.dealt_seq,
            next: next_seq,
        };
        Err(fault.at(40))
    }

    /// The configuration that the plan carries, if any, for a CPU of that rate: in version 1 it is
    /// in instructions.
    pub fn config(&self, rate: Rate) -> Option<Config> {
        if self.config_bytes == 0 {
            return None;
        }
        // It was checked when the message was parsed.
        let record = config_record(self.bytes, self.config_bytes).ok()?;
        if self.version == VERSION_1 {
            Some(version_1::times(read_version_1(&record), rate))
        } else {
            read_config(&record).ok()
        }
    }

    /// Configuration with which the plan runs on a CPU of that rate: the one that it carries, or
    /// else `default`.  Processes had no deadlines before version 3, and run in the order of
    /// then.
    pub fn config_or(&self, default: &Config, rate: Rate) -> Config {
        let mut config = *default;
        if self.version != VERSION {
            config.dispatch = Dispatch::Thesis as u64;
        }
        self.config(rate).unwrap_or(config)
    }

    /// Number of CPUs of the plan.
    pub fn nr_cpus(&self) -> u32 {
        self.nr_cpus
    }

    /// The parts for the single CPUs, by CPU number.
    pub fn sections(&self) -> impl Iterator<Item = Section<'a>> + 'a {
        let (bytes, version) = (self.bytes, self.version);
        let mut offset = self.first_section();
        (0..self.nr_cpus).map_while(move |_| {
            // The message was checked as a whole when it was parsed.
            let section = Section::read(bytes, version, offset).ok()?;
            offset = section.end();
            Some(section)
        })
    }
}

/// The configuration in a plan, of so many bytes.
fn config_record(bytes: &[u8], config_bytes: usize) -> Result<Record<'_>, Refusal> {
    Record::new(bytes, HEADER_BYTES, config_bytes, Part::Config)
}

/// Checks the configuration in a plan.
#[inline(never)]
fn check_config(bytes: &[u8], version: u16, config_bytes: usize) -> Result<(), Refusal> {
    let record = config_record(bytes, config_bytes)?;
    if version == VERSION_1 {
        version_1::check(read_version_1(&record))?;
        return record.reserved(8 * version_1::COUNT);
    }
    read_config(&record).map(|_| ())
}

/// Reads a `struct pbs_config` that stands alone.
pub fn config(bytes: &[u8]) -> Result<Config, Refusal> {
    read_config(&Record::new(bytes, 0, CONFIG_BYTES, Part::Config)?)
}

fn read_config(record: &Record<'_>) -> Result<Config, Refusal> {
    let mut values = Config::DEFAULT.values();
    read_values(record, &mut values);
    let config = Config::from_values(values);
    config.check()?;
    Ok(config)
}

fn read_version_1(record: &Record<'_>) -> [u64; version_1::COUNT] {
    let mut values = [0; version_1::COUNT];
    read_values(record, &mut values);
    values
}

fn read_values(record: &Record<'_>, values: &mut [u64]) {
    for (index, value) in values.iter_mut().enumerate() {
        if let Some(written) = record.number(index) {
            *value = written;
        }
    }
}

/// The part of a written plan for one CPU.
#[derive(Clone, Copy)]
pub struct Section<'a> {
    bytes: &'a [u8],
    version: u16,
    offset: usize,
    cpu: u32,
    nr_processes: u32,
    nr_slots: u32,
    nr_edges: u32,
    /// Whether the edges have planned arrivals.
    has_arrivals: bool,
    rate_insns_per_ms: u64,
}

impl<'a> Section<'a> {
    fn read(bytes: &'a [u8], version: u16, offset: usize) -> Result<Section<'a>, Refusal> {
        let record = Record::new(bytes, offset, CPU_BYTES, Part::Cpu)?;
        let cpu = record.u32(0);
        let nr_processes = record.u32(4);
        let nr_slots = record.u64(8);
        if version == VERSION_1 {
            record.reserved(16)?;
        }
        let nr_edges = record.u64(16);
        let rate_insns_per_ms = record.u64(24);
        // A CPU may have an empty plan, which must have neither processes nor slots.
        let is_empty = version != VERSION_1 && nr_slots == 0;
        if nr_processes == 0 && !is_empty {
            return Err(Fault::NoProcesses { cpu }.at(offset + 4));
        }
        if nr_processes > MAX_PROCESSES {
            let found = nr_processes;
            return Err(Fault::ManyProcesses { cpu, found }.at(offset + 4));
        }
        if nr_slots == 0 && nr_processes != 0 {
            return Err(Fault::NoSlots { cpu }.at(offset + 8));
        }
        if nr_slots > MAX_SLOTS {
            let found = nr_slots;
            return Err(Fault::ManySlots { cpu, found }.at(offset + 8));
        }
        if nr_edges > MAX_EDGES {
            let found = nr_edges;
            return Err(Fault::ManyEdges { cpu, found }.at(offset + 16));
        }
        if rate_insns_per_ms > u32::MAX.into() {
            let fault = Fault::Rate {
                cpu,
                found: rate_insns_per_ms,
            };
            return Err(fault.at(offset + 24));
        }
        let flags = Record::new(bytes, 0, HEADER_BYTES, Part::Header)?.u64(32);
        let section = Section {
            bytes,
            version,
            offset,
            has_arrivals: flags & PLAN_ARRIVALS != 0,
            cpu,
            nr_processes,
            nr_slots: nr_slots as u32,
            nr_edges: nr_edges as u32,
            rate_insns_per_ms,
        };
        let (first_slot, first_edge) = (section.slot_offset(0), section.edge_offset(0));
        Record::new(
            bytes,
            offset + CPU_BYTES,
            section.process_bytes() * nr_processes as usize,
            Part::Process,
        )?;
        Record::new(
            bytes,
            first_slot,
            SLOT_BYTES * nr_slots as usize,
            Part::Slot,
        )?;
        Record::new(
            bytes,
            first_edge,
            EDGE_BYTES * nr_edges as usize,
            Part::Edge,
        )?;
        if section.has_arrivals {
            Record::new(
                bytes,
                section.arrival_offset(0),
                ARRIVAL_BYTES * nr_edges as usize,
                Part::Arrival,
            )?;
        }
        Ok(section)
    }

    /// Memory that the whole plan may use on the node; 0: not declared.
    pub(super) fn memory_bytes(&self) -> Result<u64, Refusal> {
        Ok(Record::new(self.bytes, 0, HEADER_BYTES, Part::Header)?.u64(56))
    }

    fn check_processes(&self) -> Result<(), Refusal> {
        let cpu = self.cpu;
        let mut before = None;
        for index in 0..self.nr_processes {
            let record = self.process(index)?;
            let process = record.u32(0);
            if process == IDLE {
                return Err(Fault::IdleAsProcess { cpu }.at(record.offset));
            }
            match before {
                Some(before) if process == before => {
                    return Err(Fault::DuplicateProcess { cpu, process }.at(record.offset))
                }
                Some(before) if process < before => {
                    return Err(Fault::ProcessOrder {
                        cpu,
                        process,
                        before,
                    }
                    .at(record.offset))
                }
                _ => before = Some(process),
            }
            record.no_flags(record.u32(4).into(), 4)?;
            let buffer_insns = record.u64(8);
            if buffer_insns > MAX_BUFFER_INSNS {
                return Err(Fault::Buffer {
                    cpu,
                    process,
                    found_insns: buffer_insns,
                }
                .at(record.offset + 8));
            }
            if self.version == VERSION_1 {
                record.reserved(16)?;
            }
            let rate_insns_per_ms = record.u64(24);
            if rate_insns_per_ms > u32::MAX.into() {
                let fault = Fault::ProcessRate {
                    cpu,
                    process,
                    found: rate_insns_per_ms,
                };
                return Err(fault.at(record.offset + 24));
            }
        }
        Ok(())
    }

    /// Refuses edges that do not ascend: this way no edge is there twice.
    fn check_edges<M: Memory>(&self) -> Result<(), Refusal> {
        let mut before = None;
        for number in 0..self.nr_edges {
            if number as usize & (PAUSE_EVERY - 1) == 0 {
                M::pause()?;
            }
            let record = self.edge(number)?;
            let numbers = [0, 4, 8, 12].map(|at| record.u32(at));
            if before.is_some_and(|before| numbers <= before) {
                let (cpu, edge) = (self.cpu, number);
                return Err(Fault::EdgeOrder { cpu, edge }.at(record.offset));
            }
            before = Some(numbers);
        }
        Ok(())
    }

    /// The CPU that the section is for.
    pub fn cpu(&self) -> u32 {
        self.cpu
    }

    /// Offset of the section in the written plan, for a refusal of its CPU.
    pub fn offset_bytes(&self) -> usize {
        self.offset
    }

    /// Number of processes of the section.
    pub fn nr_processes(&self) -> u32 {
        self.nr_processes
    }

    /// Number of slots of the section.
    pub fn nr_slots(&self) -> u32 {
        self.nr_slots
    }

    /// Number of edges of the section.
    pub fn nr_edges(&self) -> u32 {
        self.nr_edges
    }

    /// Rate of the CPU that the plan declares; 0: the CPU's own.
    pub fn rate_insns_per_ms(&self) -> u64 {
        self.rate_insns_per_ms
    }

    fn process_offset(&self, index: u32) -> usize {
        self.offset + CPU_BYTES + self.process_bytes() * index as usize
    }

    fn process_bytes(&self) -> usize {
        match self.version {
            VERSION => PROCESS_BYTES,
            _ => PROCESS_BYTES_2,
        }
    }

    /// The deadline of a process, given its record.
    pub(super) fn deadline_ns(&self, process: &Record<'_>) -> u64 {
        match self.version {
            VERSION => process.u64(32),
            _ => NO_DEADLINE,
        }
    }

    pub(super) fn slot_offset(&self, slot: u32) -> usize {
        self.process_offset(self.nr_processes) + SLOT_BYTES * slot as usize
    }

    pub(in super::super) fn edge_offset(&self, edge: u32) -> usize {
        self.slot_offset(self.nr_slots) + EDGE_BYTES * edge as usize
    }

    fn arrival_offset(&self, edge: u32) -> usize {
        self.edge_offset(self.nr_edges) + ARRIVAL_BYTES * edge as usize
    }

    fn end(&self) -> usize {
        let arrivals = if self.has_arrivals { self.nr_edges } else { 0 };
        self.arrival_offset(arrivals)
    }

    pub(super) fn process(&self, index: u32) -> Result<Record<'a>, Refusal> {
        let offset = self.process_offset(index);
        Record::new(self.bytes, offset, self.process_bytes(), Part::Process)
    }

    fn process_id(&self, index: u32) -> u32 {
        self.process(index).map_or(IDLE, |record| record.u32(0))
    }

    pub(super) fn slots(&self) -> impl Iterator<Item = Record<'a>> {
        let first = self.slot_offset(0);
        Record::each(self.bytes, first, SLOT_BYTES, self.nr_slots, Part::Slot)
    }

    pub(super) fn edge(&self, edge: u32) -> Result<Record<'a>, Refusal> {
        let offset = self.edge_offset(edge);
        Record::new(self.bytes, offset, EDGE_BYTES, Part::Edge)
    }

    /// Whether the edges have planned arrivals.
    pub(super) fn has_arrivals(&self) -> bool {
        self.has_arrivals
    }

    /// The planned arrival of an edge of a section whose edges have them.
    pub(super) fn arrival_ns(&self, edge: u32) -> Result<u64, Refusal> {
        let offset = self.arrival_offset(edge);
        Ok(Record::new(self.bytes, offset, ARRIVAL_BYTES, Part::Arrival)?.u64(0))
    }
}
