// SPDX-License-Identifier: GPL-2.0
//! Run times of jobs that have ended, by user, limit and number of cores.

use std::collections::{HashMap, VecDeque};

use super::JobKind;

/// Number of run times that are stored of jobs that are alike.
const STORED: usize = 10;
/// Number of jobs that are alike from which their run times are typical.
const TYPICAL: usize = 3;

/// Jobs that are alike: those of a user, those with the same limit, and those with as many cores,
/// too.
type Class = (u64, Option<u64>, Option<u64>);

/// Run times of the last jobs of each class.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    runs: HashMap<Class, VecDeque<u64>>,
}

/// Returns the classes of a job, the narrowest first.
fn classes(job: &JobKind) -> [Class; 3] {
    let &JobKind { user, cores, limit_s } = job;
    [(user, Some(limit_s), Some(cores)), (user, Some(limit_s), None), (user, None, None)]
}

impl History {
    pub(super) fn push(&mut self, job: &JobKind, run_s: u64) {
        for class in classes(job) {
            let runs = self.runs.entry(class).or_default();
            if runs.len() == STORED {
                runs.pop_front();
            }
            runs.push_back(run_s);
        }
    }

    /// Returns the last run times of a user's jobs, the oldest first.
    pub(super) fn of_user(&self, user: u64) -> Option<&VecDeque<u64>> {
        self.runs.get(&(user, None, None))
    }

    /// Returns the run times of the jobs that are most alike, if there are enough; otherwise those
    /// of the user.
    pub(super) fn alike(&self, job: &JobKind) -> Option<&VecDeque<u64>> {
        let runs = classes(job).into_iter().filter_map(|class| self.runs.get(&class));
        let mut typical = runs.filter(|runs| runs.len() >= TYPICAL);
        typical.next().or_else(|| self.of_user(job.user))
    }

    pub(super) fn mean_of_two_s(&self, user: u64) -> Option<u64> {
        let mut last = self.of_user(user)?.iter().rev().copied();
        let last_s = last.next()?;
        Some(last_s.saturating_add(last.next().unwrap_or(last_s)) / 2)
    }

    pub(super) fn upper_quartile_s(&self, job: &JobKind) -> Option<u64> {
        quantile(self.alike(job)?, 3, 4)
    }
}

/// Returns the least of the values that is not below `part` of `all` equal parts of them.
pub(super) fn quantile(values: &VecDeque<u64>, part: usize, all: usize) -> Option<u64> {
    let mut sorted = [0; STORED];
    let sorted = sorted.get_mut(..values.len())?;
    for (place, &value) in sorted.iter_mut().zip(values) {
        *place = value;
    }
    sorted.sort_unstable();
    sorted.get((values.len() * part).div_ceil(all).checked_sub(1)?).copied()
}
