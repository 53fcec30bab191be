// SPDX-License-Identifier: GPL-2.0
//! First come, first served: nobody overtakes.

use std::collections::{HashMap, VecDeque};

use crate::{Policy, TraceJob};

/// The queue of a cluster of cores: the first starts as soon as there are enough, and all
/// others wait for it. What jobs ask for is of no account.
#[derive(Clone, Debug)]
pub struct Fcfs {
    cores: u64,
    free_cores: u64,
    queue: VecDeque<(usize, u64)>,
    running: HashMap<usize, u64>,
}

impl Fcfs {
    /// Creates a scheduler for that many idle cores.
    pub fn new(cores: u64) -> Self {
        Self { cores, free_cores: cores, queue: VecDeque::new(), running: HashMap::new() }
    }
}

impl Policy for Fcfs {
    fn name(&self) -> &str {
        "FCFS"
    }

    fn submit(&mut self, _: u64, job: usize, what: &TraceJob) {
        // It would wait for ever, and all others behind it.
        if (1..=self.cores).contains(&what.cores) {
            self.queue.push_back((job, what.cores));
        }
    }

    fn ended(&mut self, _: u64, job: usize) {
        self.free_cores += self.running.remove(&job).unwrap_or(0);
    }

    fn start(&mut self, _: u64, started: &mut Vec<usize>) {
        while let Some((job, cores)) = self.queue.pop_front() {
            if cores > self.free_cores {
                self.queue.push_front((job, cores));
                break;
            }
            self.free_cores -= cores;
            self.running.insert(job, cores);
            started.push(job);
        }
    }
}
