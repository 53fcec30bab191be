// SPDX-License-Identifier: GPL-2.0
//! Free cores of one pool over time, and the search for a plan on it.
//!
//! A search places thousands of requests a second, one after the other, and forgets all of them
//! again. A sorted list of steps is copied in one move and read in the order of the memory;
//! therefore it is faster for this purpose than the tree of `pbs-profile`.

use super::score::{Objective, WaitingJob};
use super::search::{Board, Budget, Search};

/// Free cores from a time on, until the next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    from_s: u64,
    cores: u64,
}

/// Free cores of a pool, from now on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pool {
    /// In the order of time; the last step has no end.
    steps: Vec<Step>,
}

impl Pool {
    /// Creates a pool that is idle from a time on.
    pub fn new(now_s: u64, cores: u64) -> Self {
        Self { steps: vec![Step { from_s: now_s, cores }] }
    }

    /// Creates a pool in which running jobs hold cores until their ends; each is an end and its
    /// cores. Ends that are over count as now.
    pub fn with_running(now_s: u64, cores: u64, running: impl Iterator<Item = (u64, u64)>) -> Self {
        let mut ends: Vec<(u64, u64)> = running.collect();
        ends.sort_unstable();
        let held: u64 = ends.iter().map(|of| of.1).sum();
        let mut pool = Self::new(now_s, cores.saturating_sub(held));
        for (end_s, held) in ends {
            let last = pool.steps[pool.steps.len() - 1];
            let cores = last.cores + held;
            if end_s > last.from_s {
                pool.steps.push(Step { from_s: end_s, cores });
            } else {
                let place = pool.steps.len() - 1;
                pool.steps[place].cores = cores;
            }
        }
        pool
    }

    /// Replaces this pool by another one, in the same memory.
    fn copy_from(&mut self, other: &Self) {
        self.steps.clear();
        self.steps.extend_from_slice(&other.steps);
    }

    /// Returns the number of cores that are free at the begin.
    pub fn free_now(&self) -> u64 {
        self.steps[0].cores
    }

    /// Takes cores for a duration at the earliest time at which they are free throughout. Returns
    /// that time. A job wider than the pool has none, and changes nothing.
    pub fn place(&mut self, cores: u64, duration_s: u64) -> Option<u64> {
        let (first, end_s, after) = self.earliest(cores, duration_s)?;
        Some(self.take(cores, first, end_s, after))
    }

    /// Takes the cores of a job at the earliest time at which its spare cores are free, too; a
    /// promised start that is earlier comes first.
    fn place_job(&mut self, job: &WaitingJob) -> Option<u64> {
        let beside = match job.spare_cores {
            0 => None,
            spare => self.earliest(job.cores.saturating_add(spare), job.duration_s),
        };
        let is_in_time = |first: usize| self.steps[first].from_s <= job.latest_start_s;
        match beside.filter(|&(first, _, _)| is_in_time(first)) {
            Some((first, end_s, after)) => Some(self.take(job.cores, first, end_s, after)),
            None => self.place(job.cores, job.duration_s),
        }
    }

    /// Takes cores from a step on, until the end, before which all steps up to `after` begin.
    /// Returns the start.
    fn take(&mut self, cores: u64, first: usize, end_s: u64, after: usize) -> u64 {
        let start_s = self.steps[first].from_s;
        let mut after = after;
        // Does the job end within the last step that it overlaps?
        if self.steps.get(after).is_none_or(|step| step.from_s != end_s) {
            let step = Step { from_s: end_s, ..self.steps[after - 1] };
            self.steps.insert(after, step);
            after += 1;
        }
        for step in &mut self.steps[first..after] {
            if step.from_s < end_s {
                step.cores -= cores;
            }
        }
        start_s
    }

    /// Returns the step at which the job starts, its end, and the first step after all that it
    /// overlaps. A fit begins with a step: before it, too few cores are free.
    fn earliest(&self, cores: u64, duration_s: u64) -> Option<(usize, u64, usize)> {
        let mut first = None;
        for (place, step) in self.steps.iter().enumerate() {
            if let Some((start, end_s)) = first {
                if step.from_s >= end_s {
                    return Some((start, end_s, place));
                }
            }
            if step.cores < cores {
                first = None;
            } else if first.is_none() {
                first = Some((place, step.from_s.saturating_add(duration_s)));
            }
        }
        first.map(|(start, end_s)| (start, end_s, self.steps.len()))
    }
}

/// A pool on which orders are tried.
struct Trial<'a> {
    free: &'a Pool,
    jobs: &'a [WaitingJob],
    pool: Pool,
}

impl Board for Trial<'_> {
    fn begin(&mut self, _: &[u32]) -> usize {
        self.pool.copy_from(self.free);
        0
    }

    fn place(&mut self, job: u32) -> Option<u64> {
        self.pool.place_job(&self.jobs[job as usize])
    }
}

/// Best plan that a search found.
#[derive(Clone, Debug, PartialEq)]
pub struct BestPlan {
    /// Planned start of each job, in the order of the jobs.
    pub starts_s: Vec<u64>,
    /// Cost of the plan.
    pub cost: f64,
    /// Cost of the current plan, with which the search began.
    pub first_cost: f64,
    /// Number of orders that were scored.
    pub orders: u64,
    /// Number of jobs that were placed.
    pub placements: u64,
}

/// Seeks the plan of all jobs with the least cost. `current` is the order of the current plan; its
/// plan is the result unless another one costs less, and keeps all promises. Equal arguments have
/// equal results on every machine.
///
/// Returns `None` if a job is wider than the pool, or the current order breaks a promise and so
/// does every other one that was tried.
///
/// ```
/// use pbs_cluster_planner::optimise::{optimise, Budget, Objective, Pool, WaitingJob};
///
/// // The short job goes first, although it came last.
/// let jobs = [WaitingJob::new(4, 1_000), WaitingJob::new(4, 10)];
/// let (free, objective) = (Pool::new(0, 4), Objective::default());
/// let found = optimise(0, &free, &jobs, &[0, 1], objective, Budget::default(), 1).unwrap();
/// assert_eq!(found.starts_s, [10, 0]);
/// assert!(found.cost < found.first_cost);
/// ```
pub fn optimise(
    now_s: u64,
    free: &Pool,
    jobs: &[WaitingJob],
    current: &[u32],
    objective: Objective,
    budget: Budget,
    seed: u64,
) -> Option<BestPlan> {
    let trial = Trial { free, jobs, pool: free.clone() };
    let mut search = Search::new(trial, now_s, jobs.to_vec(), current, objective, budget, seed);
    while search.run(u64::MAX) {}
    Some(BestPlan {
        cost: search.best_cost()?,
        first_cost: search.first_cost(),
        orders: search.orders(),
        placements: search.placements(),
        starts_s: search.best().1.to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_are_placed_at_their_earliest_fit() {
        let mut pool = Pool::with_running(10, 4, [(10, 1), (30, 2), (20, 1)].into_iter());
        assert_eq!(pool.free_now(), 1);
        assert_eq!(pool.place(4, 10), Some(30));
        // Beside the running jobs and before the wide one.
        assert_eq!(pool.place(1, 20), Some(10));
        assert_eq!(pool.place(1, 15), Some(40));
        assert_eq!(pool.place(1, 10), Some(20));
        assert_eq!(pool.place(3, 1), Some(40));
        assert_eq!(pool.place(5, 1), None);
    }
}
