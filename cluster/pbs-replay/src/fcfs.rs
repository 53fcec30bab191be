// SPDX-License-Identifier: GPL-2.0
//! First come, first served: nobody overtakes.

use std::collections::{HashMap, VecDeque};

use crate::{Policy, TraceJob};

/// The queue of a cluster of cores.
#[derive(Clone, Debug)]
pub struct Fcfs {
    free_cores: u64,
    queue: VecDeque<(usize, u64)>,
    running: HashMap<usize, u64>,
}

impl Fcfs {
    /// Nothing runs.
    pub fn new(cores: u64) -> Self {
        Self {
            free_cores: cores,
            queue: VecDeque::new(),
            running: HashMap::new(),
        }
    }
}

impl Policy for Fcfs {
    fn name(&self) -> &str {
        "FCFS"
    }

    fn submit(&mut self, _: u64, job: usize, what: &TraceJob) {
        self.queue.push_back((job, what.cores));
    }

    fn ended(&mut self, _: u64, job: usize) {
        self.free_cores += self.running.remove(&job).unwrap_or(0);
    }

    fn start(&mut self, _: u64, started: &mut Vec<usize>) {
        while let Some(&(job, cores)) = self.queue.front() {
            if cores > self.free_cores {
                break;
            }
            self.queue.pop_front();
            self.free_cores -= cores;
            self.running.insert(job, cores);
            started.push(job);
        }
    }
}
