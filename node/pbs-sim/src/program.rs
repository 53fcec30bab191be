// SPDX-License-Identifier: GPL-2.0
//! Real behaviour of a process.

use pbs_plan::Process;

use crate::clock::Clock;

/// A process as it really is: not as the plan thinks it is.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) id: u32,
    /// Rate of the process on its CPU.
    pub(crate) clock: Clock,
    /// Memory that the process uses from its first instruction to its end; `None`: no plan has
    /// declared it yet.
    memory_bytes: Option<u64>,
    /// Whether the process has its memory.
    pub(crate) has_memory: bool,
    /// The node has looked at its memory under the plan in force.
    pub(crate) sampled: bool,
    /// Ascending by id.
    tasks: Vec<RealTask>,
    /// The one that is or will be next.
    position: usize,
    /// Retired by the current task.
    pub(crate) retired_insns: u64,
    /// Arrival of what the current task waits for, if it waits and the arrival has not been checked
    /// yet.
    pub(crate) comes_ns: Option<u64>,
    /// Time at which the process wakes up, if it waits.
    pub(crate) wakes_ns: Option<u64>,
}

/// A task as it really is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RealTask {
    pub(crate) id: u32,
    pub(crate) insns: u64,
    wait_insns: u64,
    /// Index of the task among the outcomes.
    pub(crate) outcome: Option<usize>,
}

impl Program {
    pub(crate) fn new(id: u32, clock: Clock) -> Self {
        Self {
            id,
            clock,
            memory_bytes: None,
            has_memory: false,
            sampled: false,
            tasks: Vec::new(),
            position: 0,
            retired_insns: 0,
            comes_ns: None,
            wakes_ns: None,
        }
    }

    /// Learns the tasks of a later plan. What it knew already stays as it is:
    /// a plan does not change what a task really takes.
    pub(crate) fn learn(&mut self, process: &Process) {
        let memory_bytes = process.real_memory_bytes.unwrap_or(process.memory_bytes);
        self.memory_bytes.get_or_insert(memory_bytes);
        let current = self.current().map(|task| task.id);
        for task in &process.tasks {
            if self.tasks.last().is_none_or(|last| last.id < task.id) {
                self.tasks.push(real(task));
            } else if let Err(place) = self.tasks.binary_search_by_key(&task.id, |real| real.id) {
                self.tasks.insert(place, real(task));
            }
        }
        if let Some(id) = current {
            self.position = self.find(id);
        }
    }

    /// Returns the memory that the process uses.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.memory_bytes.unwrap_or(0)
    }

    /// The current task.
    pub(crate) fn current(&self) -> Option<RealTask> {
        self.tasks.get(self.position).copied()
    }

    /// Continues with the task `id`. Returns whether that is another than the current one.
    pub(crate) fn move_to(&mut self, id: u32) -> bool {
        if self.current().is_some_and(|task| task.id == id) {
            return false;
        }
        self.position += 1;
        if self.current().is_none_or(|task| task.id != id) {
            self.position = self.find(id);
        }
        self.retired_insns = 0;
        true
    }

    /// The task before the current one ended now: from now on it takes as long
    /// as it does until what the current one waits for comes; `clock` is that of
    /// the CPU.
    pub(crate) fn expect(&mut self, now_ns: u64, clock: &Clock) {
        let wait_insns = self.current().map_or(0, |task| task.wait_insns);
        self.comes_ns = Some(wait_insns)
            .filter(|&insns| insns > 0)
            .map(|insns| now_ns.saturating_add(clock.ns_for(insns)));
    }

    fn find(&self, id: u32) -> usize {
        self.tasks.partition_point(|task| task.id < id)
    }

    /// The task with that number, probably at `position`.
    pub(crate) fn task_mut(&mut self, id: u32, position: usize) -> Option<&mut RealTask> {
        let place = match self.tasks.get(position) {
            Some(task) if task.id == id => position,
            _ => self.find(id),
        };
        self.tasks.get_mut(place).filter(|task| task.id == id)
    }
}

fn real(task: &pbs_plan::Task) -> RealTask {
    RealTask {
        id: task.id,
        insns: task.real_insns.unwrap_or(task.planned_insns),
        wait_insns: task.wait_insns.unwrap_or(0),
        outcome: None,
    }
}
