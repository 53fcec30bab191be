// SPDX-License-Identifier: GPL-2.0

//! The plan of one CPU.

use super::memory::Memory;
use super::rate::Rate;
use super::wire::format;

/// A place in the plan.  Slots never move; tasks move through slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Length of the slot, which is the planned length of its task.
    pub length_insns: u64,
    /// Index of the process in [`Plan::processes`], or [`Slot::IDLE`].
    pub process: u32,
    /// Id of the task that the slot is planned for.
    pub task: u32,
    /// Position of that task among the tasks of its process, from 0.
    pub position: u32,
}

impl Slot {
    /// The process of an idle slot.
    pub const IDLE: u32 = u32::MAX;

    pub(super) const NONE: Slot = Slot {
        length_insns: 0,
        process: Slot::IDLE,
        task: format::NO_TASK,
        position: 0,
    };

    /// Whether the slot belongs to no process.
    pub const fn is_idle(&self) -> bool {
        self.process == Slot::IDLE
    }

    /// Whether the slot is the last one of its process.
    pub(super) const fn is_last_of(&self, process: &Process) -> bool {
        self.position.saturating_add(1) == process.count
    }
}

/// A process of the plan.
///
/// The size of the struct is a power of two, because it is looked up for every slot of a plan that
/// is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(align(64))]
pub struct Process {
    /// The planner's number for the process.
    pub id: u32,
    /// Begin of its slots in [`Plan::order`].
    pub first: u32,
    /// Number of its slots, and thus of its tasks: at least one.
    pub count: u32,
    /// Plan buffer of the process (Leppert 2021, 3.3.3).
    pub buffer_insns: u64,
    /// End of its last slot in the plan: the lengths of all slots up to there.
    pub end_insns: u64,
    /// Planned peak of its memory; 0: not planned.
    pub memory_bytes: u64,
    /// Rate that the plan declares for the process; 0: the rate of the CPU.
    pub rate_insns_per_ms: u32,
    /// Deadline of the process, counted from the moment at which the plan comes into force;
    /// [`format::NO_DEADLINE`]: none.
    pub deadline_ns: u64,
    /// Begin of its edges in [`Plan::edges`]; they end where the edges of the next process begin.
    pub first_edge: u32,
    /// Index of the process in [`Plan::predecessors`], or [`Predecessor::NONE`].
    pub predecessor: u32,
    /// Whether tasks on other CPUs wait for tasks of the process.
    pub shared: bool,
}

impl Process {
    /// Returns the deadline that the slots imply: the end of the last slot plus the plan buffer
    /// (Leppert 2021, 3.3.3), counted from the beginning of the plan.
    pub(super) const fn deadline_insns(&self) -> u64 {
        // At most 2^62 and 2^56.
        self.end_insns.saturating_add(self.buffer_insns)
    }

    pub(super) const NONE: Process = Process {
        id: format::IDLE,
        first: 0,
        count: 0,
        buffer_insns: 0,
        end_insns: 0,
        memory_bytes: 0,
        rate_insns_per_ms: 0,
        deadline_ns: format::NO_DEADLINE,
        first_edge: 0,
        predecessor: Predecessor::NONE,
        shared: false,
    };
}

/// A task that waits for a task of another process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// Position of the waiting task in its process.
    pub position: u32,
    /// Index of the awaited process in [`Plan::predecessors`].
    pub predecessor: u32,
    /// Id of the task that must have ended.
    pub task: u32,
}

impl Edge {
    pub(super) const NONE: Edge = Edge {
        position: 0,
        predecessor: Predecessor::NONE,
        task: format::NO_TASK,
    };
}

/// A process that tasks of the plan wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Predecessor {
    /// The planner's number for the process.
    pub id: u32,
    /// Index of the process in [`Plan::processes`], or [`Predecessor::NONE`] if another CPU has it.
    pub process: u32,
}

impl Predecessor {
    /// No index.
    pub const NONE: u32 = u32::MAX;

    /// Whether another CPU has the process.
    pub const fn is_elsewhere(&self) -> bool {
        self.process == Predecessor::NONE
    }
}

/// The plan of one CPU, as checked by [`Plan::build`].
pub struct Plan<M: Memory> {
    /// Processes, ascending by id.
    pub(super) processes: M::Slice<Process>,
    /// Slots, in order of execution.
    pub(super) slots: M::Slice<Slot>,
    /// The numbers of the slots that are not idle: by process, then ascending.
    pub(super) order: M::Slice<u32>,
    /// The lengths of the slots in `order` before every [`SUM_EVERY`]th place.
    pub(super) sums_insns: M::Slice<u64>,
    /// Edges, by process, then by position.
    pub(super) edges: M::Slice<Edge>,
    /// Planned arrivals of the edges, from the moment at which the plan comes into force;
    /// [`format::NO_ARRIVAL`]: the edge is no message.  Empty if no edge of the plan is one.
    pub(super) arrivals_ns: M::Slice<u64>,
    /// Predecessors, ascending by id.
    pub(super) predecessors: M::Slice<Predecessor>,
    /// Rate of the CPU that the plan declares; 0: the CPU's own.
    pub(super) rate_insns_per_ms: u64,
    /// Memory that the processes of all CPUs may use; 0: not declared.
    pub(super) memory_bytes: u64,
}

/// Number of slots that one sum covers: a compromise between the memory for the sums and the slots
/// to add up.
pub(super) const SUM_EVERY: usize = 16;

impl<M: Memory> Plan<M> {
    /// The processes, ascending by id.
    pub fn processes(&self) -> &[Process] {
        &self.processes
    }

    /// The slots, in order of execution.
    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// The numbers of the slots that are not idle, grouped by process.
    pub fn order(&self) -> &[u32] {
        &self.order
    }

    /// The edges: by process, then by the position of the waiting task.
    pub fn edges(&self) -> &[Edge] {
        &self.edges
    }

    /// Whether edges of the plan may be messages.
    #[inline]
    pub fn has_arrivals(&self) -> bool {
        !self.arrivals_ns.is_empty()
    }

    /// Planned arrival of the message that an edge stands for, from the moment at which the plan
    /// comes into force; `None`: the edge is no message.
    pub fn arrival_ns(&self, edge: u32) -> Option<u64> {
        let arrival_ns = self.arrivals_ns.get(edge as usize).copied();
        arrival_ns.filter(|&arrival_ns| arrival_ns != format::NO_ARRIVAL)
    }

    /// The processes that tasks wait for, ascending by id.
    pub fn predecessors(&self) -> &[Predecessor] {
        &self.predecessors
    }

    /// Whether the process waits for others, or others wait for it.
    pub(super) fn is_in_net(&self, process: u32) -> bool {
        self.process(process).is_some_and(|p| {
            p.shared
                || p.predecessor != Predecessor::NONE
                || p.first_edge != self.end_of_edges(process)
        })
    }

    /// The edges of a process.
    pub fn edges_of(&self, process: u32) -> &[Edge] {
        let first = self.process(process).map_or(0, |p| p.first_edge);
        let end = self.end_of_edges(process);
        self.edges.get(first as usize..end as usize).unwrap_or(&[])
    }

    /// End of the edges of a process.
    #[inline]
    pub(super) fn end_of_edges(&self, process: u32) -> u32 {
        let next = self.process(process.saturating_add(1));
        next.map_or(self.edges.len() as u32, |next| next.first_edge)
    }

    /// The first edge of a process from a position on, and the position of the
    /// task that waits there; `u32::MAX`: none does.
    pub(super) fn edge_from(&self, process: u32, position: u32) -> (u32, u32) {
        let edges = self.edges_of(process);
        let passed = edges.partition_point(|edge| edge.position < position);
        let first = self.process(process).map_or(0, |p| p.first_edge);
        let gate = edges.get(passed).map_or(u32::MAX, |edge| edge.position);
        (first.saturating_add(passed as u32), gate)
    }

    /// Rate of the CPU that the plan declares; 0: the CPU's own.
    pub fn rate_insns_per_ms(&self) -> u64 {
        self.rate_insns_per_ms
    }

    /// Rate of the CPU: the one that the plan declares, else `own`.
    pub(super) const fn rate(&self, own: Rate) -> Rate {
        match self.rate_insns_per_ms {
            0 => own,
            insns_per_ms => Rate::new(insns_per_ms),
        }
    }

    /// Memory that the processes of all CPUs may use; 0: not declared.
    pub fn memory_bytes(&self) -> u64 {
        self.memory_bytes
    }

    /// Notes that tasks on other CPUs wait for tasks of a process.
    pub(super) fn share(&mut self, process: u32) {
        if let Some(process) = self.processes.get_mut(process as usize) {
            process.shared = true;
        }
    }

    /// The index of the process with this id.
    pub fn find(&self, id: u32) -> Option<u32> {
        let found = self
            .processes
            .binary_search_by_key(&id, |process| process.id);
        found.ok().map(|index| index as u32)
    }

    /// The process with this index.
    pub fn process(&self, index: u32) -> Option<&Process> {
        self.processes.get(index as usize)
    }

    /// The slot with this number.
    pub fn slot(&self, number: u32) -> Option<&Slot> {
        self.slots.get(number as usize)
    }

    /// The number of the slot that was planned for a process's task, given its
    /// position.
    pub fn own_slot(&self, process: u32, position: u32) -> Option<u32> {
        let process = self.process(process)?;
        if position >= process.count {
            return None;
        }
        let place = process.first.saturating_add(position);
        self.order.get(place as usize).copied()
    }

    /// The slot that was planned for a process's task, and its number, given the task's position.
    pub fn place(&self, process: u32, position: u32) -> Option<(u32, Slot)> {
        let number = self.own_slot(process, position)?;
        Some((number, *self.slot(number)?))
    }

    /// The id of a process's task, given its position.
    pub fn task(&self, process: u32, position: u32) -> Option<u32> {
        self.place(process, position).map(|(_, slot)| slot.task)
    }

    /// Planned lengths of the tasks of a process from `position` on.
    pub fn rest_insns(&self, process: u32, position: u32) -> u64 {
        let Some(process) = self.process(process) else {
            return 0;
        };
        let first = process.first.saturating_add(position.min(process.count));
        let end = process.first.saturating_add(process.count);
        self.before_insns(end)
            .saturating_sub(self.before_insns(first))
    }

    /// The lengths of the slots in `order` before `place`.
    fn before_insns(&self, place: u32) -> u64 {
        let place = place as usize;
        let sum_insns = self.sums_insns.get(place / SUM_EVERY).copied();
        let rest = self.order.get(place / SUM_EVERY * SUM_EVERY..place);
        let lengths = rest
            .unwrap_or(&[])
            .iter()
            .map(|&number| self.slot(number).map_or(0, |slot| slot.length_insns));
        lengths.fold(sum_insns.unwrap_or(0), u64::saturating_add)
    }

    /// The position of the first task of a process whose id is not less than
    /// `task`; the count of its tasks if there is none.
    pub fn position_of(&self, process: u32, task: u32) -> u32 {
        let Some(process) = self.process(process) else {
            return 0;
        };
        let end = process.first.saturating_add(process.count);
        let numbers = self.order.get(process.first as usize..end as usize);
        let position = numbers
            .unwrap_or(&[])
            .partition_point(|&number| self.slot(number).is_some_and(|slot| slot.task < task));
        position as u32
    }
}
