// SPDX-License-Identifier: GPL-2.0
//! Fork, join and messages of a job as the order of the tasks in a plan.

use std::rc::Rc;

use pbs_job::Job;
use pbs_plan::After;
use pbs_uapi::MAX_EDGES;

use crate::budget::{tally, Budget};
use crate::reserve::net::order;
use crate::Run;

/// Most dependencies between the tasks of all runs of a plan, with those that pass through tasks
/// without a slot.
pub(super) const MOST_DEPENDENCIES: u64 = MAX_EDGES as u64;

/// Dependencies between the tasks of a job of which only some have a slot.
///
/// A task without instructions has none: a task that waits for it waits for all that it
/// waits for itself. A task that has ended has none either, and nobody waits for
/// it any more.
///
/// Each task without a slot for which several wait is passed through only once.
pub(super) struct SlotDependencies<'a> {
    job: &'a Job,
    /// Per task.
    slots: Vec<TaskSlot>,
    /// Per task without a slot for which several wait: the tasks with a slot that it waits for.
    awaited: Vec<Option<Rc<[LastAwaited]>>>,
    /// A step for each dependency that is looked at.
    work: &'a Budget,
}

/// Slot of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TaskSlot {
    Ended,
    /// The task takes no time.
    Missing,
    Planned {
        node: usize,
        end_ns: u64,
    },
}

/// A process with the position of its last task that is awaited.
type LastAwaited = (usize, usize);

impl<'a> SlotDependencies<'a> {
    /// `open`: the tasks that have not ended. `slots`: those of them that have a slot, with their
    /// nodes and planned ends. `work` counts the dependencies; once it is spent, none are found.
    pub(super) fn new(
        job: &'a Job,
        open: impl Iterator<Item = usize>,
        slots: impl Iterator<Item = (usize, usize, u64)>,
        work: &'a Budget,
    ) -> Self {
        // A process that waits in a task without instructions counts as in the task after that.
        let unplanned = |insns: u64| if insns > 0 { TaskSlot::Ended } else { TaskSlot::Missing };
        let mut of_tasks: Vec<_> = job.tasks.iter().map(|task| unplanned(task.insns)).collect();
        for task in open {
            of_tasks[task] = TaskSlot::Missing;
        }
        for (task, node, end_ns) in slots {
            of_tasks[task] = TaskSlot::Planned { node, end_ns };
        }
        let mut found = Self { job, slots: of_tasks, awaited: vec![None; job.tasks.len()], work };
        found.pass_through();
        found
    }

    /// Finds what the tasks without a slot wait for.
    fn pass_through(&mut self) {
        let is_missing = |slot: &TaskSlot| *slot == TaskSlot::Missing;
        let missing: Vec<bool> = self.slots.iter().map(is_missing).collect();
        let mut waiting = vec![0u32; missing.len()];
        let open = (0..missing.len()).filter(|&task| self.slots[task] != TaskSlot::Ended);
        for before in open.flat_map(|task| self.job.predecessors(task)) {
            waiting[before] += 1;
        }
        // The others are looked at once, by the only task that waits for them.
        let is_passed = |task: usize| missing[task] && waiting[task] > 1;
        let none: Rc<[LastAwaited]> = Rc::from([]);
        for task in (0..missing.len()).filter(|&task| is_passed(task)) {
            self.awaited[task] = Some(Rc::clone(&none));
        }
        for task in order(self.job, &missing).into_iter().filter(|&task| is_passed(task)) {
            self.awaited[task] = Some(self.gather(task));
        }
    }

    /// Returns the dependencies of a task beyond its own process, as the plan of its node declares
    /// them. Dependencies on other nodes are only observed by time. `id` returns the number of a
    /// process of the job.
    ///
    /// A message with a size has a planned arrival, counted from `start_ns`: the end of its sender,
    /// since messages within a node take no time.
    pub(super) fn after(
        &self,
        task: usize,
        start_ns: u64,
        mut id: impl FnMut(usize) -> u32,
    ) -> Vec<After> {
        let place = |task: usize| match self.slots[task] {
            TaskSlot::Planned { node, end_ns } => Some((node, end_ns)),
            TaskSlot::Ended | TaskSlot::Missing => None,
        };
        let node = place(task).map(|(node, _)| node);
        let awaited = self.awaited(task).into_iter();
        let own = awaited.filter(|&before| place(before).map(|(node, _)| node) == node);
        let after = own.map(|before| {
            let end_ns = place(before).map(|(_, end_ns)| end_ns);
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

    /// Returns the tasks of other processes that a task waits for: of each process the last.
    fn awaited(&self, task: usize) -> Vec<usize> {
        let own = self.job.tasks[task].process;
        let found = self.gather(task);
        // Its own process runs one task after the other.
        let others = found.iter().filter(|(process, _)| *process != own);
        others.map(|&(process, position)| self.job.processes[process].tasks[position]).collect()
    }

    /// Returns what a task waits for, in the order of the processes. What the tasks without a slot
    /// wait for that come before it is known already.
    fn gather(&self, task: usize) -> Rc<[LastAwaited]> {
        let mut found: Vec<LastAwaited> = Vec::new();
        let mut only: Option<&Rc<[LastAwaited]>> = None;
        let mut is_shared = true;
        let mut way: Vec<usize> = self.job.predecessors(task).collect();
        while let Some(before) = way.pop().filter(|_| !self.work.is_spent()) {
            tally::add(1);
            match (self.slots[before], &self.awaited[before]) {
                (TaskSlot::Ended, _) => {}
                (TaskSlot::Missing, None) => way.extend(self.job.predecessors(before)),
                (TaskSlot::Missing, Some(known)) => {
                    let is_same = only.is_some_and(|only| Rc::ptr_eq(only, known));
                    if is_same || known.is_empty() {
                        continue;
                    }
                    self.work.add(known.len() as u64);
                    tally::add(known.len() as u64);
                    found.extend(known.iter());
                    is_shared &= only.is_none();
                    only = Some(known);
                }
                (TaskSlot::Planned { .. }, _) => {
                    let of = &self.job.tasks[before];
                    self.work.add(1);
                    found.push((of.process, of.position));
                    is_shared = false;
                }
            }
        }
        if let Some(only) = only.filter(|_| is_shared) {
            return Rc::clone(only);
        }
        // Parts of it are in order.
        found.sort();
        // Of each process, which is on one node, the last.
        found.reverse();
        found.dedup_by_key(|&mut (process, _)| process);
        found.reverse();
        found.into()
    }
}

/// The tasks of other processes that each task of a run waits for, where both take
/// time: pairs of who waits and who is waited for, of each process the last. `None`: they are more
/// than a plan may have.
pub fn awaited(job: &Job, run: &Run) -> Option<Vec<(usize, usize)>> {
    let work = Budget::new(MOST_DEPENDENCIES);
    let slots = run.tasks.iter().filter(|task| task.start_ns < task.end_ns);
    let slots: Vec<_> = slots.map(|task| task.task).collect();
    let open = run.tasks.iter().map(|task| task.task);
    // As if all were on one node.
    let of_slots = slots.iter().map(|&task| (task, 0, 0));
    let order = SlotDependencies::new(job, open, of_slots, &work);
    let mut pairs = Vec::new();
    for task in slots {
        pairs.extend(order.awaited(task).into_iter().map(|before| (task, before)));
    }
    (!work.is_spent()).then_some(pairs)
}

#[cfg(test)]
mod tests;
