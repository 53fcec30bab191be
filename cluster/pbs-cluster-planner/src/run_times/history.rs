// SPDX-License-Identifier: GPL-2.0
//! Run times of jobs that have ended, by user, limit and number of cores.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

use super::JobKind;

/// Number of run times that are stored of jobs that are alike.
const STORED: usize = 10;
/// Number of jobs that are alike from which their run times are typical.
const TYPICAL: usize = 3;
/// Number of users whose run times are stored. Later users have no history.
const MOST_USERS: usize = 100_000;
/// Number of classes of a user that are stored. A further class replaces the oldest one.
const MOST_CLASSES: usize = 1_000;

/// Jobs of a user that are alike: those with the same limit, and those with as many cores, too.
type Class = (u64, Option<u64>);

/// Last run times of jobs that are alike, the oldest first.
type Runs = VecDeque<u64>;

/// Run times of the last jobs of each user and class.
#[derive(Clone, Debug)]
pub(super) struct History<U> {
    users: HashMap<U, OfUser>,
}

#[derive(Clone, Debug, Default)]
struct OfUser {
    all: Runs,
    classes: HashMap<Class, Runs>,
    /// Classes in the order in which they came.
    oldest: VecDeque<Class>,
}

/// Returns the classes of a job, the narrowest first.
fn classes<U>(job: &JobKind<U>) -> [Class; 2] {
    [(job.limit_s, Some(job.cores)), (job.limit_s, None)]
}

fn push(runs: &mut Runs, run_s: u64) {
    if runs.len() == STORED {
        runs.pop_front();
    }
    runs.push_back(run_s);
}

impl OfUser {
    fn push(&mut self, class: Class, run_s: u64) {
        if !self.classes.contains_key(&class) {
            if self.classes.len() == MOST_CLASSES {
                if let Some(oldest) = self.oldest.pop_front() {
                    self.classes.remove(&oldest);
                }
            }
            self.oldest.push_back(class);
        }
        push(self.classes.entry(class).or_default(), run_s);
    }
}

impl<U: Clone + Eq + Hash> History<U> {
    pub(super) fn new() -> Self {
        Self { users: HashMap::new() }
    }

    pub(super) fn push(&mut self, job: &JobKind<U>, run_s: u64) {
        if self.users.len() == MOST_USERS && !self.users.contains_key(&job.user) {
            return;
        }
        let of_user = self.users.entry(job.user.clone()).or_default();
        for class in classes(job) {
            of_user.push(class, run_s);
        }
        push(&mut of_user.all, run_s);
    }

    /// Returns the last run times of a user's jobs, the oldest first.
    pub(super) fn of_user(&self, user: &U) -> Option<&Runs> {
        Some(&self.users.get(user)?.all)
    }

    /// Returns the run times of the jobs that are most alike, if there are enough; otherwise those
    /// of the user.
    pub(super) fn alike(&self, job: &JobKind<U>) -> Option<&Runs> {
        let of_user = self.users.get(&job.user)?;
        let runs = classes(job).into_iter().filter_map(|class| of_user.classes.get(&class));
        let mut typical = runs.filter(|runs| runs.len() >= TYPICAL);
        Some(typical.next().unwrap_or(&of_user.all))
    }

    pub(super) fn mean_of_two_s(&self, user: &U) -> Option<u64> {
        let mut last = self.of_user(user)?.iter().rev().copied();
        let last_s = last.next()?;
        Some(last_s.saturating_add(last.next().unwrap_or(last_s)) / 2)
    }

    pub(super) fn upper_quartile_s(&self, job: &JobKind<U>) -> Option<u64> {
        quantile(self.alike(job)?, 3, 4)
    }
}

/// Returns the least of the values that is not below `part` of `all` equal parts of them.
pub(super) fn quantile(values: &Runs, part: usize, all: usize) -> Option<u64> {
    let mut sorted = [0; STORED];
    let sorted = sorted.get_mut(..values.len())?;
    for (place, &value) in sorted.iter_mut().zip(values) {
        *place = value;
    }
    sorted.sort_unstable();
    sorted.get((values.len() * part).div_ceil(all).checked_sub(1)?).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_with_ever_new_limits_has_a_bounded_history() {
        let mut history = History::new();
        let job = |limit_s| JobKind { user: 1_u64, cores: 1, limit_s };
        for limit_s in 1..=3 * MOST_CLASSES as u64 {
            for _ in 0..TYPICAL {
                history.push(&job(limit_s), limit_s);
            }
        }
        let of_user = &history.users[&1];
        assert_eq!((of_user.classes.len(), of_user.oldest.len()), (MOST_CLASSES, MOST_CLASSES));
        let last_s = 3 * MOST_CLASSES as u64;
        assert_eq!(history.upper_quartile_s(&job(last_s)), Some(last_s));
        assert_eq!(history.upper_quartile_s(&job(1)), Some(last_s), "all jobs of the user");
    }
}
