// SPDX-License-Identifier: GPL-2.0
//! EASY backfilling (Lifka 1995; Mu'alem and Feitelson 2001): the first of the queue has a
//! reservation, and others may go before it if they do not delay it.

use std::collections::{BTreeSet, HashMap, VecDeque};

use crate::{Policy, TraceJob};

/// The queue of a cluster of cores.
#[derive(Clone, Debug)]
pub struct Easy {
    free_cores: u64,
    /// Jobs with cores and the time that they ask for.
    queue: VecDeque<(usize, u64, u64)>,
    /// When they have to be over, with their cores.
    ends: BTreeSet<(u64, usize, u64)>,
    running: HashMap<usize, (u64, u64)>,
}

impl Easy {
    /// Nothing runs.
    pub fn new(cores: u64) -> Self {
        Self {
            free_cores: cores,
            queue: VecDeque::new(),
            ends: BTreeSet::new(),
            running: HashMap::new(),
        }
    }

    fn begin(&mut self, now_s: u64, (job, cores, requested_s): (usize, u64, u64)) {
        self.free_cores -= cores;
        let end_s = now_s + requested_s;
        self.ends.insert((end_s, job, cores));
        self.running.insert(job, (end_s, cores));
    }

    /// When so many cores are free if all run for as long as they may, and how many more
    /// are then.
    fn reservation(&self, cores: u64) -> (u64, u64) {
        let mut free_cores = self.free_cores;
        let mut enough_s = None;
        for &(end_s, _, more) in &self.ends {
            // What ends at the same time is free as well.
            if enough_s.is_some_and(|enough_s| enough_s < end_s) {
                break;
            }
            free_cores += more;
            if free_cores >= cores {
                enough_s = Some(end_s);
            }
        }
        match enough_s {
            Some(enough_s) => (enough_s, free_cores - cores),
            None => (u64::MAX, 0),
        }
    }
}

impl Policy for Easy {
    fn name(&self) -> &str {
        "EASY"
    }

    fn submit(&mut self, _: u64, job: usize, what: &TraceJob) {
        self.queue.push_back((job, what.cores, what.requested_s));
    }

    fn ended(&mut self, _: u64, job: usize) {
        if let Some((end_s, cores)) = self.running.remove(&job) {
            self.ends.remove(&(end_s, job, cores));
            self.free_cores += cores;
        }
    }

    fn start(&mut self, now_s: u64, started: &mut Vec<usize>) {
        while let Some(&first) = self.queue.front() {
            if first.1 > self.free_cores {
                break;
            }
            self.queue.pop_front();
            self.begin(now_s, first);
            started.push(first.0);
        }
        let Some(&(_, head_cores, _)) = self.queue.front() else {
            return;
        };
        let (head_s, mut extra_cores) = self.reservation(head_cores);
        let mut at = 1;
        while at < self.queue.len() && self.free_cores > 0 {
            let job = self.queue[at];
            let (_, cores, requested_s) = job;
            let in_time = now_s + requested_s <= head_s;
            if cores > self.free_cores || (!in_time && cores > extra_cores) {
                at += 1;
                continue;
            }
            if !in_time {
                extra_cores -= cores;
            }
            self.queue.remove(at);
            self.begin(now_s, job);
            started.push(job.0);
        }
    }
}
