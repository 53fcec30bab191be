// SPDX-License-Identifier: GPL-2.0
//! Scenes of the planner's benchmarks: synthetic, and the same on every machine.

#![allow(dead_code)] // each benchmark takes a part

use pbs_gen::nets::{large_job, large_machine, random_job, Random};
use pbs_job::Job;
use pbs_planner::{Balancing, Store};

/// A second, and the instructions of the shortest task.
pub(crate) const S: u64 = 1_000_000_000;

/// 64 nodes of 16 cores, of which nothing is reserved.
pub(crate) fn empty() -> Store {
    Store::new(large_machine(64, 16, 256 << 30), Balancing::Dynamic)
}

/// 30,000 tasks in 800 processes, forked and joined.
pub(crate) fn large_net() -> Job {
    large_job(&mut Random::new(1), 800, 30_000, 4 << 30, 3 * S)
}

/// Net of that many tasks in 400 processes; the first takes a second's instructions.
pub(crate) fn open_net(tasks: usize) -> Job {
    let mut job = large_job(&mut Random::new(4), 400, tasks, 4 << 30, 3 * S);
    job.tasks[0].insns = S;
    job
}

/// Small jobs: one process or up to four, tasks of up to some seconds.
pub(crate) fn small_jobs(count: usize, seed: u64) -> Vec<Job> {
    let random = &mut Random::new(seed);
    let jobs = (0..count).map(|_| {
        let children = random.below(4) as usize;
        let mut job = random_job(random, children, 4, 16 << 30);
        for task in &mut job.tasks {
            task.insns *= S;
        }
        job
    });
    jobs.collect()
}
