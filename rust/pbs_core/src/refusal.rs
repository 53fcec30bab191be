// SPDX-License-Identifier: GPL-2.0

//! Refusals of plans and configurations.

use core::fmt;

use super::circle::Circle;
use super::config::Config;
use super::memory::{Interrupted, NoMemory};
use super::wire::format;

/// The error number that a refusal has at the system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Errno {
    /// `EINVAL`: the plan is wrong.
    Invalid,
    /// `E2BIG`: the plan, or a record of it, is larger than this version accepts.
    TooBig,
    /// `ENOMEM`: there is no memory for the plan.
    NoMemory,
    /// `ENODEV`: the plan is for a CPU that does not exist.
    NoDevice,
    /// `ESRCH`: the plan was made without the end of a process, or the begin of a task.
    NoProcess,
    /// `EINTR`: the writer of the plan was killed.
    Interrupted,
}

impl Errno {
    /// The name of the error number in C.
    pub const fn name(self) -> &'static str {
        match self {
            Errno::Invalid => "EINVAL",
            Errno::TooBig => "E2BIG",
            Errno::NoMemory => "ENOMEM",
            Errno::NoDevice => "ENODEV",
            Errno::NoProcess => "ESRCH",
            Errno::Interrupted => "EINTR",
        }
    }
}

/// A record of the wire format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// `struct pbs_plan_header`
    Header,
    /// `struct pbs_config`
    Config,
    /// `struct pbs_plan_cpu`
    Cpu,
    /// `struct pbs_plan_process`
    Process,
    /// `struct pbs_plan_slot`
    Slot,
    /// `struct pbs_plan_edge`
    Edge,
    /// The planned arrival of an edge.
    Arrival,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Part::Header => "header",
            Part::Config => "configuration",
            Part::Cpu => "CPU record",
            Part::Process => "process record",
            Part::Slot => "slot",
            Part::Edge => "edge",
            Part::Arrival => "planned arrival",
        })
    }
}

/// Fault of a plan or a configuration, with the values that show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // The messages below explain each.
pub enum Fault {
    Truncated {
        part: Part,
        need_bytes: u64,
        have_bytes: u64,
    },
    Trailing {
        extra_bytes: u64,
    },
    Magic {
        found: u32,
    },
    Version {
        found: u16,
    },
    HeaderBytes {
        found: u16,
    },
    TotalBytes {
        said_bytes: u64,
        have_bytes: u64,
    },
    ConfigBytes {
        found: u32,
    },
    Flags {
        part: Part,
        found: u64,
    },
    Reserved {
        part: Part,
    },
    NoCpus,
    Config {
        name: &'static str,
        value: u64,
        least: u64,
        most: u64,
    },
    CpuOrder {
        cpu: u32,
        before: u32,
    },
    NoProcesses {
        cpu: u32,
    },
    ManyProcesses {
        cpu: u32,
        found: u32,
    },
    NoSlots {
        cpu: u32,
    },
    ManySlots {
        cpu: u32,
        found: u64,
    },
    IdleAsProcess {
        cpu: u32,
    },
    DuplicateProcess {
        cpu: u32,
        process: u32,
    },
    ProcessOrder {
        cpu: u32,
        process: u32,
        before: u32,
    },
    ProcessOnTwoCpus {
        process: u32,
        cpu: u32,
        other_cpu: u32,
    },
    Buffer {
        cpu: u32,
        process: u32,
        found_insns: u64,
    },
    SlotLength {
        cpu: u32,
        slot: u64,
        found_insns: u64,
    },
    PlanLength {
        cpu: u32,
        slot: u64,
    },
    IdleTask {
        cpu: u32,
        slot: u64,
        task: u32,
    },
    NoTask {
        cpu: u32,
        slot: u64,
        process: u32,
    },
    UnknownProcess {
        cpu: u32,
        slot: u64,
        process: u32,
    },
    DuplicateTask {
        cpu: u32,
        slot: u64,
        process: u32,
        task: u32,
    },
    TaskOrder {
        cpu: u32,
        slot: u64,
        process: u32,
        task: u32,
        before: u32,
    },
    NoSlotOfProcess {
        cpu: u32,
        process: u32,
    },
    ManyEdges {
        cpu: u32,
        found: u64,
    },
    EdgeOrder {
        cpu: u32,
        edge: u32,
    },
    EdgeTask {
        cpu: u32,
        edge: u32,
        process: u32,
        task: u32,
    },
    EdgeAfter {
        cpu: u32,
        edge: u32,
        process: u32,
        task: u32,
    },
    EdgeSelf {
        cpu: u32,
        edge: u32,
        process: u32,
    },
    Circle {
        circle: Circle,
    },
    Rate {
        cpu: u32,
        found: u64,
    },
    ProcessRate {
        cpu: u32,
        process: u32,
        found: u64,
    },
    /// For the user of a plan: a CPU in it does not exist or is offline.
    CpuNotThere {
        cpu: u32,
    },
    DealtSeq {
        found: u64,
        next: u64,
    },
    Lease {
        found: u64,
    },
    ProcessEnded {
        process: u32,
    },
    TaskBegun {
        process: u32,
        task: u32,
        after: u32,
        after_task: u32,
    },
    DispatchInForce {
        in_force: &'static str,
    },
    NoTimetable,
    NoMemory,
    Interrupted,
}

impl Fault {
    /// The refusal for this fault at `offset_bytes` of the plan.
    pub const fn at(self, offset_bytes: usize) -> Refusal {
        Refusal {
            fault: self,
            offset_bytes: offset_bytes as u64,
        }
    }

    /// The refusal for this fault, which has no place in the plan.
    pub(super) const fn nowhere(self) -> Refusal {
        Refusal {
            fault: self,
            offset_bytes: Refusal::NOWHERE,
        }
    }
}

/// A refusal: a fault and its place.  Its `Display` describes both, with a correction, in less than
/// 240 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The fault.
    pub fault: Fault,
    /// Offset of the fault in the plan, or [`Refusal::NOWHERE`].
    pub offset_bytes: u64,
}

impl Refusal {
    /// The offset of a refusal that concerns no place in particular.
    pub const NOWHERE: u64 = u64::MAX;

    /// The error number of the refusal.
    pub const fn errno(&self) -> Errno {
        match self.fault {
            Fault::ManyProcesses { .. } | Fault::ManySlots { .. } | Fault::ManyEdges { .. } => {
                Errno::TooBig
            }
            Fault::NoMemory => Errno::NoMemory,
            Fault::Interrupted => Errno::Interrupted,
            Fault::CpuNotThere { .. } => Errno::NoDevice,
            Fault::ProcessEnded { .. } | Fault::TaskBegun { .. } => Errno::NoProcess,
            _ => Errno::Invalid,
        }
    }
}

impl From<NoMemory> for Refusal {
    fn from(_: NoMemory) -> Refusal {
        Fault::NoMemory.nowhere()
    }
}

impl From<Interrupted> for Refusal {
    fn from(_: Interrupted) -> Refusal {
        Fault::Interrupted.nowhere()
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fault.fmt(f)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Fault::Truncated {
                part,
                need_bytes,
                have_bytes,
            } => write!(
                f,
                "plan is truncated: {part} needs {need_bytes} bytes, {have_bytes} are left; \
                 write the whole plan in one call"
            ),
            Fault::Trailing { extra_bytes } => write!(
                f,
                "{extra_bytes} bytes follow the last record; end the plan there or correct the \
                 counts of CPUs, processes, slots and edges"
            ),
            Fault::Magic { found } => write!(
                f,
                "not a plan: it begins with {found:#010x}; begin it with PBS_PLAN_MAGIC \
                 ({:#010x}) in this machine's byte order",
                format::MAGIC
            ),
            Fault::Version { found } => write!(
                f,
                "plan has version {found}; write version {}",
                format::VERSION
            ),
            Fault::HeaderBytes { found } => {
                write!(f, "header_bytes is {found}; write {}", format::HEADER_BYTES)
            }
            Fault::TotalBytes {
                said_bytes,
                have_bytes,
            } => write!(
                f,
                "total_bytes is {said_bytes}, but {have_bytes} bytes were written; write the \
                 whole plan in one call and its size into total_bytes"
            ),
            Fault::ConfigBytes { found } => write!(
                f,
                "config_bytes is {found}; write 0 for the node's defaults, or {}",
                format::CONFIG_BYTES
            ),
            Fault::Flags { part, found } => {
                write!(f, "flags of the {part} are {found:#x}; write 0")
            }
            Fault::Reserved { part } => {
                write!(f, "a reserved field of the {part} is not zero; write 0")
            }
            Fault::NoCpus => write!(f, "plan is for no CPU; write at least one"),
            Fault::Config {
                name,
                value,
                least,
                most,
            } => {
                let why = Config::why_not_less(name, value, least);
                write!(f, "{name} is {value}; write {least} to {most}{why}")
            }
            Fault::CpuOrder { cpu, before } => write!(
                f,
                "CPU {cpu} comes after CPU {before}; write CPUs ascending, each once"
            ),
            Fault::NoProcesses { cpu } => write!(
                f,
                "CPU {cpu} has no process; write 1 to {}, or leave the CPU out",
                format::MAX_PROCESSES
            ),
            Fault::ManyProcesses { cpu, found } => write!(
                f,
                "CPU {cpu} has {found} processes; write at most {}",
                format::MAX_PROCESSES
            ),
            Fault::NoSlots { cpu } => write!(
                f,
                "CPU {cpu} has no slots; write 1 to {}, or leave the CPU out",
                format::MAX_SLOTS
            ),
            Fault::ManySlots { cpu, found } => write!(
                f,
                "CPU {cpu} has {found} slots; write at most {}",
                format::MAX_SLOTS
            ),
            Fault::IdleAsProcess { cpu } => write!(
                f,
                "CPU {cpu} has a process with the number of idle slots (PBS_IDLE); write another"
            ),
            Fault::DuplicateProcess { cpu, process } => {
                write!(f, "CPU {cpu} has process {process} twice; write it once")
            }
            Fault::ProcessOrder {
                cpu,
                process,
                before,
            } => write!(
                f,
                "CPU {cpu}: process {process} comes after process {before}; write them ascending"
            ),
            Fault::ProcessOnTwoCpus {
                process,
                cpu,
                other_cpu,
            } => write!(
                f,
                "process {process} is on CPU {cpu} and on CPU {other_cpu}; write it on one"
            ),
            Fault::Buffer {
                cpu,
                process,
                found_insns,
            } => write!(
                f,
                "CPU {cpu}, process {process}: its buffer is {found_insns} instructions; write at \
                 most {}",
                format::MAX_BUFFER_INSNS
            ),
            Fault::SlotLength {
                cpu,
                slot,
                found_insns,
            } => write!(
                f,
                "CPU {cpu}, slot {slot}: its length is {found_insns} instructions; write 1 to {}",
                format::MAX_SLOT_INSNS
            ),
            Fault::PlanLength { cpu, slot } => write!(
                f,
                "CPU {cpu}, slot {slot}: with it the slots are longer than {} instructions \
                 together; write a shorter plan",
                format::MAX_PLAN_INSNS
            ),
            Fault::IdleTask { cpu, slot, task } => write!(
                f,
                "CPU {cpu}, slot {slot} is idle but has task {task}; write PBS_NO_TASK"
            ),
            Fault::NoTask { cpu, slot, process } => write!(
                f,
                "CPU {cpu}, slot {slot} of process {process} has no task (PBS_NO_TASK); write \
                 the task it is planned for"
            ),
            Fault::UnknownProcess { cpu, slot, process } => write!(
                f,
                "CPU {cpu}, slot {slot} is for process {process}, which is not among that CPU's \
                 processes; add it there or write PBS_IDLE"
            ),
            Fault::DuplicateTask {
                cpu,
                slot,
                process,
                task,
            } => write!(
                f,
                "CPU {cpu}, slot {slot}: task {task} of process {process} already has a slot; \
                 number each task once"
            ),
            Fault::TaskOrder {
                cpu,
                slot,
                process,
                task,
                before,
            } => write!(
                f,
                "CPU {cpu}, slot {slot}: task {task} of process {process} comes after its task \
                 {before}; write a process's tasks ascending"
            ),
            Fault::NoSlotOfProcess { cpu, process } => write!(
                f,
                "CPU {cpu}: process {process} has no slot; add one or remove the process"
            ),
            Fault::ManyEdges { cpu, found } => write!(
                f,
                "CPU {cpu} has {found} edges; write at most {}",
                format::MAX_EDGES
            ),
            Fault::EdgeOrder { cpu, edge } => write!(
                f,
                "CPU {cpu}, edge {edge} does not come after the one before it; write them \
                 ascending by process, task, after_process and after_task, each once"
            ),
            Fault::EdgeTask {
                cpu,
                edge,
                process,
                task,
            } => write!(
                f,
                "CPU {cpu}, edge {edge}: the CPU has no task {task} of process {process} that \
                 could wait; write the edge where the task is"
            ),
            Fault::EdgeAfter {
                cpu,
                edge,
                process,
                task,
            } => write!(
                f,
                "CPU {cpu}, edge {edge} waits for task {task} of process {process}, which the \
                 plan does not have; leave the edge out or write the process, too"
            ),
            Fault::EdgeSelf { cpu, edge, process } => write!(
                f,
                "CPU {cpu}, edge {edge}: process {process} waits for itself; its tasks follow \
                 each other anyway, so leave the edge out"
            ),
            Fault::Circle { circle } => circle.fmt(f),
            Fault::Rate { cpu, found } => write!(
                f,
                "CPU {cpu}: its rate is {found} instructions a millisecond; write 1 to {}, or 0 \
                 for its own",
                u32::MAX
            ),
            Fault::ProcessRate {
                cpu,
                process,
                found,
            } => write!(
                f,
                "CPU {cpu}, process {process}: its rate is {found} instructions a millisecond; \
                 write 1 to {}, or 0 for that of the CPU",
                u32::MAX
            ),
            Fault::CpuNotThere { cpu } => write!(
                f,
                "CPU {cpu} does not exist or is offline; write the plan for a CPU that is online"
            ),
            Fault::DealtSeq { found, next } => write!(
                f,
                "dealt_seq is {found}, but the next event will have number {next}; write one more \
                 than the number of the last event that the plan deals with, or 0"
            ),
            Fault::Lease { found } => write!(
                f,
                "lease_ns is {found}; write 0 for none, or {} to {}",
                format::LEASE_NS.start(),
                format::LEASE_NS.end()
            ),
            Fault::ProcessEnded { process } => write!(
                f,
                "process {process} has ended all tasks that the plan has for it; leave it out, \
                 or give it new ones"
            ),
            Fault::TaskBegun {
                process,
                task,
                after,
                after_task,
            } => write!(
                f,
                "task {task} of process {process} has begun, and in the plan it waits for task \
                 {after_task} of process {after}; read the events, and plan with process {process} \
                 as it is"
            ),
            Fault::DispatchInForce { in_force } => write!(
                f,
                "the plan in force has dispatch = \"{in_force}\", which only another plan can \
                 change; write the plan again with the other dispatch"
            ),
            Fault::NoTimetable => write!(
                f,
                "the plan in force began with timeliness_ns = 0, and has no timetable; write the \
                 plan again with the other timeliness_ns"
            ),
            Fault::NoMemory => write!(f, "no memory for the plan; write a shorter one"),
            Fault::Interrupted => write!(f, "who wrote the plan was killed"),
        }
    }
}
