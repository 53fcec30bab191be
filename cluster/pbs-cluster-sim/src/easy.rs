// SPDX-License-Identifier: GPL-2.0
//! EASY backfilling (Lifka 1995, *The ANL/IBM SP scheduling system*; Mu'alem and Feitelson
//! 2001, *Utilization, predictability, workloads, and user runtime estimates in scheduling
//! the IBM SP2 with backfilling*): the first of the queue has a reservation, and others may
//! go before it if they do not delay it.

use std::collections::HashMap;

use pbs_profile::{Profile, FOREVER};

use crate::waiting::{Waiter, Waiting};
use crate::{Policy, TraceJob};

/// The queue of a cluster of cores. Who goes before the first has left when that one starts,
/// or takes only cores that it does not need then. Those are tried in the order in which
/// they came.
#[derive(Clone, Debug)]
pub struct Easy {
    cores: u64,
    /// If all that run do so for as long as they may.
    free_cores: Profile,
    waiting: Waiting,
    running: HashMap<usize, (u64, u64)>,
    reservation: Option<(usize, u64)>,
}

impl Easy {
    /// Creates a scheduler for that many idle cores.
    pub fn new(cores: u64) -> Self {
        Self {
            cores,
            free_cores: Profile::new(cores),
            waiting: Waiting::default(),
            running: HashMap::new(),
            reservation: None,
        }
    }

    /// The first of those that wait, by its place in the trace, and when it starts at the
    /// latest, in seconds: as was told when it was asked last who starts. It may be earlier,
    /// if somebody ends before they have to.
    pub fn reservation(&self) -> Option<(usize, u64)> {
        self.reservation
    }

    fn begin(&mut self, now_s: u64, came: u64, waiter: Waiter) {
        self.waiting.remove(came);
        let end_s = now_s.saturating_add(waiter.requested_s);
        let taken = self.free_cores.subtract(now_s..end_s, waiter.cores);
        debug_assert_eq!(taken, Ok(()));
        self.running.insert(waiter.job, (end_s, waiter.cores));
    }

    /// Returns the time at which `cores` are free if all jobs run for their whole requested time,
    /// and the number of additional free cores at that time.
    fn first_free(&self, now_s: u64, cores: u64) -> (u64, u64) {
        let free = &self.free_cores;
        match free.first_at_least(cores, now_s..FOREVER) {
            Some(free_s) => (free_s, free.value_at(free_s).saturating_sub(cores)),
            None => (FOREVER, 0),
        }
    }
}

impl Policy for Easy {
    fn name(&self) -> &str {
        "EASY"
    }

    fn submit(&mut self, _: u64, job: usize, what: &TraceJob) {
        if (1..=self.cores).contains(&what.cores) {
            self.waiting.push(Waiter { job, cores: what.cores, requested_s: what.requested_s });
        }
    }

    fn ended(&mut self, now_s: u64, job: usize) {
        if let Some((end_s, cores)) = self.running.remove(&job) {
            let given = self.free_cores.add(now_s..end_s.max(now_s), cores);
            debug_assert_eq!(given, Ok(()));
        }
    }

    fn start(&mut self, now_s: u64, started: &mut Vec<usize>) {
        self.free_cores.forget_before(now_s);
        self.reservation = None;
        let mut free_cores = self.free_cores.value_at(now_s);
        let (first_came, first) = loop {
            let Some((came, first)) = self.waiting.first() else {
                return;
            };
            if first.cores > free_cores {
                break (came, first);
            }
            free_cores -= first.cores;
            self.begin(now_s, came, first);
            started.push(first.job);
        };
        let (first_s, mut spare_cores) = self.first_free(now_s, first.cores);
        self.reservation = Some((first.job, first_s));
        let mut came = first_came;
        while free_cores > 0 {
            // Cores and time only become less: who did not fit does not fit later.
            let in_time = self.waiting.next(came, free_cores, first_s - now_s);
            let beside = self.waiting.next(came, free_cores.min(spare_cores), u64::MAX);
            let next = [in_time, beside].into_iter().flatten().min_by_key(|next| next.0);
            let Some((next_came, next)) = next else { break };
            if next.requested_s > first_s - now_s {
                spare_cores -= next.cores;
            }
            came = next_came;
            free_cores -= next.cores;
            self.begin(now_s, came, next);
            started.push(next.job);
        }
    }
}
