// SPDX-License-Identifier: GPL-2.0
//! Objective of a plan, and the plan of an order.

use super::pool::Pool;

/// Jobs shorter than this count as this long in the bounded slowdown, in seconds.
const SLOWDOWN_BOUND_S: u64 = 10;

/// A request that has not started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitingJob {
    /// Number of cores.
    pub cores: u64,
    /// Time for which the cores are booked.
    pub duration_s: u64,
    /// Run time that is expected, for the slowdown.
    pub expected_s: u64,
    /// Time since the submission.
    pub waited_s: u64,
    /// Latest start that was promised; [`u64::MAX`] without a promise.
    pub latest_start_s: u64,
}

/// Weights of what a plan costs, summed over all jobs. Less is better.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Objective {
    /// Cost of a second of waiting.
    pub wait_per_s: f64,
    /// Cost of one unit of bounded slowdown.
    pub slowdown: f64,
    /// Growth of these costs with each second of waiting, for evenness: one long wait costs more
    /// than several short ones, and no job is put off for ever.
    pub growth_per_s: f64,
}

impl Default for Objective {
    /// A unit of slowdown counts as ten minutes of waiting. After a wait of 5,000 s each further
    /// second costs twice as much as the first one, after 10,000 s three times as much.
    fn default() -> Self {
        Self { wait_per_s: 1.0, slowdown: 600.0, growth_per_s: 0.0001 }
    }
}

impl Objective {
    /// Returns the cost of a job that starts so long after its submission.
    fn cost(&self, job: &WaitingJob, wait_s: u64) -> f64 {
        let wait_s = wait_s as f64;
        let of_slowdown = self.slowdown / job.expected_s.max(SLOWDOWN_BOUND_S) as f64;
        wait_s * (self.wait_per_s + of_slowdown) * (1.0 + self.growth_per_s * wait_s)
    }

    /// Returns the cost of a second of waiting of a job that has not waited, for each second of
    /// each of its cores: jobs with more of it go first in a good order.
    pub(super) fn urgency(&self, job: &WaitingJob) -> f64 {
        let area = job.cores as f64 * job.duration_s.max(1) as f64;
        self.cost(job, job.waited_s + 1) / (job.waited_s + 1) as f64 / area
    }
}

/// Jobs that are planned, and where.
pub(super) struct Scorer<'a> {
    pub(super) now_s: u64,
    pub(super) free: &'a Pool,
    pub(super) jobs: &'a [WaitingJob],
    pub(super) objective: Objective,
    /// Number of jobs that were placed up to now: the work of the search.
    pub(super) placements: u64,
    pool: Pool,
}

impl<'a> Scorer<'a> {
    pub(super) fn new(
        now_s: u64,
        free: &'a Pool,
        jobs: &'a [WaitingJob],
        objective: Objective,
    ) -> Self {
        Self { now_s, free, jobs, objective, placements: 0, pool: free.clone() }
    }

    /// Returns the cost of the plan of an order, and stores its starts, by job. `None`: a job would
    /// start later than promised, or the cost is more than `most`; the rest of the order is not
    /// placed then.
    pub(super) fn score(&mut self, order: &[u32], most: f64, starts_s: &mut [u64]) -> Option<f64> {
        self.pool.copy_from(self.free);
        let mut cost = 0.0;
        for &place in order {
            let job = &self.jobs[place as usize];
            self.placements += 1;
            let start_s = self.pool.place(job.cores, job.duration_s)?;
            if start_s > job.latest_start_s {
                return None;
            }
            starts_s[place as usize] = start_s;
            cost += self.objective.cost(job, job.waited_s + (start_s - self.now_s));
            if cost > most {
                return None;
            }
        }
        Some(cost)
    }
}
