// SPDX-License-Identifier: GPL-2.0
//! Metrics of a replay, as defined in the literature.
//!
//! | measure | for a job submitted at `c`, started at `s` and ended at `e` | defined in |
//! |---|---|---|
//! | wait | `s − c` | Feitelson and Rudolph 1998 |
//! | response | `e − c` | the same |
//! | slowdown | `(e − c) / (e − s)` | the same |
//! | bounded slowdown | `max(1, (e − c) / max(e − s, τ))` | Feitelson et al. 1997 |
//! | utilisation | used core seconds as a part of the available ones | the same |
//! | fairness | Jain's index | Jain, Chiu and Hawe 1984 |
//!
//! Feitelson et al. 1997 is *Theory and practice in parallel job scheduling*, Feitelson and Rudolph
//! 1998 *Metrics and benchmarking for parallel job scheduling*. Jobs that never started have none
//! of these. A policy that declines many jobs must be compared by [`Metrics::acceptance`] as well.

mod sizes;
mod spread;
mod usage;
mod users;

use std::ops::Range;

use serde::Serialize;

pub use sizes::SizeClass;
pub use spread::Spread;
pub use usage::{mean_usage, usage};
pub use users::Fairness;

use crate::{Outcome, TraceJob};

/// Jobs shorter than this count as this long in the bounded slowdown, in seconds: otherwise
/// the very short ones decide of its mean.
pub const SLOWDOWN_BOUND_S: u64 = 10;

/// Metrics of a policy on a trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Metrics {
    /// Number of jobs that ran.
    pub jobs: usize,
    /// Number of jobs that never started.
    pub unstarted: usize,
    /// Number of jobs that were killed at the end of their requested time.
    pub killed: usize,
    /// Jobs that ran, of all; 1 of none.
    pub acceptance: f64,
    /// From submission to start, in seconds.
    pub wait_s: Spread,
    /// From submission to end, in seconds.
    pub response_s: Spread,
    /// Response over run time.
    pub slowdown: Spread,
    /// Response over run time or the bound, whichever is more, and at least 1.
    pub bounded_slowdown: Spread,
    /// The bound τ, in seconds.
    pub bound_s: u64,
    /// From the first submission to the last end, in seconds.
    pub makespan_s: u64,
    /// Core seconds that were used, of those that there are in the makespan: by all jobs, also by
    /// those that are in no other figure.
    pub utilisation: f64,
    /// Core seconds that were used from the first submission to the last, of those that there
    /// are: what the emptying of the cluster at the end of the trace does not blur. 0 if
    /// all come at once.
    pub utilisation_loaded: f64,
    /// Fairness between users.
    pub fairness: Fairness,
    /// Jobs with a deadline.
    pub deadlines: usize,
    /// Number of jobs with a deadline that ran.
    pub deadlines_accepted: usize,
    /// Number of jobs that ended by their deadline and were not killed.
    pub deadlines_kept: usize,
    /// Metrics by number of cores, from narrow to wide jobs, without empty classes.
    pub sizes: Vec<SizeClass>,
}

/// A job that ran.
#[derive(Clone, Copy)]
struct Ran<'a> {
    job: &'a TraceJob,
    start_s: u64,
    end_s: u64,
    is_killed: bool,
}

impl<'a> Ran<'a> {
    fn of(job: &'a TraceJob, outcome: &Outcome) -> Option<Self> {
        let start_s = outcome.start_s?;
        Some(Self { job, start_s, end_s: outcome.end_s, is_killed: outcome.killed })
    }

    fn wait_s(&self) -> u64 {
        self.start_s.saturating_sub(self.job.submit_s)
    }

    fn response_s(&self) -> u64 {
        self.end_s.saturating_sub(self.job.submit_s)
    }

    fn run_s(&self) -> u64 {
        self.end_s.saturating_sub(self.start_s).max(1)
    }

    fn bounded_slowdown(&self, bound_s: u64) -> f64 {
        (self.response_s() as f64 / self.run_s().max(bound_s) as f64).max(1.0)
    }

    fn core_seconds(&self, within: &Range<u64>) -> u128 {
        let end_s = self.end_s.min(within.end);
        let span_s = end_s.saturating_sub(self.start_s.max(within.start));
        u128::from(span_s) * u128::from(self.job.cores)
    }

    fn keeps_deadline(&self) -> bool {
        let deadline_s = self.job.deadline_s;
        deadline_s.is_some_and(|deadline_s| self.end_s <= deadline_s) && !self.is_killed
    }
}

fn all_that_ran<'a>(jobs: &'a [TraceJob], outcomes: &[Outcome]) -> Vec<Ran<'a>> {
    jobs.iter().zip(outcomes).filter_map(|(job, outcome)| Ran::of(job, outcome)).collect()
}

/// The bounded slowdowns of all that ran, from the least to the greatest.
pub fn bounded_slowdowns(jobs: &[TraceJob], outcomes: &[Outcome], bound_s: u64) -> Vec<f64> {
    let ran = all_that_ran(jobs, outcomes);
    let mut all: Vec<_> = ran.iter().map(|ran| ran.bounded_slowdown(bound_s)).collect();
    all.sort_by(f64::total_cmp);
    all
}

impl Metrics {
    /// Computes the metrics of a replay on that many cores; outcomes are in the order of the trace.
    pub fn of(jobs: &[TraceJob], outcomes: &[Outcome], cores: u64) -> Self {
        Self::with_bound(jobs, outcomes, cores, SLOWDOWN_BOUND_S)
    }

    /// Computes the metrics with another bound τ than [`SLOWDOWN_BOUND_S`], in seconds.
    pub fn with_bound(jobs: &[TraceJob], outcomes: &[Outcome], cores: u64, bound_s: u64) -> Self {
        Self::beside((jobs, outcomes), &[], cores, bound_s)
    }

    /// Computes the metrics of jobs beside others, of which each has used so many cores: these
    /// count in the utilisation alone.
    pub(crate) fn beside(
        (jobs, outcomes): (&[TraceJob], &[Outcome]),
        others: &[(TraceJob, Outcome)],
        cores: u64,
        bound_s: u64,
    ) -> Self {
        let ran = all_that_ran(jobs, outcomes);
        let others = others.iter().filter_map(|(job, outcome)| Ran::of(job, outcome));
        let others: Vec<_> = others.collect();
        let submits = || jobs.iter().map(|job| job.submit_s);
        let first_s = submits().min().unwrap_or(0);
        let last_s = submits().max().unwrap_or(0);
        let end_s = ran.iter().map(|ran| ran.end_s).max().unwrap_or(first_s);
        let makespan_s = end_s.saturating_sub(first_s);
        let part = |until_s: u64| {
            let within = first_s..until_s;
            let all = ran.iter().chain(&others);
            let used: u128 = all.map(|ran| ran.core_seconds(&within)).sum();
            let there = u128::from(until_s.saturating_sub(first_s)) * u128::from(cores);
            used as f64 / there.max(1) as f64
        };
        let seconds =
            |figure: fn(&Ran<'_>) -> u64| Spread::of_seconds(ran.iter().map(figure).collect());
        let slowdown = |ran: &Ran<'_>| ran.response_s() as f64 / ran.run_s() as f64;
        let bounded = |ran: &Ran<'_>| ran.bounded_slowdown(bound_s);
        Self {
            jobs: ran.len(),
            unstarted: jobs.len() - ran.len(),
            killed: ran.iter().filter(|ran| ran.is_killed).count(),
            acceptance: match jobs.len() {
                0 => 1.0,
                all => ran.len() as f64 / all as f64,
            },
            wait_s: seconds(|ran| ran.wait_s()),
            response_s: seconds(|ran| ran.response_s()),
            slowdown: Spread::of_ratios(ran.iter().map(slowdown).collect()),
            bounded_slowdown: Spread::of_ratios(ran.iter().map(bounded).collect()),
            bound_s,
            makespan_s,
            utilisation: part(end_s),
            utilisation_loaded: part(last_s),
            fairness: Fairness::of(&ran, bound_s),
            deadlines: jobs.iter().filter(|job| job.deadline_s.is_some()).count(),
            deadlines_accepted: ran.iter().filter(|ran| ran.job.deadline_s.is_some()).count(),
            deadlines_kept: ran.iter().filter(|ran| ran.keeps_deadline()).count(),
            sizes: SizeClass::all(&ran, bound_s),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(submit_s: u64, run_s: u64, cores: u64, user: u64) -> TraceJob {
        TraceJob { user, ..TraceJob::new(submit_s, run_s, run_s, cores) }
    }

    fn outcome(job: usize, start_s: u64, end_s: u64) -> Outcome {
        Outcome { job, start_s: Some(start_s), end_s, killed: false }
    }

    #[test]
    fn figures_worked_by_hand() {
        let jobs = [job(0, 100, 2, 1), job(0, 5, 1, 2), job(50, 50, 2, 1), job(50, 50, 9, 3)];
        let declined = Outcome { start_s: None, ..outcome(3, 0, 50) };
        let outcomes = [outcome(0, 0, 100), outcome(1, 0, 5), outcome(2, 100, 150), declined];
        let metrics = Metrics::of(&jobs, &outcomes, 3);
        assert_eq!((metrics.jobs, metrics.unstarted, metrics.makespan_s), (3, 1, 150));
        assert_eq!((metrics.acceptance, metrics.killed), (0.75, 0));
        assert_eq!((metrics.wait_s.max, metrics.wait_s.median), (50.0, 0.0));
        assert_eq!(metrics.response_s.mean, (100.0 + 5.0 + 100.0) / 3.0);
        assert_eq!(metrics.slowdown.mean, (1.0 + 1.0 + 2.0) / 3.0);
        assert_eq!(metrics.utilisation, (200.0 + 5.0 + 100.0) / 450.0);
        assert_eq!(metrics.utilisation_loaded, (100.0 + 5.0) / 150.0);
        // User 1 has 1.5 on average and user 2 has 1; user 3 has nothing to measure.
        let fairness = metrics.fairness;
        assert_eq!(fairness.jain, (1.5f64 + 1.0).powi(2) / (2.0 * (2.25 + 1.0)));
        assert_eq!((fairness.users, fairness.best, fairness.worst), (2, 1.0, 1.5));
        // User 1 waited for 50 s and used 300 core seconds.
        assert_eq!(fairness.worst_normalised_wait, 50.0 / 300.0);
        let sizes: Vec<_> =
            metrics.sizes.iter().map(|size| (size.cores.as_str(), size.jobs)).collect();
        assert_eq!(sizes, [("1", 1), ("2–15", 2)]);
        assert_eq!(metrics.sizes[1].wait_s.mean, 25.0);
        assert_eq!(metrics.sizes[1].core_seconds, 300);
    }

    /// Cores of jobs that are in no other figure are not idle.
    #[test]
    fn jobs_beside_those_that_count_use_cores() {
        let (before, counted) = (job(0, 100, 2, 1), job(50, 50, 1, 1));
        let others = [(before, outcome(0, 0, 100))];
        let jobs = ([counted], [outcome(1, 50, 100)]);
        let metrics = Metrics::beside((&jobs.0, &jobs.1), &others, 4, SLOWDOWN_BOUND_S);
        assert_eq!((metrics.jobs, metrics.utilisation), (1, 150.0 / 200.0));
    }

    #[test]
    fn short_jobs_count_as_long_as_the_bound() {
        let jobs = [job(0, 1, 1, 1)];
        let bounded = |start_s, bound_s| {
            let outcomes = [outcome(0, start_s, start_s + 1)];
            Metrics::with_bound(&jobs, &outcomes, 1, bound_s).bounded_slowdown.mean
        };
        assert_eq!((bounded(0, 10), bounded(5, 10), bounded(19, 10)), (1.0, 1.0, 2.0));
        assert_eq!((bounded(19, 1), bounded(19, 0)), (20.0, 20.0));
        let outcomes = [outcome(0, 19, 20)];
        assert_eq!(bounded_slowdowns(&jobs, &outcomes, 10), [2.0]);
    }

    #[test]
    fn deadlines_that_were_kept() {
        let mut jobs = [job(0, 10, 1, 1), job(0, 10, 1, 1), job(0, 10, 1, 1), job(0, 10, 1, 1)];
        for (job, deadline_s) in jobs.iter_mut().zip([Some(10), Some(9), None, Some(99)]) {
            job.deadline_s = deadline_s;
        }
        let mut outcomes = [0, 1, 2, 3].map(|job| outcome(job, 0, 10));
        outcomes[1].start_s = None;
        let accepted = Metrics::of(&jobs, &outcomes, 4).deadlines_accepted;
        assert_eq!(accepted, 2, "who never ran was declined");
        outcomes[1].start_s = Some(0);
        // Killed in time is not what was wanted.
        outcomes[3].killed = true;
        let metrics = Metrics::of(&jobs, &outcomes, 4);
        assert_eq!((metrics.deadlines, metrics.deadlines_kept, metrics.killed), (3, 1, 1));
    }

    #[test]
    fn nothing_has_no_figures() {
        let metrics = Metrics::of(&[], &[], 0);
        assert_eq!((metrics.utilisation, metrics.acceptance), (0.0, 1.0));
        assert_eq!((metrics.fairness.jain, metrics.wait_s), (1.0, Spread::default()));
    }
}
