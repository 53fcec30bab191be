// SPDX-License-Identifier: GPL-2.0
//! Errors of expected run times, of all jobs of a trace and of each user.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use pbs_cluster_planner::run_times::{ErrorSums, Estimator, Expect, JobKind};
use pbs_site::Learner;
use pbs_text::{grouped, Format, Table};
use serde::Serialize;

use crate::{Outcome, TraceJob};

/// Number of users that are reported: those with the most jobs.
const MOST_USERS: usize = 20;

/// Errors of one rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct EstimateErrors {
    /// Mean of the ratio of the expected and the real run time, the lesser over the greater: 1 if
    /// all are exact (Tsafrir, Etsion and Feitelson 2007).
    pub accuracy: f64,
    /// Mean distance between the expected and the real run time.
    pub error_s: f64,
    /// Part of the jobs that ran longer than expected.
    pub too_short: f64,
}

/// Errors of all rules.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ErrorsByRule {
    /// Number of jobs that ran.
    pub jobs: usize,
    /// The users' limits as expected run times.
    pub limit: EstimateErrors,
    /// The mean of the user's last two run times.
    pub last_two: EstimateErrors,
    /// The upper quartile of jobs that are alike.
    pub quantile: EstimateErrors,
    /// The weighted mean of jobs that are alike.
    pub weighted_mean: EstimateErrors,
    /// The regression.
    pub regression: EstimateErrors,
}

/// Errors of expected run times in a schedule.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunTimeErrors {
    /// Errors of all jobs.
    #[serde(flatten)]
    pub all: ErrorsByRule,
    /// Errors of the users with the most jobs, the one with the most first.
    pub users: Vec<ErrorsOfUser>,
}

/// Errors of a user's jobs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ErrorsOfUser {
    /// Number of the user in the trace.
    pub user: u64,
    /// Errors of all rules.
    #[serde(flatten)]
    pub errors: ErrorsByRule,
}

/// Sums of all rules, in the order of [`rules`].
type OfJobs = [ErrorSums; RULES];

const RULES: usize = 5;

fn rules() -> [Expect; RULES] {
    let [two, quantile, mean, regression] = Learner::ALL.map(Expect::Learned);
    [Expect::Limit, two, quantile, mean, regression]
}

fn add(of: &mut OfJobs, expected_s: [u64; RULES], run_s: u64) {
    of.iter_mut().zip(expected_s).for_each(|(sums, expected_s)| sums.add(expected_s, run_s));
}

impl From<&OfJobs> for ErrorsByRule {
    fn from(of: &OfJobs) -> Self {
        let [limit, last_two, quantile, weighted_mean, regression] = of.map(EstimateErrors::from);
        let jobs = of[0].jobs() as usize;
        Self { jobs, limit, last_two, quantile, weighted_mean, regression }
    }
}

impl From<ErrorSums> for EstimateErrors {
    fn from(sums: ErrorSums) -> Self {
        Self {
            accuracy: sums.accuracy(),
            error_s: sums.mean_error_s(),
            too_short: sums.too_short(),
        }
    }
}

impl RunTimeErrors {
    /// Computes the errors of the run times that are expected when jobs start, in a schedule of a
    /// trace: of those that count, by place, after all that ended before.
    pub fn of(jobs: &[TraceJob], outcomes: &[Outcome], counts: &[bool]) -> Self {
        let ran = outcomes.iter().filter_map(|outcome| {
            let job = jobs.get(outcome.job)?;
            Some((outcome.start_s?, outcome.job, job.kind(), job.occupies_s()))
        });
        let mut ran: Vec<(u64, usize, JobKind<u64>, u64)> = ran.collect();
        ran.sort_unstable_by_key(|&(start_s, place, ..)| (start_s, place));
        let mut estimators = rules().map(Estimator::new);
        let mut ends: BTreeSet<(u64, usize)> = BTreeSet::new();
        let (mut all, mut users) = (OfJobs::default(), BTreeMap::<u64, OfJobs>::new());
        for (index, &(start_s, place, kind, run_s)) in ran.iter().enumerate() {
            while let Some(&(end_s, of)) = ends.first().filter(|(end_s, _)| *end_s <= start_s) {
                ends.remove(&(end_s, of));
                let (_, _, kind, run_s) = ran[of];
                estimators.iter_mut().for_each(|estimator| estimator.ended(&kind, run_s));
            }
            let expected_s: [u64; RULES] =
                std::array::from_fn(|rule| estimators[rule].expected_s(&kind));
            if counts.get(place) == Some(&true) {
                add(&mut all, expected_s, run_s);
                add(users.entry(kind.user).or_default(), expected_s, run_s);
            }
            ends.insert((start_s.saturating_add(run_s), index));
        }
        let mut users: Vec<(u64, OfJobs)> = users.into_iter().collect();
        users.sort_by_key(|&(user, of)| (Reverse(of[0].jobs()), user));
        users.truncate(MOST_USERS);
        let of_user = |(user, of): &(u64, OfJobs)| ErrorsOfUser { user: *user, errors: of.into() };
        let users = users.iter().map(of_user);
        Self { all: (&all).into(), users: users.collect() }
    }

    /// Returns a table of all rules, and one of the users.
    pub fn text(&self, format: Format) -> String {
        let percent = |part: f64| format!("{:.1} %", part * 100.0);
        let mut rules = Table::new(&["expected run time", "accuracy", "error", "too short"], 1);
        for (name, of) in self.all.named() {
            let error = format!("{:.0} s", of.error_s);
            rules.push(vec![name.into(), percent(of.accuracy), error, percent(of.too_short)]);
        }
        let mut titles = vec!["user", "jobs"];
        titles.extend(self.all.named().map(|(name, _)| name));
        let mut users = Table::new(&titles, 1);
        for ErrorsOfUser { user, errors } in &self.users {
            let mut row = vec![user.to_string(), grouped(errors.jobs as u64)];
            row.extend(errors.named().map(|(_, of)| percent(of.accuracy)));
            users.push(row);
        }
        let (rules, users) = (rules.print(format), users.print(format));
        format!("{rules}\nAccuracy of the run times of users with the most jobs:\n\n{users}")
    }
}

impl ErrorsByRule {
    /// Returns the errors of each rule with its name.
    fn named(&self) -> [(&'static str, EstimateErrors); RULES] {
        let [two, quantile, mean, regression] = Learner::ALL.map(Learner::name);
        [
            ("limit", self.limit),
            (two, self.last_two),
            (quantile, self.quantile),
            (mean, self.weighted_mean),
            (regression, self.regression),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ended_jobs_let_expect_something() {
        let job = |submit_s, run_s| TraceJob { user: 3, ..TraceJob::new(submit_s, run_s, 100, 1) };
        let jobs = [job(0, 50), job(10, 50), job(60, 50), job(70, 100)];
        let outcome = |job: usize, start_s: Option<u64>| Outcome {
            job,
            start_s,
            end_s: start_s.unwrap_or(0) + jobs[job].run_s,
            killed: false,
        };
        let outcomes =
            [outcome(0, Some(0)), outcome(1, Some(10)), outcome(2, Some(60)), outcome(3, None)];
        let errors = RunTimeErrors::of(&jobs, &outcomes, &[true; 4]);
        // The first two start before any has ended; the third is expected to run as they did.
        let of = errors.all.last_two;
        assert_eq!((errors.all.jobs, of.accuracy, of.error_s), (3, 2.0 / 3.0, 100.0 / 3.0));
        assert_eq!((errors.all.limit.accuracy, errors.all.limit.too_short), (0.5, 0.0));
        assert_eq!((errors.users.len(), errors.users[0].user), (1, 3));
        // One that does not count teaches nevertheless, and no other stands for it.
        let errors = RunTimeErrors::of(&jobs, &outcomes, &[false, false, true, true]);
        assert_eq!((errors.all.jobs, errors.all.last_two.accuracy), (1, 1.0));
        let outcomes = [outcome(0, Some(0)), outcome(3, Some(70))];
        let errors = RunTimeErrors::of(&jobs, &outcomes, &[true; 4]);
        assert_eq!(errors.all.last_two.too_short, 0.5, "100 s instead of 50 s");
    }
}
