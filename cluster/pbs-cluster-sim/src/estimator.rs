// SPDX-License-Identifier: GPL-2.0
//! Run times that a scheduler expects, learned from those of a user's last jobs.
//!
//! The rule is that of Tsafrir, Etsion and Feitelson (2007, *Backfilling using system-generated
//! predictions rather than user runtime estimates*): the mean of the last two run times, and
//! never more than the user's limit. The limit remains the time at which a job is killed.

use std::collections::HashMap;

/// Source of expected run times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// The limit of the user.
    Limit,
    /// The mean of the user's last two run times.
    Learned,
}

/// Run times of each user's last two jobs.
#[derive(Clone, Debug)]
pub(crate) struct Estimator {
    expect: Expect,
    /// The last run time, and the one before.
    last_s: HashMap<u64, (u64, Option<u64>)>,
}

impl Estimator {
    pub(crate) fn new(expect: Expect) -> Self {
        Self { expect, last_s: HashMap::new() }
    }

    /// Records the run time of a job that has ended.
    pub(crate) fn ended(&mut self, user: u64, run_s: u64) {
        let before_s = self.last_s.get(&user).map(|last| last.0);
        self.last_s.insert(user, (run_s, before_s));
    }

    /// Returns the expected run time of a job: its limit, as long as its user has no history.
    pub(crate) fn expected_s(&self, user: u64, limit_s: u64) -> u64 {
        let limit_s = limit_s.max(1);
        if self.expect == Expect::Limit {
            return limit_s;
        }
        match self.last_s.get(&user) {
            Some(&(last_s, before_s)) => {
                let sum_s = last_s.saturating_add(before_s.unwrap_or(last_s));
                (sum_s / 2).clamp(1, limit_s)
            }
            None => limit_s,
        }
    }
}

/// Returns the expected end of a job that has passed its expected end: its run time up to now is
/// doubled until the end is ahead. Never after the end of its limit.
pub(crate) fn corrected_end_s(now_s: u64, start_s: u64, end_s: u64, limit_end_s: u64) -> u64 {
    let mut span_s = end_s.saturating_sub(start_s).max(1);
    while start_s.saturating_add(span_s) <= now_s {
        span_s = span_s.saturating_mul(2);
    }
    start_s.saturating_add(span_s).min(limit_end_s.max(now_s.saturating_add(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_of_the_last_two_is_expected() {
        let mut learned = Estimator::new(Expect::Learned);
        assert_eq!(learned.expected_s(1, 100), 100, "nothing is known yet");
        learned.ended(1, 40);
        assert_eq!(learned.expected_s(1, 100), 40);
        learned.ended(1, 20);
        learned.ended(1, 60);
        assert_eq!(learned.expected_s(1, 100), 40, "the first one is forgotten");
        assert_eq!(learned.expected_s(1, 30), 30, "the limit binds");
        assert_eq!(learned.expected_s(2, 100), 100, "another user");
        let mut limit = Estimator::new(Expect::Limit);
        limit.ended(1, 40);
        assert_eq!(limit.expected_s(1, 100), 100);
    }

    #[test]
    fn a_passed_estimate_is_doubled_up_to_the_limit() {
        assert_eq!(corrected_end_s(109, 100, 110, 200), 110);
        assert_eq!(corrected_end_s(110, 100, 110, 200), 120);
        assert_eq!(corrected_end_s(155, 100, 110, 200), 180);
        assert_eq!(corrected_end_s(185, 100, 110, 200), 200);
    }
}
