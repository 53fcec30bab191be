// SPDX-License-Identifier: GPL-2.0
//! Gaps of several cores in one order.
//!
//! The store finds the core of a group on which a task of some length can start first without
//! asking core after core. The gaps of all its cores are stored in the order in which they begin,
//! in blocks that store their longest gap and their latest end.

use std::ops::{Range, RangeInclusive};

use crate::budget::Budget;

/// Gaps of a block at most: a change moves half of them, a question goes
/// through all blocks and then through one.
const BLOCK: usize = 64;

/// A stretch of time in which a core is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gap {
    pub(crate) start_ns: u64,
    /// `u64::MAX`: without end.
    pub(crate) end_ns: u64,
    pub(crate) core: u32,
}

impl Gap {
    fn key(&self) -> (u64, u32) {
        (self.start_ns, self.core)
    }

    fn length_ns(&self) -> u64 {
        self.end_ns - self.start_ns
    }
}

/// The gaps of a group of cores.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gaps {
    /// None is empty.
    blocks: Vec<Block>,
}

#[derive(Clone, Debug)]
struct Block {
    /// Ascending by their keys.
    gaps: Vec<Gap>,
    /// Start of the first gap. With it, a search skips most blocks without checking their gaps.
    first_ns: u64,
    /// The longest gap's length.
    longest_ns: u64,
    /// Latest end of a gap.
    latest_ns: u64,
}

impl Block {
    fn new(gaps: Vec<Gap>) -> Self {
        let mut block = Self { gaps, first_ns: 0, longest_ns: 0, latest_ns: 0 };
        block.measure();
        block
    }

    fn measure(&mut self) {
        self.note_first();
        let gaps = || self.gaps.iter();
        self.longest_ns = gaps().map(Gap::length_ns).max().unwrap_or(0);
        self.latest_ns = gaps().map(|gap| gap.end_ns).max().unwrap_or(0);
    }

    fn note_first(&mut self) {
        self.first_ns = self.gaps.first().map_or(u64::MAX, |gap| gap.start_ns);
    }
}

impl Gaps {
    /// Builds the structure from gaps in any order.
    pub(crate) fn new(mut gaps: Vec<Gap>) -> Self {
        gaps.sort_unstable_by_key(Gap::key);
        let blocks = gaps.chunks(BLOCK / 2);
        Self { blocks: blocks.map(|gaps| Block::new(gaps.to_vec())).collect() }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Gap> {
        self.blocks.iter().flat_map(|block| &block.gaps)
    }

    /// The block in which the key is or belongs.
    fn block_of(&self, key: (u64, u32)) -> usize {
        // Blocks that begin at the same time are told apart by their first gaps.
        let after = self.blocks.partition_point(|block| {
            block.first_ns < key.0 || block.first_ns == key.0 && block.gaps[0].key() <= key
        });
        after.saturating_sub(1)
    }

    pub(crate) fn insert(&mut self, gap: Gap) {
        let index = self.block_of(gap.key());
        let Some(block) = self.blocks.get_mut(index) else {
            self.blocks.push(Block::new(vec![gap]));
            return;
        };
        let place = block.gaps.partition_point(|other| other.key() < gap.key());
        block.gaps.insert(place, gap);
        block.note_first();
        if block.gaps.len() <= BLOCK {
            block.longest_ns = block.longest_ns.max(gap.length_ns());
            block.latest_ns = block.latest_ns.max(gap.end_ns);
            return;
        }
        let rest = block.gaps.split_off(BLOCK / 2);
        block.measure();
        self.blocks.insert(index + 1, Block::new(rest));
    }

    /// Removes the gap of the core that starts there, if there is one.
    pub(crate) fn remove(&mut self, start_ns: u64, core: u32) {
        let key = (start_ns, core);
        let index = self.block_of(key);
        let Some(block) = self.blocks.get_mut(index) else {
            return;
        };
        let Ok(place) = block.gaps.binary_search_by_key(&key, Gap::key) else {
            return;
        };
        let gap = block.gaps.remove(place);
        if block.gaps.is_empty() {
            self.blocks.remove(index);
        } else if gap.length_ns() == block.longest_ns || gap.end_ns == block.latest_ns {
            block.measure();
        } else {
            block.note_first();
        }
    }

    /// The earliest of the times that are asked for at which one of the cores
    /// that are wanted becomes or is free for `duration_ns`, and that core: of
    /// several the one that has been free for longest, and of those the first. Counts the blocks
    /// and the gaps that are looked at.
    pub(crate) fn earliest(
        &self,
        work: &Budget,
        starts_ns: &RangeInclusive<u64>,
        duration_ns: u64,
        wanted: impl Fn(u32) -> bool,
    ) -> Option<(u64, u32)> {
        let (from_ns, latest_ns) = (*starts_ns.start(), *starts_ns.end());
        if starts_ns.is_empty() {
            return None;
        }
        let end_ns = from_ns.checked_add(duration_ns)?;
        for block in &self.blocks {
            work.add(1);
            if block.first_ns > from_ns {
                break;
            }
            if block.latest_ns < end_ns {
                continue;
            }
            let begun = block.gaps.iter().take_while(|gap| gap.start_ns <= from_ns);
            let begun = begun.inspect(|_| work.add(1));
            let mut fit = begun.filter(|gap| gap.end_ns >= end_ns && wanted(gap.core));
            if let Some(gap) = fit.next() {
                return Some((from_ns, gap.core));
            }
        }
        let later = self.block_of((from_ns, u32::MAX));
        let blocks = self.blocks.get(later..)?.iter();
        let blocks = blocks.take_while(|block| block.first_ns <= latest_ns);
        let blocks = blocks.inspect(|_| work.add(1));
        let long = blocks.filter(|block| block.longest_ns >= duration_ns);
        let mut fit = long.flat_map(|block| &block.gaps).filter(|gap| {
            work.add(1);
            gap.start_ns > from_ns && gap.length_ns() >= duration_ns && wanted(gap.core)
        });
        let first = fit.next().filter(|gap| gap.start_ns <= latest_ns);
        first.map(|gap| (gap.start_ns, gap.core))
    }

    /// Removes `taken`, a part of the gap `free` of the core.
    pub(crate) fn take(&mut self, core: u32, free: &Range<u64>, taken: &Range<u64>) {
        self.remove(free.start, core);
        for rest in [free.start..taken.start, taken.end..free.end] {
            self.insert_range(core, &rest);
        }
    }

    /// Releases the interval `given`, which was taken. Together with the gaps
    /// around it, it makes the gap `free`.
    pub(crate) fn give(&mut self, core: u32, free: &Range<u64>, given: &Range<u64>) {
        self.remove(free.start, core);
        self.remove(given.end, core);
        self.insert_range(core, free);
    }

    fn insert_range(&mut self, core: u32, range: &Range<u64>) {
        if !range.is_empty() {
            self.insert(Gap { start_ns: range.start, end_ns: range.end, core });
        }
    }

    /// Cuts off what was before that time.
    pub(crate) fn forget_before(&mut self, time_ns: u64) {
        let rest = self.iter().filter(|gap| gap.end_ns > time_ns);
        let rest = rest.map(|gap| Gap { start_ns: gap.start_ns.max(time_ns), ..*gap });
        *self = Self::new(rest.collect());
    }
}

#[cfg(test)]
mod tests;
