// SPDX-License-Identifier: GPL-2.0
//! A plan that nobody has run yet: what runs when on which core, the memory
//! that it takes of the nodes, and the resources that it holds.

mod picture;
mod text;

use std::collections::BTreeMap;

use serde::Serialize;

pub use picture::schedule_picture;
pub use text::{schedule_chart, schedule_tables};

/// The plan of all nodes. Times count from when it begins.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Schedule {
    /// Title of the schedule, in a few words.
    pub title: String,
    /// The names of the processes, which tasks refer to.
    pub processes: Vec<String>,
    /// Deadlines, with the name of what must have ended.
    pub deadlines: Vec<(u64, String)>,
    /// Nodes that have tasks.
    pub nodes: Vec<ScheduleNode>,
    /// Countable resources that are held, such as licences.
    pub resources: Vec<ScheduleResource>,
}

/// A countable resource of the machine.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ScheduleResource {
    /// Name of the resource.
    pub name: String,
    /// All that there is of it.
    pub count: u64,
    /// Held amount as steps: time and amount from then on, in the order of time.
    pub held: Vec<(u64, u64)>,
}

/// A node with its cores.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ScheduleNode {
    /// Name of the node.
    pub name: String,
    /// All of its memory.
    pub memory_bytes: u64,
    /// Reserved memory as steps: time and bytes from then on, in the order of time.
    pub reserved_bytes: Vec<(u64, u64)>,
    /// Cores that have tasks.
    pub cores: Vec<ScheduleCore>,
}

/// A core with its tasks.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ScheduleCore {
    /// Name of the core.
    pub name: String,
    /// In the order of time. None takes no time, and no two overlap.
    pub tasks: Vec<ScheduleTask>,
}

/// A task on its core.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ScheduleTask {
    /// Index into [`Schedule::processes`].
    pub process: usize,
    /// Number of the task in its job, with its name if it has one.
    pub task: String,
    /// From then on.
    pub start_ns: u64,
    /// Until then.
    pub end_ns: u64,
    /// The tasks of other processes that it waits for.
    pub after: Vec<ScheduleAfter>,
    /// Whether the task is one of those that determine the end.
    pub is_critical: bool,
    /// Length of the task in instructions.
    pub insns: u64,
    /// The greatest memory that it uses.
    pub memory_bytes: u64,
}

/// A task that another one waits for, by its place.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ScheduleAfter {
    /// Index into [`Schedule::processes`].
    pub process: usize,
    /// Name of the task, as in [`ScheduleTask::task`].
    pub task: String,
}

impl Schedule {
    /// Returns the end of the last task.
    pub fn end_ns(&self) -> u64 {
        self.tasks().map(|task| task.end_ns).max().unwrap_or(0)
    }

    /// All tasks, core by core.
    pub fn tasks(&self) -> impl Iterator<Item = &ScheduleTask> {
        let cores = self.nodes.iter().flat_map(|node| &node.cores);
        cores.flat_map(|core| &core.tasks)
    }
}

/// The greatest amount of the steps.
fn peak(steps: &[(u64, u64)]) -> u64 {
    steps.iter().map(|&(_, amount)| amount).max().unwrap_or(0)
}

/// Returns the amount that is held over time, as steps, for intervals that hold an amount: start,
/// end and amount of each. The amount of an interval is free at its end.
pub fn held(intervals: impl IntoIterator<Item = (u64, u64, u64)>) -> Vec<(u64, u64)> {
    let mut changes = BTreeMap::<u64, (u64, u64)>::new();
    for (start_ns, end_ns, amount) in intervals {
        if start_ns < end_ns {
            changes.entry(start_ns).or_default().0 += amount;
            changes.entry(end_ns).or_default().1 += amount;
        }
    }
    let mut now = 0;
    let steps = changes.into_iter().map(|(at_ns, (taken, given))| {
        now = now + taken - given;
        (at_ns, now)
    });
    steps.collect()
}
