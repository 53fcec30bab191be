// SPDX-License-Identifier: GPL-2.0
//! Nets of many processes that wait for one and that one waits for: a workflow that splits its
//! input, treats the parts, and puts the results together.

use pbs_job::{Action, Job, Process, Task};

use super::{link_children, task};

/// Parts of a fan.
#[derive(Clone, Debug)]
pub struct Fan {
    /// Instructions of the task for which all others wait; 0: they wait for none.
    pub root_insns: u64,
    /// Instructions of each of the others before it waits; 0: it begins when the root has ended. A
    /// process that has begun holds its memory while it waits.
    pub ahead_insns: u64,
    /// Instructions of each of the others.
    pub insns: u64,
    /// Memory of the process of each of the others.
    pub memory_bytes: Vec<u64>,
}

impl Fan {
    /// A root, so many processes of equal memory, and one that waits for all of them. At 10⁹
    /// instructions in a second, the root takes 100 s and each of the others 10 s.
    pub fn of(processes: usize, memory_bytes: u64) -> Self {
        Self {
            root_insns: 100_000_000_000,
            ahead_insns: 0,
            insns: 10_000_000_000,
            memory_bytes: vec![memory_bytes; processes],
        }
    }

    /// The job, whose initial process forks and joins all others. Without a root, nothing waits.
    pub fn job(&self) -> Job {
        let mut job = Job { name: "fan".into(), deadline_ns: u64::MAX, ..Job::default() };
        let has_root = self.root_insns > 0;
        // Memory, and instructions ahead and then.
        let mut children: Vec<(u64, u64, u64)> = Vec::new();
        children.extend(has_root.then_some((1 << 20, 0, self.root_insns)));
        let ahead_insns = self.ahead_insns;
        children.extend(self.memory_bytes.iter().map(|&bytes| (bytes, ahead_insns, self.insns)));
        children.extend(has_root.then_some((1 << 20, 0, self.insns / 10)));
        add(&mut job, 0, |tasks| {
            tasks.push((Action::Start, 0));
            tasks.extend((1..=children.len()).map(|child| (Action::Fork { child }, 0)));
            tasks
                .extend((1..=children.len()).map(|child| (Action::Join { child: Some(child) }, 0)));
            tasks.push((Action::End, 0));
        });
        for &(memory_bytes, ahead_insns, insns) in &children {
            add(&mut job, memory_bytes, |tasks| {
                tasks.push((Action::ForkEnd, 0));
                let both = [ahead_insns, insns].into_iter().filter(|&insns| insns > 0);
                tasks.extend(both.map(|insns| (Action::Calculation, insns)));
            });
        }
        link_children(&mut job);
        if has_root {
            let work = |process: usize| {
                job.processes[process].tasks[job.processes[process].tasks.len() - 1]
            };
            let (root, last) = (work(1), work(children.len()));
            for part in (2..children.len()).map(work).collect::<Vec<_>>() {
                for (before, after) in [(root, part), (part, last)] {
                    job.tasks[before].before.push(after);
                    job.tasks[after].after.push(before);
                }
            }
        }
        job
    }
}

/// Adds a process of these tasks, with their instructions.
fn add(job: &mut Job, memory_bytes: u64, fill: impl FnOnce(&mut Vec<(Action, u64)>)) {
    let mut tasks = Vec::new();
    fill(&mut tasks);
    let index = job.processes.len();
    let first = job.tasks.len();
    let id = index as u32;
    let own = (first..first + tasks.len()).collect();
    job.processes.push(Process { id, memory_bytes, tasks: own, ..Process::default() });
    job.tasks.extend(tasks.into_iter().enumerate().map(|(position, (action, insns))| Task {
        insns,
        memory_bytes,
        ..task(first + position, index, position, action)
    }));
}
