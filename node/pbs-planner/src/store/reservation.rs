// SPDX-License-Identifier: GPL-2.0
//! Reservations of runs (Glaß 2024, table 2).

use std::fmt;
use std::ops::Range;

/// Tells the runs of jobs apart: the same job can be planned many times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(pub u64);

/// An amount of a resource of the machine that a process holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldAmount {
    /// Index of the resource on the machine.
    pub resource: usize,
    /// Amount of the resource.
    pub count: u64,
}

/// The memory and the resources of a process, from the start of its first task to the end of its
/// last (Glaß 2024, 4.3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessReservation {
    /// Index of the process in its job.
    pub process: usize,
    /// Index of the node on the machine.
    pub node: usize,
    /// The core's number on the machine, that of
    /// [`Machine::cores`](pbs_job::Machine::cores).
    pub core: usize,
    /// From then on.
    pub start_ns: u64,
    /// Until then.
    pub end_ns: u64,
    /// Reserved part of the memory that the core's processes share.
    pub memory_bytes: u64,
    /// Reserved amounts of the machine's resources.
    pub resources: Vec<HeldAmount>,
}

/// The time of a core for a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskReservation {
    /// Index of the task in its job.
    pub task: usize,
    /// Index of its process in the job.
    pub process: usize,
    /// The core's number on the machine.
    pub core: usize,
    /// From then on.
    pub start_ns: u64,
    /// Until then; the start, where the task has no instructions.
    pub end_ns: u64,
    /// The greatest memory that it uses, a part of its process's.
    pub memory_bytes: u64,
}

/// The time of a link for a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageReservation {
    /// Index of the task that sends it, in the job.
    pub from: usize,
    /// Index of the task that waits for it.
    pub to: usize,
    /// Index of the link on the machine.
    pub link: usize,
    /// The link carries it from then on.
    pub start_ns: u64,
    /// Until then.
    pub end_ns: u64,
    /// Arrival of the message: the end of its transfer plus the latency of the link.
    pub arrival_ns: u64,
}

/// A stretch within the time of a task in which others have its core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interruption {
    /// Index of the task in its job.
    pub task: usize,
    /// From then on, after the start of the task.
    pub start_ns: u64,
    /// Until then, before the end of the task.
    pub end_ns: u64,
}

/// All reservations of a run of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// In the order of the job's processes.
    pub processes: Vec<ProcessReservation>,
    /// In the order of the job's tasks.
    pub tasks: Vec<TaskReservation>,
    /// The messages that go over links, in the order of their start.
    pub messages: Vec<MessageReservation>,
    /// Interruptions of tasks, in the order of the tasks and of time. Only what the demand test
    /// admits is interrupted.
    pub interruptions: Vec<Interruption>,
}

impl Run {
    /// Returns the end of the last reservation; 0 if there is none.
    pub fn end_ns(&self) -> u64 {
        let tasks = self.tasks.iter().map(|task| task.end_ns);
        let processes = self.processes.iter().map(|process| process.end_ns);
        tasks.chain(processes).max().unwrap_or(0)
    }

    /// The times for which processes hold amounts of a resource of the machine: start, end and
    /// amount of each.
    pub fn held(&self, resource: usize) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        self.processes.iter().flat_map(move |process| {
            let held = process.resources.iter().filter(move |held| held.resource == resource);
            held.map(|held| (process.start_ns, process.end_ns, held.count))
        })
    }

    /// The processes that hold amounts of a resource of the machine, by their places in the job,
    /// each with the start and the amount.
    pub fn holders(&self, resource: usize) -> impl Iterator<Item = (usize, u64, u64)> + '_ {
        self.processes.iter().flat_map(move |process| {
            let held = process.resources.iter().filter(move |held| held.resource == resource);
            held.map(|held| (process.process, process.start_ns, held.count))
        })
    }

    /// Returns the start of the first reservation; `None` if there is none.
    pub fn start_ns(&self) -> Option<u64> {
        let tasks = self.tasks.iter().map(|task| task.start_ns);
        let processes = self.processes.iter().map(|process| process.start_ns);
        tasks.chain(processes).min()
    }
}

impl Run {
    /// The stretches in which the core executes one of the run's tasks, in order.
    pub fn stretches(&self, task: &TaskReservation) -> impl Iterator<Item = Range<u64>> + '_ {
        let first = self.interruptions.partition_point(|it| it.task < task.task);
        let own = self.interruptions[first..].iter().take_while({
            let task = task.task;
            move |it| it.task == task
        });
        let starts = std::iter::once(task.start_ns).chain(own.clone().map(|it| it.end_ns));
        let ends = own.map(|it| it.start_ns).chain(std::iter::once(task.end_ns));
        starts.zip(ends).map(|(start_ns, end_ns)| start_ns..end_ns)
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
