// SPDX-License-Identifier: GPL-2.0
//! The last jobs that have ended, by which one that is sent back is recognized.

use std::collections::{HashMap, VecDeque};

use crate::steer::seen::Key;

/// Number of a job, with its index in an array.
type Number = (u32, Option<u32>);

/// Users of the last jobs that have ended; the oldest ends are forgotten first.
#[derive(Debug)]
pub(super) struct LastEnded {
    most: usize,
    /// Time of submission and user of the last job with each number.
    of: HashMap<Number, (u64, String)>,
    /// Numbers with times of submission, in the order of their ends.
    order: VecDeque<(Number, u64)>,
}

impl LastEnded {
    /// A memory of so many jobs at most.
    pub(super) fn new(most: usize) -> Self {
        Self { most, of: HashMap::new(), order: VecDeque::new() }
    }

    /// Notes a job that has ended.
    pub(super) fn note(&mut self, key: Key, user: &str) {
        let number = (key.job, key.index);
        let before = self.of.insert(number, (key.submit_s, user.into()));
        if before.is_some_and(|before| before.0 == key.submit_s) {
            return;
        }
        self.order.push_back((number, key.submit_s));
        while self.order.len() > self.most {
            let Some((number, submit_s)) = self.order.pop_front() else {
                return;
            };
            // A later job with this number stays.
            if self.of.get(&number).is_some_and(|of| of.0 == submit_s) {
                self.of.remove(&number);
            }
        }
    }

    /// User of the job that had the number of this one before it, if that has ended.
    pub(super) fn user_before(&self, key: Key) -> Option<&str> {
        let (submit_s, user) = self.of.get(&(key.job, key.index))?;
        (*submit_s < key.submit_s).then_some(user)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(job: u32, submit_s: u64) -> Key {
        Key { job, index: None, submit_s }
    }

    #[test]
    fn the_oldest_end_is_forgotten_and_not_the_smallest_number() {
        let mut ended = LastEnded::new(2);
        ended.note(key(9, 1), "ada");
        ended.note(key(1, 2), "bob");
        ended.note(key(5, 3), "eve");
        assert_eq!(ended.user_before(key(9, 10)), None);
        assert_eq!(ended.user_before(key(1, 10)), Some("bob"));
        assert_eq!(ended.user_before(key(5, 10)), Some("eve"));
    }

    #[test]
    fn a_job_that_is_sent_back_twice_stays_known() {
        let mut ended = LastEnded::new(2);
        ended.note(key(9, 1), "ada");
        ended.note(key(9, 5), "ada");
        ended.note(key(1, 6), "bob");
        assert_eq!(ended.user_before(key(9, 10)), Some("ada"));
        assert_eq!(ended.user_before(key(9, 5)), None, "a job is not before itself");
    }
}
