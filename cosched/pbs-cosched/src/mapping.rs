// SPDX-License-Identifier: GPL-2.0
//! Decisions on tasks, and the resulting times.

use crate::model::Workload;
use crate::queues::Slot;
use crate::resources::Transfer;

/// Restraint of a task, so that tasks that slow each other are apart (ours).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hold {
    /// Task whose end it waits for, besides its predecessors; it is before in the order, or has
    /// started.
    pub wait: Option<usize>,
    /// Threads that are free earlier, and that it leaves to others.
    pub skip: u32,
}

/// Decision on a task: "best index" and "round" of its CSI (§5.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Index of the chosen variant.
    pub variant: usize,
    /// The round it was given out in, from 1.
    pub round: u32,
    /// Position within the round.
    pub place: u32,
    /// Restraint because of slow-downs.
    pub hold: Hold,
}

/// Decisions on all waiting tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mapping {
    /// Choice for each task; `None` for tasks that do not wait.
    pub choices: Vec<Option<Choice>>,
}

impl Mapping {
    /// The tasks as they enter the queues.
    pub fn order(&self) -> Vec<usize> {
        let mut order: Vec<(u32, u32, usize)> = self
            .choices
            .iter()
            .enumerate()
            .filter_map(|(task, choice)| choice.map(|of| (of.round, of.place, task)))
            .collect();
        order.sort_unstable();
        order.into_iter().map(|(_, _, task)| task).collect()
    }

    /// A mapping of `tasks` tasks: those of `order`, each with its variant and in a round of
    /// its own.
    pub fn in_order(tasks: usize, order: impl IntoIterator<Item = (usize, usize)>) -> Self {
        let mut choices = vec![None; tasks];
        for (round, (task, variant)) in (1..).zip(order) {
            if let Some(choice) = choices.get_mut(task) {
                *choice = Some(Choice { variant, round, place: 0, hold: Hold::default() });
            }
        }
        Self { choices }
    }
}

/// Time and place of each task's execution.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    /// Slot of each task that has started or was mapped.
    pub slots: Vec<Option<Slot>>,
    /// Task whose end each task waits for because of slow-downs; none where the list is shorter.
    pub waits: Vec<Option<usize>>,
    /// Transfers that took turns on links, in the order in which their tasks entered the queues.
    pub transfers: Vec<Transfer>,
}

impl Timeline {
    /// Returns the task whose end a task waits for because of slow-downs.
    pub fn awaited(&self, task: usize) -> Option<usize> {
        self.waits.get(task).copied().flatten()
    }

    /// Returns the time at which everything has ended.
    pub fn end_ns(&self) -> u64 {
        self.slots.iter().flatten().map(|slot| slot.end_ns).max().unwrap_or(0)
    }

    /// Returns the end of a process's last task, if it has one with a slot.
    pub fn process_end_ns(&self, workload: &Workload, process: usize) -> Option<u64> {
        let of = workload.tasks.iter().zip(&self.slots).filter(|(of, _)| of.process == process);
        of.filter_map(|(_, slot)| Some(slot.as_ref()?.end_ns)).max()
    }
}
