// SPDX-License-Identifier: GPL-2.0
//! EASY with the shortest job first among those that backfill: SJF-EASY with the limits of users,
//! and EASY++ with learned run times (Tsafrir, Etsion and Feitelson 2007, *Backfilling using
//! system-generated predictions rather than user runtime estimates*).

use std::collections::HashMap;

use crate::estimator::{corrected_end_s, Estimator, Expect};
use crate::{Policy, TraceJob};

/// The queue of a pool of cores. The first of the queue has a reservation.
#[derive(Clone, Debug)]
pub struct SjfEasy {
    cores: u64,
    free_cores: u64,
    estimator: Estimator,
    expect: Expect,
    /// In the order of submission.
    waiting: Vec<Waiter>,
    running: HashMap<usize, Running>,
}

#[derive(Clone, Copy, Debug)]
struct Waiter {
    job: usize,
    cores: u64,
    limit_s: u64,
    user: u64,
}

#[derive(Clone, Copy, Debug)]
struct Running {
    cores: u64,
    user: u64,
    start_s: u64,
    /// Expected end.
    end_s: u64,
    limit_end_s: u64,
}

impl SjfEasy {
    /// Creates a scheduler for that many idle cores.
    pub fn new(cores: u64, expect: Expect) -> Self {
        Self {
            cores,
            free_cores: cores,
            estimator: Estimator::new(expect),
            expect,
            waiting: Vec::new(),
            running: HashMap::new(),
        }
    }

    fn expected_s(&self, waiter: &Waiter) -> u64 {
        self.estimator.expected_s(waiter.user, waiter.limit_s)
    }

    fn begin(&mut self, now_s: u64, waiter: Waiter, started: &mut Vec<usize>) {
        let running = Running {
            cores: waiter.cores,
            user: waiter.user,
            start_s: now_s,
            end_s: now_s.saturating_add(self.expected_s(&waiter)),
            limit_end_s: now_s.saturating_add(waiter.limit_s),
        };
        self.free_cores -= waiter.cores;
        self.running.insert(waiter.job, running);
        started.push(waiter.job);
    }

    /// Returns the expected time at which `cores` are free, and the number of additional free cores
    /// at that time.
    fn first_free(&self, cores: u64) -> (u64, u64) {
        let mut ends: Vec<(u64, u64)> =
            self.running.values().map(|of| (of.end_s, of.cores)).collect();
        ends.sort_unstable();
        let (mut free, mut first_s) = (self.free_cores, None);
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
            Expect::Learned => "EASY++",
        }
    }

    fn submit(&mut self, _: u64, job: usize, what: &TraceJob) {
        if (1..=self.cores).contains(&what.cores) {
            let limit_s = what.requested_s.max(1);
            self.waiting.push(Waiter { job, cores: what.cores, limit_s, user: what.user });
        }
    }

    fn ended(&mut self, now_s: u64, job: usize) {
        if let Some(of) = self.running.remove(&job) {
            self.free_cores += of.cores;
            self.estimator.ended(of.user, now_s - of.start_s);
        }
    }

    fn start(&mut self, now_s: u64, started: &mut Vec<usize>) {
        for of in self.running.values_mut() {
            of.end_s = corrected_end_s(now_s, of.start_s, of.end_s, of.limit_end_s);
        }
        let mut places = 0;
        while let Some(&first) = self.waiting.get(places) {
            if first.cores > self.free_cores {
                break;
            }
            places += 1;
            self.begin(now_s, first, started);
        }
        self.waiting.drain(..places);
        let Some(&first) = self.waiting.first() else {
            return;
        };
        let (first_s, mut spare_cores) = self.first_free(first.cores);
        let mut behind: Vec<(u64, usize, Waiter)> = Vec::new();
        for (place, &waiter) in self.waiting.iter().enumerate().skip(1) {
            if waiter.cores <= self.free_cores {
                behind.push((self.expected_s(&waiter), place, waiter));
            }
        }
        behind.sort_unstable_by_key(|&(expected_s, place, _)| (expected_s, place));
        let mut gone = Vec::new();
        for (expected_s, place, waiter) in behind {
            let in_time = now_s.saturating_add(expected_s) <= first_s;
            let beside = waiter.cores <= spare_cores;
            if waiter.cores > self.free_cores || !(in_time || beside) {
                continue;
            }
            if !in_time {
                spare_cores -= waiter.cores;
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
