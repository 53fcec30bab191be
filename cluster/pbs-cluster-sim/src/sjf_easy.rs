// SPDX-License-Identifier: GPL-2.0
//! EASY with the shortest job first among those that backfill: SJF-EASY with the limits of users,
//! and EASY++ with learned run times (Tsafrir, Etsion and Feitelson 2007, *Backfilling using
//! system-generated predictions rather than user runtime estimates*).

use pbs_cluster_planner::run_times::{Expect, JobKind};
use pbs_site::Learner;

use crate::running::{RunningJobs, Starting};
use crate::{Policy, TraceJob};

/// The queue of a pool of cores. The first of the queue has a reservation.
#[derive(Clone, Debug)]
pub struct SjfEasy {
    cores: u64,
    expect: Expect,
    /// In the order of submission.
    waiting: Vec<Waiter>,
    running: RunningJobs,
}

#[derive(Clone, Copy, Debug)]
struct Waiter {
    job: usize,
    kind: JobKind<u64>,
}

impl SjfEasy {
    /// Creates a scheduler for that many idle cores.
    pub fn new(cores: u64, expect: Expect) -> Self {
        Self { cores, expect, waiting: Vec::new(), running: RunningJobs::new(cores, expect) }
    }

    fn expected_s(&self, waiter: &Waiter) -> u64 {
        self.running.expected_s(&waiter.kind)
    }

    fn begin(&mut self, now_s: u64, waiter: Waiter, started: &mut Vec<usize>) {
        let booked_s = self.expected_s(&waiter);
        let Waiter { job, kind } = waiter;
        self.running.begin(now_s, Starting { job, kind, booked_s });
        started.push(waiter.job);
    }

    /// Returns the expected time at which `cores` are free, and the number of additional free cores
    /// at that time.
    fn first_free(&self, cores: u64) -> (u64, u64) {
        let mut ends: Vec<(u64, u64)> = self.running.ends().collect();
        ends.sort_unstable();
        let (mut free, mut first_s) = (self.running.free_cores(), None);
        for (end_s, held) in ends {
            if first_s.is_some_and(|first_s| end_s > first_s) {
                break;
            }
            free += held;
            if free >= cores {
                first_s = Some(end_s);
            }
        }
        (first_s.unwrap_or(u64::MAX), free.saturating_sub(cores))
    }
}

impl Policy for SjfEasy {
    fn name(&self) -> &str {
        match self.expect {
            Expect::Limit => "SJF-EASY",
            Expect::Learned(Learner::LastTwo) => "EASY++",
            Expect::Learned(Learner::Quantile) => "EASY++, quantile",
            Expect::Learned(Learner::WeightedMean) => "EASY++, weighted-mean",
            Expect::Learned(Learner::Regression) => "EASY++, regression",
        }
    }

    fn submit(&mut self, _: u64, job: usize, what: &TraceJob) {
        if (1..=self.cores).contains(&what.cores) {
            self.waiting.push(Waiter { job, kind: what.kind() });
        }
    }

    fn ended(&mut self, now_s: u64, job: usize) {
        self.running.ended(now_s, job);
    }

    fn start(&mut self, now_s: u64, started: &mut Vec<usize>) {
        self.running.correct(now_s);
        let mut places = 0;
        while let Some(&first) = self.waiting.get(places) {
            if first.kind.cores > self.running.free_cores() {
                break;
            }
            places += 1;
            self.begin(now_s, first, started);
        }
        self.waiting.drain(..places);
        let Some(&first) = self.waiting.first() else {
            return;
        };
        let (first_s, mut spare_cores) = self.first_free(first.kind.cores);
        let mut behind: Vec<(u64, usize, Waiter)> = Vec::new();
        for (place, &waiter) in self.waiting.iter().enumerate().skip(1) {
            if waiter.kind.cores <= self.running.free_cores() {
                behind.push((self.expected_s(&waiter), place, waiter));
            }
        }
        behind.sort_unstable_by_key(|&(expected_s, place, _)| (expected_s, place));
        let mut gone = Vec::new();
        for (expected_s, place, waiter) in behind {
            let in_time = now_s.saturating_add(expected_s) <= first_s;
            let beside = waiter.kind.cores <= spare_cores;
            if waiter.kind.cores > self.running.free_cores() || !(in_time || beside) {
                continue;
            }
            if !in_time {
                spare_cores -= waiter.kind.cores;
            }
            gone.push(place);
            self.begin(now_s, waiter, started);
        }
        gone.sort_unstable();
        for place in gone.into_iter().rev() {
            self.waiting.remove(place);
        }
    }
}
