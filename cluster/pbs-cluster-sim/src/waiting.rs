// SPDX-License-Identifier: GPL-2.0
//! A queue that knows the next who fits.
//!
//! Who backfills a long queue asks at every event for the next job that is narrow and short
//! enough, and there may be none among a hundred thousand. Jobs are kept by the power of two
//! of their cores, each kind as a tree of minima in the order in which they came. A kind of
//! which all are narrow enough is asked for the short ones only, and the other way round: so
//! that a question takes O(log n) for each kind, except that of the kind on the edge.

use std::collections::BTreeMap;

/// A job that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Waiter {
    /// Index of the job in the trace.
    pub(crate) job: usize,
    pub(crate) cores: u64,
    pub(crate) requested_s: u64,
}

/// Cores and seconds: of a job, or no more than those of each job below.
type Least = (u64, u64);

/// Placeholder where there is no job: wider and longer than any job.
const NOBODY: Least = (u64::MAX, u64::MAX);

/// Places of the smallest tree.
const FEWEST: usize = 16;

#[derive(Clone, Debug, Default)]
pub(crate) struct Waiting {
    /// In the order in which they came, by a count of those.
    jobs: BTreeMap<u64, Waiter>,
    came: u64,
    /// Jobs by the power of two of their cores.
    kinds: BTreeMap<u32, Kind>,
}

/// Jobs of about as many cores.
#[derive(Clone, Debug, Default)]
struct Kind {
    /// Number of arrival of each job. Jobs that have left remain until there is no room.
    came: Vec<u64>,
    /// The root is at 1, the children of `n` at `2n` and `2n + 1`; the latter half are the
    /// jobs.
    least: Vec<Least>,
}

impl Waiting {
    pub(crate) fn push(&mut self, waiter: Waiter) {
        let kind = self.kinds.entry(kind_of(&waiter)).or_default();
        kind.push(self.came, (waiter.cores, waiter.requested_s));
        self.jobs.insert(self.came, waiter);
        self.came += 1;
    }

    /// Returns the job that arrived first, with its number of arrival.
    pub(crate) fn first(&self) -> Option<(u64, Waiter)> {
        self.jobs.first_key_value().map(|(&came, &waiter)| (came, waiter))
    }

    pub(crate) fn remove(&mut self, came: u64) {
        if let Some(waiter) = self.jobs.remove(&came) {
            if let Some(kind) = self.kinds.get_mut(&kind_of(&waiter)) {
                kind.remove(came);
            }
        }
    }

    /// The first after `came` that has no more than so many cores and seconds.
    pub(crate) fn next(&self, came: u64, cores: u64, seconds: u64) -> Option<(u64, Waiter)> {
        let widest = cores.checked_ilog2()?;
        let kinds = self.kinds.range(..=widest).map(|(_, kind)| kind);
        let next = kinds.filter_map(|kind| kind.next(came, (cores, seconds))).min()?;
        self.jobs.get(&next).map(|&waiter| (next, waiter))
    }
}

fn kind_of(waiter: &Waiter) -> u32 {
    waiter.cores.max(1).ilog2()
}

impl Kind {
    fn room(&self) -> usize {
        self.least.len() / 2
    }

    fn push(&mut self, came: u64, least: Least) {
        if self.came.len() == self.room() {
            self.make_room();
        }
        self.set(self.came.len(), least);
        self.came.push(came);
    }

    fn remove(&mut self, came: u64) {
        if let Ok(place) = self.came.binary_search(&came) {
            self.set(place, NOBODY);
        }
    }

    fn set(&mut self, place: usize, least: Least) {
        let mut node = self.room() + place;
        self.least[node] = least;
        while node > 1 {
            node /= 2;
            self.sum(node);
        }
    }

    fn sum(&mut self, node: usize) {
        let (left, right) = (self.least[2 * node], self.least[2 * node + 1]);
        self.least[node] = (left.0.min(right.0), left.1.min(right.1));
    }

    /// Removes the jobs that have left, and resizes the tree to be half empty: each job pays for
    /// this a constant number of times.
    fn make_room(&mut self) {
        let jobs = self.least.iter().skip(self.room());
        let jobs = self.came.iter().copied().zip(jobs.copied());
        let jobs: Vec<_> = jobs.filter(|job| job.1 != NOBODY).collect();
        let room = (2 * jobs.len()).next_power_of_two().max(FEWEST);
        self.came.clear();
        self.least.clear();
        self.least.resize(2 * room, NOBODY);
        for (place, (came, least)) in jobs.into_iter().enumerate() {
            self.came.push(came);
            self.least[room + place] = least;
        }
        for node in (1..room).rev() {
            self.sum(node);
        }
    }

    /// Returns the number of arrival of the first job after `came` that needs at most `most`.
    fn next(&self, came: u64, most: Least) -> Option<u64> {
        let from = self.came.partition_point(|&other| other <= came);
        let room = self.room();
        if from >= self.came.len() {
            return None;
        }
        let fits = |node: usize| self.least[node].0 <= most.0 && self.least[node].1 <= most.1;
        let mut node = room + from;
        loop {
            if fits(node) {
                if node >= room {
                    return self.came.get(node - room).copied();
                }
                // One below may be narrow and another one short.
                node *= 2;
                continue;
            }
            // On to the right: up as long as it is the right child.
            while node & 1 == 1 {
                node /= 2;
            }
            if node == 0 {
                return None;
            }
            node += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use pbs_gen::{Random, Stream};

    use super::*;

    #[test]
    fn the_next_is_that_of_a_list() {
        let mut random = Random::new(1, Stream::Trace);
        let mut waiting = Waiting::default();
        let mut list: Vec<(u64, Waiter)> = Vec::new();
        for came in 0..3000 {
            let waiter = Waiter {
                job: came as usize,
                cores: 1 + random.below(40),
                requested_s: 1 + random.below(40),
            };
            waiting.push(waiter);
            list.push((came, waiter));
            for _ in 0..random.below(3) {
                let (after, cores) = (random.below(came + 2), random.below(40));
                let seconds = random.below(40);
                let mut fitting = list.iter().filter(|(came, waiter)| {
                    *came > after && waiter.cores <= cores && waiter.requested_s <= seconds
                });
                let next = waiting.next(after, cores, seconds);
                assert_eq!(next, fitting.next().copied());
                if let Some((came, _)) = next {
                    waiting.remove(came);
                    list.retain(|job| job.0 != came);
                }
            }
            assert_eq!(waiting.first(), list.first().copied());
            if random.below(4) == 0 && !list.is_empty() {
                waiting.remove(list.remove(0).0);
            }
        }
        assert!(list.len() < 2000, "few have left: {}", list.len());
    }
}
