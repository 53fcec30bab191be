// SPDX-License-Identifier: GPL-2.0
//! The numbers of a cluster's nodes (A.5): each has at most one owner.

use std::collections::{BTreeMap, BTreeSet};

use crate::NodeChoice;

/// The nodes of a cluster that nobody has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pool {
    /// Runs of free nodes: the first, and the one after the last. They do not touch.
    runs: BTreeMap<u32, u32>,
    free: u64,
}

impl Pool {
    pub(crate) fn new(nodes: u32) -> Self {
        let runs = (nodes > 0).then_some((0, nodes));
        Self {
            runs: runs.into_iter().collect(),
            free: u64::from(nodes),
        }
    }

    /// How many are free.
    pub(crate) fn free(&self) -> u64 {
        self.free
    }

    /// The free ones, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.runs.iter().flat_map(|(&first, &end)| first..end)
    }

    /// So many nodes, those that are preferred first; all that there are if there are fewer.
    pub(crate) fn take(&mut self, count: u64, preferred: &[u32], choice: NodeChoice) -> Vec<u32> {
        let mut taken = Vec::new();
        for &node in preferred {
            if (taken.len() as u64) < count && self.take_one(node) {
                taken.push(node);
            }
        }
        let mut lengths = Lengths::new();
        if choice == NodeChoice::Contiguous && (taken.len() as u64) < count {
            let runs = self.runs.iter();
            lengths.extend(runs.map(|(&first, &end)| (u64::from(end - first), first)));
        }
        while (taken.len() as u64) < count {
            let lack = count - taken.len() as u64;
            let first = match choice {
                NodeChoice::Lowest => self.runs.keys().next().copied(),
                NodeChoice::Contiguous => run_for(&mut lengths, lack),
            };
            let Some((first, end)) = first.and_then(|first| self.runs.remove_entry(&first)) else {
                break;
            };
            let until = u64::from(end).min(u64::from(first) + lack) as u32;
            if until < end {
                self.runs.insert(until, end);
            }
            taken.extend(first..until);
            self.free -= u64::from(until - first);
        }
        taken
    }

    /// Takes one node if it is free.
    pub(crate) fn take_one(&mut self, node: u32) -> bool {
        let Some((&first, &end)) = self.runs.range(..=node).next_back() else {
            return false;
        };
        if node >= end {
            return false;
        }
        self.runs.remove(&first);
        if first < node {
            self.runs.insert(first, node);
        }
        if node + 1 < end {
            self.runs.insert(node + 1, end);
        }
        self.free -= 1;
        true
    }

    /// Nodes are free again.
    pub(crate) fn put(&mut self, nodes: &[u32]) {
        let mut sorted = nodes.to_vec();
        sorted.sort_unstable();
        for run in sorted.chunk_by(|a, b| a + 1 == *b) {
            if let (Some(&first), Some(&last)) = (run.first(), run.last()) {
                self.put_run(first, last + 1);
            }
        }
        self.free += nodes.len() as u64;
    }

    fn put_run(&mut self, mut first: u32, mut end: u32) {
        if let Some(after) = self.runs.remove(&end) {
            end = after;
        }
        let before = self.runs.range(..first).next_back();
        if let Some((&start, _)) = before.filter(|run| *run.1 == first) {
            first = start;
        }
        self.runs.insert(first, end);
    }
}

/// Runs by how long they are, and their first node.
type Lengths = BTreeSet<(u64, u32)>;

/// Takes the shortest run that holds so many, or else the longest one: of several as long the
/// first.
fn run_for(lengths: &mut Lengths, count: u64) -> Option<u32> {
    let longest = lengths.last()?.0;
    let &run = lengths.range((count.min(longest), 0)..).next()?;
    lengths.remove(&run);
    Some(run.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f24_what_is_put_back_is_whole_again() {
        let mut pool = Pool::new(10);
        let taken = pool.take(7, &[], NodeChoice::Lowest);
        assert_eq!(taken, [0, 1, 2, 3, 4, 5, 6]);
        pool.put(&[3, 1, 5]);
        assert_eq!(pool.iter().collect::<Vec<_>>(), [1, 3, 5, 7, 8, 9]);
        pool.put(&[0, 2, 4, 6]);
        assert_eq!(pool, Pool::new(10));
    }

    #[test]
    fn f40_neighbours_are_the_tightest_run() {
        let mut pool = Pool::new(10);
        assert!(pool.take_one(2) && pool.take_one(6) && !pool.take_one(6));
        // Free are 0 and 1, 3 to 5, 7 to 9.
        let mut other = pool.clone();
        assert_eq!(pool.take(2, &[], NodeChoice::Contiguous), [0, 1]);
        assert_eq!(pool.take(4, &[], NodeChoice::Contiguous), [3, 4, 5, 7]);
        assert_eq!(other.take(3, &[9], NodeChoice::Lowest), [9, 0, 1]);
        assert_eq!(other.take(9, &[], NodeChoice::Lowest).len(), 5);
        assert_eq!(other.free(), 0);
    }
}
