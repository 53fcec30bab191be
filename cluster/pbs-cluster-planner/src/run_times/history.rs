// SPDX-License-Identifier: GPL-2.0
//! Run times of jobs that have ended, by user, application, limit and number of cores.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::Hash;

use pbs_random::estimate::Config;

use super::JobKind;

/// Number of run times that are stored of jobs that are alike.
const STORED: usize = 10;
/// Number of jobs that are alike from which their run times are typical.
const TYPICAL: usize = 3;
/// Number of users whose run times are stored. Later users have no history.
const MOST_USERS: usize = 100_000;
/// Number of classes of a user that are stored. A further class replaces the one in which no job has
/// ended for the longest time.
const MOST_CLASSES: usize = 1_000;

/// Jobs of a user that are alike: those in which everything that the class names is the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Class {
    application: Option<u64>,
    limit_s: Option<u64>,
    cores: Option<u64>,
}

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
    classes: HashMap<Class, OfClass>,
    /// Classes in the order in which a job of theirs has ended last.
    oldest: BTreeMap<u64, Class>,
    /// Number of the next end.
    next: u64,
}

#[derive(Clone, Debug, Default)]
struct OfClass {
    runs: Runs,
    /// Number of the last end.
    last: u64,
}

/// Returns the classes of a job, the narrowest first.
fn classes<U>(job: &JobKind<U>) -> impl Iterator<Item = Class> {
    let application = job.application;
    let (limit_s, cores) = (Some(job.limit_s), Some(job.cores));
    let of_application = [
        Class { application, limit_s, cores },
        Class { application, limit_s, cores: None },
        Class { application, limit_s: None, cores: None },
    ];
    let of_size =
        [Class { application: None, limit_s, cores }, Class { limit_s, ..Class::default() }];
    of_application.into_iter().filter(move |_| application.is_some()).chain(of_size)
}

fn push(runs: &mut Runs, run_s: u64) {
    if runs.len() == STORED {
        runs.pop_front();
    }
    runs.push_back(run_s);
}

impl OfUser {
    fn push(&mut self, class: Class, run_s: u64) {
        if self.classes.len() == MOST_CLASSES && !self.classes.contains_key(&class) {
            if let Some((_, oldest)) = self.oldest.pop_first() {
                self.classes.remove(&oldest);
            }
        }
        let of = self.classes.entry(class).or_default();
        if !of.runs.is_empty() {
            self.oldest.remove(&of.last);
        }
        of.last = self.next;
        self.oldest.insert(self.next, class);
        self.next += 1;
        push(&mut of.runs, run_s);
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
        let runs = classes(job).filter_map(|class| Some(&of_user.classes.get(&class)?.runs));
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

    /// Returns the centre of the jobs that are most alike, as the node's history estimates lengths.
    /// The limit is the figure of the user.
    pub(super) fn weighted_mean_s(&self, job: &JobKind<U>) -> Option<u64> {
        let runs = self.alike(job)?;
        let (older, newer) = runs.as_slices();
        let mut all = [0; STORED];
        let (first, second) = all.get_mut(..runs.len())?.split_at_mut(older.len());
        first.copy_from_slice(older);
        second.copy_from_slice(newer);
        let known = all.get(..runs.len())?;
        Some(pbs_random::estimate::estimate(&Config::DEFAULT, Some(job.limit_s), known)?.centre)
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
        let job = |limit_s| JobKind::new(1_u64, 1, limit_s);
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

    #[test]
    fn a_class_in_which_jobs_end_is_not_forgotten() {
        let mut history = History::new();
        let job = |limit_s| JobKind::new(1_u64, 1, limit_s);
        for limit_s in 1..=3 * MOST_CLASSES as u64 {
            history.push(&job(limit_s), 9);
            history.push(&job(50_000), 1);
            // All jobs of the user have a quartile of 9.
            let expected_s = if limit_s < TYPICAL as u64 { 9 } else { 1 };
            assert_eq!(history.upper_quartile_s(&job(50_000)), Some(expected_s), "{limit_s}");
        }
        let of_user = &history.users[&1];
        assert_eq!(of_user.oldest.len(), of_user.classes.len());
        assert!(of_user.oldest.iter().all(|(last, class)| of_user.classes[class].last == *last));
    }
}
