// SPDX-License-Identifier: GPL-2.0
//! Fork, join and messages of a job as the order of the tasks in a plan.

use pbs_job::Job;
use pbs_plan::After;

use crate::Run;

/// Dependencies between the tasks of a job of which only some have a slot.
///
/// A task without instructions has none: who waits for it waits for all that it
/// waits for itself. A task that has ended has none either, and nobody waits for
/// it any more.
pub(super) struct SlotDependencies<'a> {
    job: &'a Job,
    /// Per task: the node on which it has a slot, and the planned end of that.
    nodes: Vec<Option<(usize, u64)>>,
    /// Per task: the search that has come by last.
    seen: Vec<usize>,
    searches: usize,
}

impl<'a> SlotDependencies<'a> {
    /// `slots`: the tasks that have one, with their nodes and planned ends.
    pub(super) fn new(job: &'a Job, slots: impl Iterator<Item = (usize, usize, u64)>) -> Self {
        let mut nodes = vec![None; job.tasks.len()];
        for (task, node, end_ns) in slots {
            nodes[task] = Some((node, end_ns));
        }
        Self { job, nodes, seen: vec![0; job.tasks.len()], searches: 0 }
    }

    /// Returns the dependencies of a task beyond its own process, as the plan of its node declares
    /// them. Dependencies on other nodes are only observed by time. `id` returns the number of a
    /// process of the job.
    ///
    /// A message with a size has a planned arrival, counted from `start_ns`: the end of its sender,
    /// since messages within a node take no time.
    pub(super) fn after(
        &mut self,
        task: usize,
        start_ns: u64,
        mut id: impl FnMut(usize) -> u32,
    ) -> Vec<After> {
        let node_of = |(node, _): (usize, u64)| node;
        let node = self.nodes[task].map(node_of);
        let awaited = self.awaited(task).into_iter();
        let own = awaited.filter(|&before| self.nodes[before].map(node_of) == node);
        let after = own.map(|before| {
            let end_ns = self.nodes[before].map(|(_, end_ns)| end_ns);
            let is_sender = self.job.tasks[task].senders.contains(&before);
            After {
                process: id(self.job.tasks[before].process),
                task: self.job.tasks[before].position as u32,
                arrival_ns: end_ns
                    .filter(|_| is_sender)
                    .map(|end_ns| end_ns.saturating_sub(start_ns)),
                ..After::default()
            }
        });
        after.collect()
    }

    /// The tasks of other processes that a task waits for: of each process the last.
    fn awaited(&mut self, task: usize) -> Vec<usize> {
        self.searches += 1;
        let own = self.job.tasks[task].process;
        let mut found: Vec<(usize, usize)> = Vec::new();
        let mut way: Vec<usize> = self.job.predecessors(task).collect();
        while let Some(before) = way.pop() {
            if std::mem::replace(&mut self.seen[before], self.searches) == self.searches {
                continue;
            }
            let of = &self.job.tasks[before];
            match self.nodes[before] {
                None => way.extend(self.job.predecessors(before)),
                // Its own process runs one task after the other.
                Some(_) if of.process == own => {}
                Some(_) => found.push((of.process, of.position)),
            }
        }
        found.sort_unstable();
        // Of each process, which is on one node, the last.
        found.reverse();
        found.dedup_by_key(|&mut (process, _)| process);
        found.reverse();
        let found = found.into_iter();
        let tasks = found.map(|(process, position)| self.job.processes[process].tasks[position]);
        tasks.collect()
    }
}

/// The tasks of other processes that each task of a run waits for, where both take
/// time: pairs of who waits and who is waited for, of each process the last.
pub fn awaited(job: &Job, run: &Run) -> Vec<(usize, usize)> {
    let slots = run.tasks.iter().filter(|task| task.start_ns < task.end_ns);
    let slots: Vec<_> = slots.map(|task| task.task).collect();
    // As if all were on one node.
    let mut order = SlotDependencies::new(job, slots.iter().map(|&task| (task, 0, 0)));
    let mut pairs = Vec::new();
    for task in slots {
        pairs.extend(order.awaited(task).into_iter().map(|before| (task, before)));
    }
    pairs
}
