// SPDX-License-Identifier: GPL-2.0
//! Schedules under slow-downs of tasks that run side by side (ours).

use crate::lanes::Question;
use pbs_cosched::{OnThreads, Slowing};
use pbs_interference::{names, Entry, Key, Names, Neighbour, Sharing, Slowdowns};

use crate::names::label_of;

/// Slow-downs between the tasks of a question.
///
/// A process has the name of its graph, therefore entries name `graph`, `graph/task` or
/// `graph/task@variant`. Threads of one task do not slow each other, because the task's runtime
/// already includes that. Tasks on accelerators are not slowed either.
#[derive(Clone, Debug, Default)]
pub struct Slowed {
    slowdowns: Slowdowns,
    sharing: Sharing,
    cpus: Vec<u32>,
    /// Process of each task.
    processes: Vec<usize>,
    only_slows: bool,
}

impl Slowed {
    /// Builds the slow-downs from entries, for CPUs that share resources according to `sharing`.
    pub fn new(question: &Question, entries: &[Entry<String>], sharing: Sharing) -> Self {
        let (workload, platform) = (&question.workload, &question.platform);
        let mut known = Names::default();
        for (index, task) in workload.tasks.iter().enumerate() {
            let process = &workload.processes[task.process].name;
            for variant in 0..task.variants.len() {
                let label = label_of(workload, platform, index, variant);
                let place = question.tasks.get(index).map_or(0, |of| of.task as u32);
                let own = names(None, process, place, Some(&task.name), Some(&label));
                known.add(key_of(task.process, index, variant), own);
            }
        }
        let slowdowns = Slowdowns::new(known.resolve(entries));
        Self {
            only_slows: slowdowns.entries().iter().all(|entry| entry.slowdown >= 1.0),
            slowdowns,
            sharing,
            cpus: question.cpus.clone(),
            processes: workload.tasks.iter().map(|task| task.process).collect(),
        }
    }

    fn key(&self, of: &OnThreads<'_>) -> Key {
        let process = self.processes.get(of.task).copied().unwrap_or(usize::MAX);
        key_of(process, of.task, of.variant.unwrap_or(0))
    }

    /// Returns the number of pairs and sets that are known of the tasks.
    pub fn known(&self) -> usize {
        self.slowdowns.entries().len()
    }
}

impl Slowing for Slowed {
    /// Slow-down of a task whose variant is known.
    fn slowdown(&self, task: OnThreads<'_>, beside: &[OnThreads<'_>]) -> f64 {
        let cpu = |thread: &u32| self.cpus.get(*thread as usize).copied();
        let neighbours = beside.iter().filter_map(|other| {
            let pairs = task.threads.iter().filter_map(cpu).flat_map(|one| {
                let theirs = other.threads.iter().filter_map(cpu);
                theirs.map(move |other| self.sharing.level(one, other))
            });
            Some(Neighbour { level: pairs.min()?, key: self.key(other) })
        });
        let neighbours: Vec<Neighbour> = neighbours.collect();
        let slowdown = self.slowdowns.of(self.key(&task), &neighbours).slowdown;
        // Where nothing was measured to be faster beside others, no guess is either.
        if self.only_slows {
            slowdown.max(1.0)
        } else {
            slowdown
        }
    }

    fn only_slows(&self) -> bool {
        self.only_slows
    }
}

fn key_of(process: usize, task: usize, variant: usize) -> Key {
    Key { fingerprint: process as u64, task: task as u32, variant: variant as u32 }
}
