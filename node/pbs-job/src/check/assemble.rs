// SPDX-License-Identifier: GPL-2.0
//! The job that a valid net is.

use super::Net;
use crate::draft::{Draft, Kind};
use crate::{Action, Job, Process, Task};

/// Parts of a valid net.
pub(super) struct Links {
    /// The tasks of each process, in order.
    chains: Vec<Vec<usize>>,
    /// The fork task of each process.
    forked_by: Vec<Option<usize>>,
    /// The join task of each process.
    joined_by: Vec<Option<usize>>,
    /// Action of each task.
    actions: Vec<Action>,
    /// The communications whose messages each task waits for.
    received: Vec<Vec<usize>>,
    /// The tasks that each names to wait for, and those that name it.
    awaits: Vec<Vec<usize>>,
    awaited: Vec<Vec<usize>>,
}

impl Net<'_> {
    /// The edges as they are in a valid net.
    pub(super) fn links(self) -> Links {
        let mut forked_by = vec![None; self.first.len()];
        let mut joined_by = vec![None; self.first.len()];
        let mut chains = Vec::with_capacity(self.first.len());
        for process in 0..self.first.len() {
            let mut chain = Vec::new();
            let mut at = self.first[process].first().copied();
            while let Some(task) = at {
                chain.push(task);
                at = self.next[task].first().copied();
            }
            forked_by[process] = far(&self.far_previous, chain.first());
            joined_by[process] = far(&self.far_next, chain.last());
            chains.push(chain);
        }
        let actions = (0..self.process_of.len()).map(|task| self.action(task));
        let actions = actions.collect();
        Links {
            actions,
            received: self.received,
            awaits: self.awaits,
            awaited: self.awaited,
            chains,
            forked_by,
            joined_by,
        }
    }

    fn action(&self, task: usize) -> Action {
        let process_of = |task: Option<usize>| task.and_then(|task| self.process_of[task]);
        match self.task(task).kind {
            Kind::Start => Action::Start,
            Kind::End => Action::End,
            Kind::ForkEnd => Action::ForkEnd,
            Kind::Calculation => Action::Calculation,
            Kind::Communication => Action::Communication { partner: self.partner[task] },
            Kind::Join => Action::Join { child: process_of(far(&self.far_previous, Some(&task))) },
            Kind::Fork => match process_of(far(&self.far_next, Some(&task))) {
                Some(child) => Action::Fork { child },
                // A valid net has no such fork.
                None => Action::ForkEnd,
            },
        }
    }
}

/// The one task of another process at that end of a task.
fn far(edges: &[Vec<usize>], task: Option<&usize>) -> Option<usize> {
    edges[*task?].first().copied()
}

pub(super) fn assemble(mut draft: Draft, links: Links) -> Job {
    draft.cpus.sort_unstable();
    draft.resources.sort_unstable();
    for process in &mut draft.processes {
        process.cpus.sort_unstable();
        process.resources.sort_unstable();
    }
    let mut place = vec![(0, 0); draft.tasks.len()];
    for (process, chain) in links.chains.iter().enumerate() {
        for (position, &task) in chain.iter().enumerate() {
            place[task] = (process, position);
        }
    }
    let tasks = draft.tasks.into_iter().zip(place);
    let tasks = tasks.zip(links.actions).zip(links.received);
    let orders = links.awaits.into_iter().zip(links.awaited);
    let tasks = tasks.zip(orders).map(
        |((((task, (process, position)), action), senders), (after, before))| Task {
            id: task.id,
            name: task.name,
            process,
            position,
            action,
            insns: task.insns,
            memory_bytes: (task.memory_bytes).unwrap_or(draft.processes[process].memory_bytes),
            message_bytes: task.message_bytes,
            senders,
            after,
            before,
            line: task.line,
        },
    );
    let tasks = tasks.collect();
    let relations = links.forked_by.into_iter().zip(links.joined_by);
    let processes = draft.processes.into_iter().zip(links.chains).zip(relations);
    let processes = processes.map(|((process, tasks), (forked_by, joined_by))| Process {
        id: process.id,
        name: process.name,
        memory_bytes: process.memory_bytes,
        runtime_ns: process.runtime_ns,
        rate_insns_per_s: process.rate_insns_per_s,
        cpus: process.cpus,
        resources: process.resources,
        start: process.start,
        tasks,
        forked_by,
        joined_by,
        line: process.line,
    });
    Job {
        name: draft.name,
        start_ns: draft.start_ns,
        deadline_ns: draft.deadline_ns,
        priority: draft.priority,
        worth: draft.worth,
        checkpoint: draft.checkpoint,
        best_effort: draft.best_effort,
        runtime_ns: draft.runtime_ns,
        memory_bytes: draft.memory_bytes,
        cpus: draft.cpus,
        resources: draft.resources,
        processes: processes.collect(),
        tasks,
    }
}
