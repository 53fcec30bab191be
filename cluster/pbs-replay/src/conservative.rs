// SPDX-License-Identifier: GPL-2.0
//! Conservative backfilling (Mu'alem and Feitelson 2001): every job has a reservation, and
//! where one ends early the others move up, in the order in which they came.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use pbs_profile::{Profile, FOREVER};

use crate::{Policy, TraceJob};

/// The reservations on a cluster of cores.
#[derive(Clone, Debug)]
pub struct Conservative {
    free_cores: Profile,
    /// Those that wait, with cores, the time that they ask for, and their start.
    waiting: BTreeMap<usize, (u64, u64, u64)>,
    starts: BTreeSet<(u64, usize)>,
    running: HashMap<usize, (u64, u64)>,
    /// Cores were given back since the reservations were looked at.
    is_loose: bool,
}

impl Conservative {
    /// Nothing runs.
    pub fn new(cores: u64) -> Self {
        Self {
            free_cores: Profile::new(cores),
            waiting: BTreeMap::new(),
            starts: BTreeSet::new(),
            running: HashMap::new(),
            is_loose: false,
        }
    }

    /// Changes what is free; reservations never exceed it, nor is more given back.
    fn change(&mut self, from_s: u64, until_s: u64, cores: u64, is_more: bool) {
        let over = from_s..until_s.max(from_s);
        let done = match is_more {
            true => self.free_cores.subtract(over, cores),
            false => self.free_cores.add(over, cores),
        };
        debug_assert_eq!(done, Ok(()));
    }

    fn first_s(&self, now_s: u64, cores: u64, requested_s: u64) -> u64 {
        let window = now_s..FOREVER;
        let found = self.free_cores.find_first_hole(cores, requested_s, window);
        found.unwrap_or(FOREVER)
    }

    /// Each looks for an earlier time, or keeps its own.
    fn compress(&mut self, now_s: u64) {
        let waiting: Vec<_> = self.waiting.iter().map(|(&job, &of)| (job, of)).collect();
        for (job, (cores, requested_s, start_s)) in waiting {
            if start_s <= now_s {
                continue;
            }
            self.change(start_s, start_s + requested_s, cores, false);
            let earlier_s = self.first_s(now_s, cores, requested_s).min(start_s);
            self.change(earlier_s, earlier_s + requested_s, cores, true);
            if earlier_s < start_s {
                self.starts.remove(&(start_s, job));
                self.starts.insert((earlier_s, job));
                self.waiting.insert(job, (cores, requested_s, earlier_s));
            }
        }
    }
}

impl Policy for Conservative {
    fn name(&self) -> &str {
        "conservative"
    }

    fn submit(&mut self, now_s: u64, job: usize, what: &TraceJob) {
        // Who came before has what was given back.
        if std::mem::take(&mut self.is_loose) {
            self.compress(now_s);
        }
        let start_s = self.first_s(now_s, what.cores, what.requested_s);
        if start_s < FOREVER {
            self.change(start_s, start_s + what.requested_s, what.cores, true);
            self.starts.insert((start_s, job));
            self.waiting
                .insert(job, (what.cores, what.requested_s, start_s));
        }
    }

    fn ended(&mut self, now_s: u64, job: usize) {
        if let Some((end_s, cores)) = self.running.remove(&job) {
            self.is_loose |= end_s > now_s;
            self.change(now_s, end_s, cores, false);
        }
    }

    fn start(&mut self, now_s: u64, started: &mut Vec<usize>) {
        if std::mem::take(&mut self.is_loose) {
            self.compress(now_s);
        }
        self.free_cores.forget_before(now_s);
        while let Some(&(start_s, job)) = self.starts.first() {
            if start_s > now_s {
                break;
            }
            self.starts.pop_first();
            if let Some((cores, requested_s, _)) = self.waiting.remove(&job) {
                self.running.insert(job, (start_s + requested_s, cores));
                started.push(job);
            }
        }
    }

    fn next_s(&self) -> Option<u64> {
        self.starts.first().map(|&(start_s, _)| start_s)
    }
}
