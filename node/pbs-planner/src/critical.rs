// SPDX-License-Identifier: GPL-2.0
//! Critical path of a plan: the chain of tasks that ends last. Each task of the chain starts when
//! the one before it has ended, in the net, on its core, in its memory, or with its resource.

use std::collections::HashMap;

use pbs_job::Job;

use crate::{Run, TaskReservation};

/// A task of the critical path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Critical {
    /// Index of the task in the job.
    pub task: usize,
    /// Reason for which the task does not start earlier.
    pub because: Because,
}

/// Reason for which a task of the critical path does not start earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Because {
    /// The task waits for its predecessor in the path: the task before it in its process, a fork,
    /// the end of a child, or a message within the node.
    Order,
    /// The message of that one has to come over a link.
    Message,
    /// The predecessor in the path occupies the core.
    Core,
    /// The task is the first of its process, which needs memory. The predecessor in the path is the
    /// last task of another process, which has returned that memory.
    Memory,
    /// The task is the first of its process, which needs a resource. The predecessor in the path is
    /// the last task of another process, which has returned some of it.
    Resource,
    /// No task of the job delays this one: it is at the beginning, or other jobs have what it
    /// needs.
    Others,
}

/// The critical path of a run of a job, in the order of time.
pub fn critical_path(job: &Job, run: &Run) -> Vec<Critical> {
    let place = |task: usize| run.tasks.binary_search_by_key(&task, |task| task.task).ok();
    let on_core: HashMap<(usize, u64), usize> = (run.tasks.iter().enumerate())
        .filter(|(_, task)| task.start_ns < task.end_ns)
        .map(|(index, task)| ((task.core, task.end_ns), index))
        .collect();
    let arrived: HashMap<(usize, u64), usize> = (run.messages.iter())
        .map(|message| ((message.to, message.arrival_ns), message.from))
        .collect();
    let ended: HashMap<(usize, u64), usize> = (run.processes.iter())
        .map(|process| ((process.node, process.end_ns), process.process))
        .collect();
    let mut returned: HashMap<(usize, u64), usize> = HashMap::new();
    for process in &run.processes {
        let held = process.resources.iter();
        returned.extend(held.map(|held| ((held.resource, process.end_ns), process.process)));
    }
    // The process that begins with a task.
    let begun = |task: &TaskReservation| {
        let index = run.processes.binary_search_by_key(&task.process, |of| of.process);
        let is_first = job.processes[task.process].tasks.first() == Some(&task.task);
        index.ok().filter(|_| is_first).map(|index| &run.processes[index])
    };
    let last_of = |process: usize| place(*job.processes[process].tasks.last()?);
    // Ends of processes that gave the memory, or a resource, with which that of a task begins.
    let memory = |task: &TaskReservation| {
        let process = begun(task)?;
        last_of(*ended.get(&(process.node, task.start_ns))?)
    };
    let resource = |task: &TaskReservation| {
        let mut held = begun(task)?.resources.iter();
        last_of(*held.find_map(|held| returned.get(&(held.resource, task.start_ns)))?)
    };
    let mut path = Vec::new();
    let mut next = (0..run.tasks.len()).max_by_key(|&index| run.tasks[index].end_ns);
    // Each is before the last in the net or on a core, so they come to an end.
    while let Some(index) = next {
        let task = &run.tasks[index];
        let message = arrived.get(&(task.task, task.start_ns));
        let message = message.and_then(|&from| place(from));
        let before = job.predecessors(task.task).filter_map(place);
        let last = before.max_by_key(|&before| run.tasks[before].end_ns);
        let order = last.filter(|&before| run.tasks[before].end_ns == task.start_ns);
        let core = on_core.get(&(task.core, task.start_ns)).copied();
        let reasons = [
            (order, Because::Order),
            (message, Because::Message),
            (core, Because::Core),
            (resource(task), Because::Resource),
            (memory(task), Because::Memory),
        ];
        let mut reasons = reasons.into_iter();
        let found = reasons.find(|(before, _)| before.is_some_and(|before| before != index));
        let because = found.map_or(Because::Others, |(_, because)| because);
        path.push(Critical { task: task.task, because });
        next = found.and_then(|(before, _)| before);
    }
    path.reverse();
    path
}
