// SPDX-License-Identifier: GPL-2.0
//! What came of a replay, as the literature measures it (Feitelson et al. 1997; Feitelson
//! 2001).

use std::collections::BTreeMap;

use serde::Serialize;

use crate::{Outcome, TraceJob};

/// Jobs shorter than this count as this long in the bounded slowdown: otherwise the very
/// short ones decide of its mean.
pub const SLOWDOWN_BOUND_S: u64 = 10;

/// Of one figure of all jobs: its mean, median, 95th percentile and greatest value. The
/// percentile is the least value that so many are not greater than.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Spread {
    /// Arithmetic.
    pub mean: f64,
    /// The 50th percentile.
    pub median: f64,
    /// The 95th percentile.
    pub p95: f64,
    /// The greatest.
    pub max: f64,
}

impl Spread {
    fn of(mut values: Vec<f64>) -> Self {
        if values.is_empty() {
            return Self::default();
        }
        values.sort_by(f64::total_cmp);
        let percentile = |percent: usize| values[(values.len() * percent).div_ceil(100).max(1) - 1];
        Self {
            mean: values.iter().sum::<f64>() / values.len() as f64,
            median: percentile(50),
            p95: percentile(95),
            max: percentile(100),
        }
    }
}

/// What a policy made of a trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Metrics {
    /// How many jobs ran.
    pub jobs: usize,
    /// How many never started.
    pub unstarted: usize,
    /// From submission to start, in seconds.
    pub wait_s: Spread,
    /// From submission to end, in seconds.
    pub response_s: Spread,
    /// Response over run time.
    pub slowdown: Spread,
    /// Response over run time or [`SLOWDOWN_BOUND_S`], whichever is more, and at least 1.
    pub bounded_slowdown: Spread,
    /// From the first submission to the last end, in seconds.
    pub makespan_s: u64,
    /// Core seconds that were used, of those that there are in the makespan.
    pub utilisation: f64,
    /// Core seconds that were used until the last submission, of those that there are: what
    /// the emptying of the cluster at the end of the trace does not blur.
    pub utilisation_loaded: f64,
    /// Jain's index of the users' mean bounded slowdown: 1 if all fare alike, 1/n if one has
    /// all of it (Jain, Chiu and Hawe 1984).
    pub fairness: f64,
}

impl Metrics {
    /// Of a replay on so many cores.
    pub fn of(jobs: &[TraceJob], outcomes: &[Outcome], cores: u64) -> Self {
        let ran: Vec<(&TraceJob, u64, u64)> = jobs
            .iter()
            .zip(outcomes)
            .filter_map(|(job, outcome)| Some((job, outcome.start_s?, outcome.end_s)))
            .collect();
        let of = |figure: &dyn Fn(&TraceJob, u64, u64) -> f64| {
            Spread::of(
                ran.iter()
                    .map(|&(job, start_s, end_s)| figure(job, start_s, end_s))
                    .collect(),
            )
        };
        let bounded = |job: &TraceJob, start_s: u64, end_s: u64| {
            let run_s = (end_s - start_s).max(SLOWDOWN_BOUND_S) as f64;
            ((end_s - job.submit_s) as f64 / run_s).max(1.0)
        };
        let first_s = jobs.iter().map(|job| job.submit_s).min().unwrap_or(0);
        let last_s = jobs.iter().map(|job| job.submit_s).max().unwrap_or(0);
        let makespan_s = ran
            .iter()
            .map(|&(_, _, end_s)| end_s)
            .max()
            .unwrap_or(0)
            .max(first_s)
            - first_s;
        let used = |until_s: u64| {
            let seconds = ran.iter().map(|&(job, start_s, end_s)| {
                u128::from(end_s.min(until_s).saturating_sub(start_s)) * u128::from(job.cores)
            });
            seconds.sum::<u128>() as f64
        };
        let part = |used: f64, span_s: u64| used / (span_s.max(1) as f64 * cores.max(1) as f64);
        let mut users: BTreeMap<u64, (f64, f64)> = BTreeMap::new();
        for &(job, start_s, end_s) in &ran {
            let user = users.entry(job.user).or_default();
            user.0 += bounded(job, start_s, end_s);
            user.1 += 1.0;
        }
        let means: Vec<f64> = users.values().map(|(sum, count)| sum / count).collect();
        let (sum, squares) = means.iter().fold((0.0, 0.0), |(sum, squares), mean| {
            (sum + mean, squares + mean * mean)
        });
        Self {
            jobs: ran.len(),
            unstarted: jobs.len() - ran.len(),
            wait_s: of(&|job, start_s, _| (start_s - job.submit_s) as f64),
            response_s: of(&|job, _, end_s| (end_s - job.submit_s) as f64),
            slowdown: of(&|job, start_s, end_s| {
                (end_s - job.submit_s) as f64 / (end_s - start_s).max(1) as f64
            }),
            bounded_slowdown: of(&bounded),
            makespan_s,
            utilisation: part(used(u64::MAX), makespan_s),
            utilisation_loaded: part(used(last_s), last_s - first_s),
            fairness: match squares > 0.0 {
                true => sum * sum / (means.len() as f64 * squares),
                false => 1.0,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(submit_s: u64, run_s: u64, cores: u64, user: u64) -> TraceJob {
        TraceJob {
            user,
            ..TraceJob::new(submit_s, run_s, run_s, cores)
        }
    }

    #[test]
    fn figures_worked_by_hand() {
        let jobs = [job(0, 100, 2, 1), job(0, 5, 1, 2), job(50, 50, 2, 1)];
        let outcome = |job, start_s, end_s| Outcome {
            job,
            killed: false,
            start_s: Some(start_s),
            end_s,
        };
        let outcomes = [outcome(0, 0, 100), outcome(1, 0, 5), outcome(2, 100, 150)];
        let metrics = Metrics::of(&jobs, &outcomes, 3);
        assert_eq!((metrics.jobs, metrics.makespan_s), (3, 150));
        assert_eq!(metrics.wait_s.max, 50.0);
        assert_eq!(metrics.response_s.mean, (100.0 + 5.0 + 100.0) / 3.0);
        // 5 s count as 10, but nobody is faster than at once.
        assert_eq!(metrics.bounded_slowdown.mean, (1.0 + 1.0 + 2.0) / 3.0);
        assert_eq!(metrics.utilisation, (200.0 + 5.0 + 100.0) / 450.0);
        assert_eq!(metrics.utilisation_loaded, (100.0 + 5.0) / 150.0);
        assert_eq!(
            metrics.fairness,
            (1.5f64 + 1.0).powi(2) / (2.0 * (2.25 + 1.0))
        );
    }
}
