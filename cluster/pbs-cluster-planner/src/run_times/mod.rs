// SPDX-License-Identifier: GPL-2.0
//! Run times that a scheduler expects, learned from those of a user's last jobs.
//!
//! An expected run time is never more than the user's limit, which remains the time at which a job
//! is killed. A job that outlives its expected end gets another one ([`corrected_end_s`]).

mod errors;
mod history;
mod regression;

use std::hash::{DefaultHasher, Hash, Hasher};

use pbs_site::Learner;

pub use errors::ErrorSums;
use history::History;
use regression::Regression;

/// Source of expected run times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// The limit of the user.
    Limit,
    /// Run times of the user's earlier jobs.
    Learned(Learner),
}

/// Properties of a job that are known before it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobKind<U> {
    /// User who owns the job.
    pub user: U,
    /// Number of the application; `None`: it is unknown. See [`application`].
    pub application: Option<u64>,
    /// Number of cores.
    pub cores: u64,
    /// Run time after which the job is killed.
    pub limit_s: u64,
}

impl<U> JobKind<U> {
    /// A job of an unknown application.
    pub fn new(user: U, cores: u64, limit_s: u64) -> Self {
        Self { user, application: None, cores, limit_s }
    }
}

/// Bytes of the name of a request, and of the file name of its program, that tell applications apart.
const NAME_BYTES: usize = 255;

/// Returns the number of an application: of the name of a request, in which digits count nothing,
/// and of the file name of its program. Numbered requests, and those of one array, are of one
/// application. Returns `None` if there is neither a name nor a program.
///
/// Only the first 255 bytes of the name and the last 255 bytes of the program count: a user chooses
/// both, and the number is computed in each search. It is only compared with others of the same
/// process.
pub fn application(name: &str, program: Option<&str>) -> Option<u64> {
    let name = name.bytes().take(NAME_BYTES).filter(|of| !of.is_ascii_digit());
    let program = program.unwrap_or_default().as_bytes();
    let program = &program[program.len().saturating_sub(NAME_BYTES)..];
    let program = program.rsplit(|of| *of == b'/').next().unwrap_or_default();
    if name.clone().next().is_none() && program.is_empty() {
        return None;
    }
    let mut hasher = DefaultHasher::new();
    name.for_each(|of| hasher.write_u8(of));
    program.hash(&mut hasher);
    Some(hasher.finish())
}

/// Expected run times, by what has ended up to now.
#[derive(Clone, Debug)]
pub struct Estimator<U> {
    expect: Expect,
    history: History<U>,
    regression: Regression,
}

impl<U: Clone + Eq + Hash> Estimator<U> {
    /// Creates an estimator without a history.
    pub fn new(expect: Expect) -> Self {
        Self { expect, history: History::new(), regression: Regression::new() }
    }

    /// Records the run time of a job that has ended.
    pub fn ended(&mut self, job: &JobKind<U>, run_s: u64) {
        if self.expect == Expect::Learned(Learner::Regression) {
            self.regression.learn(&self.history, job, run_s);
        }
        self.history.push(job, run_s);
    }

    /// Whether the user of a job has a history.
    pub fn has_history(&self, user: &U) -> bool {
        self.history.of_user(user).is_some()
    }

    /// Returns the expected run time of a job: its limit, as long as its user has no history.
    pub fn expected_s(&self, job: &JobKind<U>) -> u64 {
        let limit_s = job.limit_s.max(1);
        let expected_s = match self.expect {
            Expect::Limit => None,
            Expect::Learned(Learner::LastTwo) => self.history.mean_of_two_s(&job.user),
            Expect::Learned(Learner::Quantile) => self.history.upper_quartile_s(job),
            Expect::Learned(Learner::WeightedMean) => self.history.weighted_mean_s(job),
            Expect::Learned(Learner::Regression) => self.regression.expected_s(&self.history, job),
        };
        expected_s.unwrap_or(limit_s).clamp(1, limit_s)
    }
}

/// Returns the expected end of a job that has passed its expected end: its run time up to now is
/// doubled until the end is ahead. Never after the end of its limit.
pub fn corrected_end_s(now_s: u64, start_s: u64, end_s: u64, limit_end_s: u64) -> u64 {
    let mut span_s = end_s.saturating_sub(start_s).max(1);
    while start_s.saturating_add(span_s) <= now_s {
        span_s = span_s.saturating_mul(2);
    }
    start_s.saturating_add(span_s).min(limit_end_s.max(now_s.saturating_add(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(user: u64, cores: u64, limit_s: u64) -> JobKind<u64> {
        JobKind::new(user, cores, limit_s)
    }

    #[test]
    fn the_mean_of_the_last_two_is_expected() {
        let mut learned = Estimator::new(Expect::Learned(Learner::LastTwo));
        let of = job(1, 4, 100);
        assert_eq!(learned.expected_s(&of), 100, "nothing is known yet");
        learned.ended(&of, 40);
        assert_eq!(learned.expected_s(&of), 40);
        learned.ended(&of, 20);
        learned.ended(&job(1, 1, 300), 60);
        assert_eq!(learned.expected_s(&of), 40, "the first one is forgotten");
        assert_eq!(learned.expected_s(&job(1, 4, 30)), 30, "the limit binds");
        assert_eq!(learned.expected_s(&job(2, 4, 100)), 100, "another user");
        let mut limit = Estimator::new(Expect::Limit);
        limit.ended(&of, 40);
        assert_eq!(limit.expected_s(&of), 100);
    }

    #[test]
    fn the_upper_quartile_of_jobs_that_are_alike_is_expected() {
        let mut learned = Estimator::new(Expect::Learned(Learner::Quantile));
        let of = job(1, 4, 100);
        for run_s in [90, 10, 20] {
            learned.ended(&of, run_s);
        }
        // Two jobs of another kind are not enough to say anything of their kind.
        learned.ended(&job(1, 8, 500), 400);
        learned.ended(&job(1, 8, 500), 400);
        assert_eq!(learned.expected_s(&of), 90);
        learned.ended(&of, 30);
        assert_eq!(learned.expected_s(&of), 30, "the third of four");
        assert_eq!(learned.expected_s(&job(1, 8, 500)), 400, "the fifth of all six of the user");
        learned.ended(&job(1, 8, 500), 50);
        assert_eq!(learned.expected_s(&job(1, 8, 500)), 400);
        assert_eq!(learned.expected_s(&job(1, 16, 500)), 400, "the same limit");
        for _ in 0..10 {
            learned.ended(&of, 70);
        }
        assert_eq!(learned.expected_s(&of), 70, "older ones are forgotten");
    }

    #[test]
    fn jobs_of_one_application_are_more_alike_than_those_of_one_size() {
        let mut learned = Estimator::new(Expect::Learned(Learner::Quantile));
        let of =
            |application, cores| JobKind { application: Some(application), ..job(1, cores, 100) };
        for _ in 0..3 {
            learned.ended(&of(1, 4), 10);
            learned.ended(&of(2, 4), 90);
            learned.ended(&of(2, 4), 90);
        }
        assert_eq!(learned.expected_s(&of(1, 4)), 10);
        assert_eq!(learned.expected_s(&of(1, 8)), 10, "the same limit");
        assert_eq!(learned.expected_s(&JobKind { limit_s: 50, ..of(1, 8) }), 10, "another limit");
        assert_eq!(learned.expected_s(&of(3, 4)), 90, "an application that is new");
        assert_eq!(learned.expected_s(&job(1, 4, 100)), 90, "no application");
    }

    #[test]
    fn an_application_is_a_name_without_digits_and_a_program() {
        let of = application("sort-17", Some("/home/anna/sort.toml"));
        assert_eq!(of, application("sort-18", Some("sort.toml")));
        assert_ne!(of, application("sort-17", Some("other.toml")));
        assert_ne!(of, application("other", Some("sort.toml")));
        assert_eq!(application("17", None), None);
        assert_eq!(application("", Some("")), None);
        // Of endless names, only a part is looked at.
        let long = "x".repeat(1_000_000);
        assert_eq!(application("", Some(&long)), application("", Some(&long[..255])));
        assert_eq!(application(&long, None), application(&long[..255], None));
    }

    #[test]
    fn the_weighted_mean_follows_a_change_as_the_node_s_history_does() {
        let mut learned = Estimator::new(Expect::Learned(Learner::WeightedMean));
        let of = job(1, 4, 1_000);
        assert_eq!(learned.expected_s(&of), 1_000, "nothing is known yet");
        for _ in 0..5 {
            learned.ended(&of, 100);
        }
        let steady_s = learned.expected_s(&of);
        assert!((100..103).contains(&steady_s), "{steady_s}");
        learned.ended(&of, 400);
        assert!(learned.expected_s(&of) < 110, "one stray run");
        learned.ended(&of, 400);
        let changed_s = learned.expected_s(&of);
        assert!((395..=405).contains(&changed_s), "{changed_s}");
    }

    #[test]
    fn the_regression_follows_the_jobs() {
        let mut learned = Estimator::new(Expect::Learned(Learner::Regression));
        let of = job(1, 4, 36_000);
        assert_eq!(learned.expected_s(&of), 36_000, "nothing is known yet");
        for _ in 0..2_000 {
            learned.ended(&of, 3_600);
        }
        let expected_s = learned.expected_s(&of);
        assert!((3_000..4_500).contains(&expected_s), "{expected_s}");
        // Narrow jobs of all users run for a tenth of their limits, wide ones for all of it.
        let mut learned = Estimator::new(Expect::Learned(Learner::Regression));
        for round in 0..4_000 {
            let limit_s = 1_000 * (1 + round % 7);
            learned.ended(&job(round % 5, 1, limit_s), limit_s / 10);
            learned.ended(&job(round % 5, 64, limit_s), limit_s);
        }
        let narrow_s = learned.expected_s(&job(1, 1, 20_000));
        let wide_s = learned.expected_s(&job(1, 64, 20_000));
        assert!(narrow_s < wide_s, "{narrow_s} {wide_s}");
        assert!(wide_s <= 20_000);
    }

    #[test]
    fn a_passed_estimate_is_doubled_up_to_the_limit() {
        assert_eq!(corrected_end_s(109, 100, 110, 200), 110);
        assert_eq!(corrected_end_s(110, 100, 110, 200), 120);
        assert_eq!(corrected_end_s(155, 100, 110, 200), 180);
        assert_eq!(corrected_end_s(185, 100, 110, 200), 200);
    }
}
