// SPDX-License-Identifier: GPL-2.0
//! The numbers of a cluster's nodes (A.5): each has at most one owner.

use std::collections::BTreeSet;

use crate::NodeChoice;

/// The nodes of a cluster that nobody has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pool {
    /// One bit for each node, the lowest node first: 1 if the node is free. The bits of half a
    /// million nodes fit into the caches of a core, however often nodes have changed hands.
    words: Vec<u64>,
    free: u64,
    /// None is free below this one.
    low: u32,
}

/// The place of a node's word, and its bit there.
fn bit_of(node: u32) -> (usize, u64) {
    ((node / u64::BITS) as usize, 1 << (node % u64::BITS))
}

impl Pool {
    pub(crate) fn new(nodes: u32) -> Self {
        let mut words = vec![u64::MAX; (nodes / u64::BITS) as usize];
        let rest = nodes % u64::BITS;
        if rest > 0 {
            words.push((1 << rest) - 1);
        }
        Self { words, free: u64::from(nodes), low: 0 }
    }

    /// Returns the number of free nodes.
    pub(crate) fn free(&self) -> u64 {
        self.free
    }

    /// The free ones, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.runs().flat_map(|(first, end)| first..end)
    }

    /// Takes that many nodes, the preferred ones first; all free nodes if there are fewer.
    pub(crate) fn take(&mut self, count: u64, preferred: &[u32], choice: NodeChoice) -> Vec<u32> {
        let mut taken = Vec::new();
        for &node in preferred {
            if (taken.len() as u64) < count && self.take_one(node) {
                taken.push(node);
            }
        }
        let mut lengths = Lengths::new();
        if choice == NodeChoice::Contiguous && (taken.len() as u64) < count {
            let runs = self.runs();
            lengths.extend(runs.map(|(first, end)| (u64::from(end - first), first)));
        }
        while (taken.len() as u64) < count {
            let lack = count - taken.len() as u64;
            let run = match choice {
                NodeChoice::Lowest => self.lowest_run(lack),
                NodeChoice::Contiguous => run_for(&mut lengths, lack),
            };
            let Some((first, end)) = run else {
                break;
            };
            let until = u64::from(end).min(u64::from(first) + lack) as u32;
            for node in first..until {
                let (place, bit) = bit_of(node);
                self.words[place] &= !bit;
            }
            taken.extend(first..until);
            self.free -= u64::from(until - first);
            if choice == NodeChoice::Lowest {
                self.low = until;
            }
        }
        taken
    }

    /// The lowest free nodes that touch, of no more than so many.
    fn lowest_run(&self, count: u64) -> Option<(u32, u32)> {
        let first = self.next(self.low, true)?;
        // Where a long run ends does not matter.
        let most = u64::from(first).saturating_add(count);
        let most = u32::try_from(most).unwrap_or(u32::MAX);
        let end = (first..most).find(|&node| !self.is_free(node));
        Some((first, end.unwrap_or(most)))
    }

    /// Runs of free nodes: the first, and the one after the last. They do not touch.
    fn runs(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let bits = self.words.len() * u64::BITS as usize;
        let end_of_all = u32::try_from(bits).unwrap_or(u32::MAX);
        let mut next = self.low;
        std::iter::from_fn(move || {
            let first = self.next(next, true)?;
            next = self.next(first, false).unwrap_or(end_of_all);
            Some((first, next))
        })
    }

    /// The first node that is free, or not free, from one on.
    fn next(&self, node: u32, is_free: bool) -> Option<u32> {
        let of = |word: u64| if is_free { word } else { !word };
        let (first, bit) = bit_of(node);
        // The bits from that one on.
        let above = of(*self.words.get(first)?) & bit.wrapping_neg();
        let later = self.words.iter().enumerate().skip(first + 1);
        let later = later.map(|(place, &word)| (place, of(word)));
        let mut all = std::iter::once((first, above)).chain(later);
        let (place, word) = all.find(|it| it.1 != 0)?;
        Some(place as u32 * u64::BITS + word.trailing_zeros())
    }

    fn is_free(&self, node: u32) -> bool {
        let (place, bit) = bit_of(node);
        self.words.get(place).is_some_and(|word| word & bit != 0)
    }

    /// Takes one node if it is free.
    pub(crate) fn take_one(&mut self, node: u32) -> bool {
        if !self.is_free(node) {
            return false;
        }
        let (place, bit) = bit_of(node);
        self.words[place] &= !bit;
        self.free -= 1;
        true
    }

    /// Nodes are free again.
    pub(crate) fn put(&mut self, nodes: &[u32]) {
        for &node in nodes {
            let (place, bit) = bit_of(node);
            self.words[place] |= bit;
            self.low = self.low.min(node);
        }
        self.free += nodes.len() as u64;
    }
}

/// Runs by how long they are, and their first node.
type Lengths = BTreeSet<(u64, u32)>;

/// Takes the shortest run that holds that many nodes, or else the longest one; the first of equally
/// long ones.
fn run_for(lengths: &mut Lengths, count: u64) -> Option<(u32, u32)> {
    let longest = lengths.last()?.0;
    let &run = lengths.range((count.min(longest), 0)..).next()?;
    lengths.remove(&run);
    let (length, first) = run;
    Some((first, first + length as u32))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pbs_gen::{Random, Stream};

    #[test]
    fn returned_nodes_join_their_neighbours() {
        let mut pool = Pool::new(10);
        let taken = pool.take(7, &[], NodeChoice::Lowest);
        assert_eq!(taken, [0, 1, 2, 3, 4, 5, 6]);
        pool.put(&[3, 1, 5]);
        assert_eq!(pool.iter().collect::<Vec<_>>(), [1, 3, 5, 7, 8, 9]);
        pool.put(&[0, 2, 4, 6]);
        assert_eq!(pool, Pool::new(10));
    }

    #[test]
    fn neighbours_are_the_tightest_run() {
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

    #[test]
    fn preferred_and_then_lowest_nodes_are_taken() {
        for seed in 0..60 {
            let mut random = Random::new(seed, Stream::Messages);
            let size = 1 + random.index(200) as u32;
            let mut pool = Pool::new(size);
            let mut free: BTreeSet<u32> = (0..size).collect();
            let mut held = Vec::new();
            for _ in 0..100 {
                let (count, preferred) = (random.below(40), random.index(200) as u32);
                let mut expected: Vec<u32> = free.iter().copied().collect();
                expected.sort_by_key(|&node| (node != preferred, node));
                expected.truncate(count as usize);
                free.retain(|node| !expected.contains(node));
                assert_eq!(pool.take(count, &[preferred], NodeChoice::Lowest), expected);
                held.extend(expected);
                let kept = random.index(held.len() + 1);
                let back = held.split_off(kept);
                free.extend(&back);
                pool.put(&back);
                assert!(pool.iter().eq(free.iter().copied()));
                assert_eq!(pool.free(), free.len() as u64);
            }
        }
    }
}
