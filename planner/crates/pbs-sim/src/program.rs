// SPDX-License-Identifier: GPL-2.0
//! What a process really does.

use pbs_plan::Process;

/// A process as it really is: not as the plan thinks it is.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) id: u32,
    /// Ascending by id.
    tasks: Vec<RealTask>,
    /// The one that is or will be next.
    position: usize,
    /// Retired by the current task.
    pub(crate) retired_insns: u64,
    /// It waits, until then.
    pub(crate) wakes_ns: Option<u64>,
    /// Its current task has had its waiting.
    has_waited: bool,
}

/// A task as it really is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RealTask {
    pub(crate) id: u32,
    pub(crate) insns: u64,
    wait_insns: u64,
    /// Its place among the outcomes.
    pub(crate) outcome: Option<usize>,
}

impl Program {
    pub(crate) fn new(id: u32) -> Self {
        Self {
            id,
            tasks: Vec::new(),
            position: 0,
            retired_insns: 0,
            wakes_ns: None,
            has_waited: false,
        }
    }

    /// Learns the tasks of a later plan. What it knew already stays as it is:
    /// a plan does not change what a task really takes.
    pub(crate) fn learn(&mut self, process: &Process) {
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

    /// The current task.
    pub(crate) fn current(&self) -> Option<RealTask> {
        self.tasks.get(self.position).copied()
    }

    /// Goes on with the task `id`. Is that another than the current one?
    pub(crate) fn move_to(&mut self, id: u32) -> bool {
        if self.current().is_some_and(|task| task.id == id) {
            return false;
        }
        self.position += 1;
        if self.current().is_none_or(|task| task.id != id) {
            self.position = self.find(id);
        }
        self.retired_insns = 0;
        self.has_waited = false;
        true
    }

    /// For how many instructions it waits before its current task, if it has
    /// not done so yet.
    pub(crate) fn take_wait(&mut self) -> Option<u64> {
        if self.has_waited {
            return None;
        }
        self.has_waited = true;
        let wait_insns = self.current().map_or(0, |task| task.wait_insns);
        Some(wait_insns).filter(|&insns| insns > 0)
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
