// SPDX-License-Identifier: GPL-2.0
//! Summary of jobs before planning: number, run time, cores and accuracy of the users' estimates;
//! by cores as in Keller's example 3.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::TraceJob;

const DAY_S: f64 = 86_400.0;

/// Summary of all jobs of a trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Number of jobs.
    pub jobs: usize,
    /// Number of users.
    pub users: usize,
    /// Number of groups.
    pub groups: usize,
    /// From the first submission to the last.
    pub span_s: u64,
    /// Jobs in a day, on average.
    pub per_day: f64,
    /// The most that come on a day, of 24 hours from the begin of the trace on.
    pub busiest_day: usize,
    /// Mean time for which a job occupies its cores.
    pub mean_run_s: f64,
    /// The shortest and the longest of those times.
    pub run_s: (u64, u64),
    /// The fewest and the most cores of a job.
    pub cores: (u64, u64),
    /// Run time over what was asked for, on average of jobs.
    pub mean_accuracy: f64,
    /// Core seconds that all take.
    pub core_s: u128,
    /// Jobs by number of cores; the classes with the most core time come first.
    pub sizes: Vec<Size>,
}

/// Summary of the jobs with the same number of cores.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Size {
    /// Number of cores.
    pub cores: u64,
    /// Number of jobs.
    pub jobs: usize,
    /// Share of all jobs.
    pub share_of_jobs: f64,
    /// Mean time for which a job occupies its cores.
    pub mean_run_s: f64,
    /// Run time over what was asked for, on average.
    pub mean_accuracy: f64,
    /// Core time that they take, as a part of that of all.
    pub share_of_core_s: f64,
}

#[derive(Default)]
struct Sums {
    jobs: usize,
    run_s: u128,
    core_s: u128,
    accuracy: f64,
}

impl Sums {
    fn add(&mut self, job: &TraceJob) {
        let run_s = job.occupies_s();
        self.jobs += 1;
        self.run_s += u128::from(run_s);
        self.core_s += u128::from(run_s) * u128::from(job.cores);
        self.accuracy += run_s as f64 / job.requested_s.max(1) as f64;
    }

    fn mean(&self, of: f64) -> f64 {
        of / self.jobs.max(1) as f64
    }
}

impl Summary {
    /// Summarizes jobs.
    pub fn of(jobs: &[TraceJob]) -> Self {
        let mut all = Sums::default();
        let mut by_cores: BTreeMap<u64, Sums> = BTreeMap::new();
        let mut days: BTreeMap<u64, usize> = BTreeMap::new();
        let first_s = jobs.iter().map(|job| job.submit_s).min().unwrap_or(0);
        for job in jobs {
            all.add(job);
            by_cores.entry(job.cores).or_default().add(job);
            *days.entry((job.submit_s - first_s) / 86_400).or_default() += 1;
        }
        let span_s = jobs.iter().map(|job| job.submit_s - first_s).max();
        let span_s = span_s.unwrap_or(0);
        let size = |(&cores, of): (&u64, &Sums)| Size {
            cores,
            jobs: of.jobs,
            share_of_jobs: of.jobs as f64 / jobs.len() as f64,
            mean_run_s: of.mean(of.run_s as f64),
            mean_accuracy: of.mean(of.accuracy),
            share_of_core_s: of.core_s as f64 / all.core_s as f64,
        };
        let mut sizes: Vec<Size> = by_cores.iter().map(size).collect();
        sizes.sort_by(|a, b| b.share_of_core_s.total_cmp(&a.share_of_core_s));
        let ends = |of: fn(&TraceJob) -> u64| {
            let values = || jobs.iter().map(of);
            (values().min().unwrap_or(0), values().max().unwrap_or(0))
        };
        let many = |of: fn(&TraceJob) -> u64| jobs.iter().map(of).collect::<BTreeSet<_>>().len();
        Self {
            jobs: jobs.len(),
            users: many(|job| job.user),
            groups: many(|job| job.group),
            span_s,
            per_day: match span_s {
                0 => jobs.len() as f64,
                span_s => jobs.len() as f64 / (span_s as f64 / DAY_S),
            },
            busiest_day: days.values().copied().max().unwrap_or(0),
            mean_run_s: all.mean(all.run_s as f64),
            run_s: ends(TraceJob::occupies_s),
            cores: ends(|job| job.cores),
            mean_accuracy: all.mean(all.accuracy),
            core_s: all.core_s,
            sizes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_worked_by_hand() {
        let job = |submit_s, run_s, requested_s, cores, user| TraceJob {
            user,
            group: user,
            ..TraceJob::new(submit_s, run_s, requested_s, cores)
        };
        let jobs = [job(100, 50, 100, 4, 1), job(100, 100, 100, 1, 2), job(86_500, 300, 200, 1, 1)];
        let of = Summary::of(&jobs);
        assert_eq!((of.jobs, of.users, of.groups, of.span_s), (3, 2, 2, 86_400));
        assert_eq!((of.per_day, of.busiest_day), (3.0, 2));
        // The third is killed at the end of its time.
        assert_eq!((of.run_s, of.cores, of.core_s), ((50, 200), (1, 4), 500));
        assert_eq!(of.mean_run_s, 350.0 / 3.0);
        assert_eq!(of.mean_accuracy, 2.5 / 3.0);
        let sizes: Vec<_> = of.sizes.iter().map(|of| (of.cores, of.jobs)).collect();
        assert_eq!(sizes, [(1, 2), (4, 1)]);
        assert_eq!(of.sizes[1].share_of_core_s, 200.0 / 500.0);
        let none = Summary::of(&[]);
        assert_eq!((none.jobs, none.mean_accuracy, none.per_day), (0, 0.0, 0.0));
    }
}
