// SPDX-License-Identifier: GPL-2.0
//! One node: a few times in order, and something for each.

use std::ops::Range;

/// The least and the greatest of some values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extremes {
    pub(super) least: u64,
    pub(super) greatest: u64,
}

impl Extremes {
    /// Extremes of an empty set of values.
    pub(super) const NONE: Self = Self { least: u64::MAX, greatest: 0 };

    pub(super) fn of(value: u64) -> Self {
        Self { least: value, greatest: value }
    }

    /// Returns the extremes of both sets of values.
    pub(super) fn and(self, other: Self) -> Self {
        Self { least: self.least.min(other.least), greatest: self.greatest.max(other.greatest) }
    }

    /// After all values were raised.
    pub(super) fn raised(self, by: u64) -> Self {
        Self { least: self.least.wrapping_add(by), greatest: self.greatest.wrapping_add(by) }
    }
}

/// Item that a node has for each of its times.
pub(super) trait Item: Copy + Default {
    fn extremes(&self) -> Extremes;

    /// Adds to all values; what is to be subtracted is added as its two's
    /// complement.
    fn raise(&mut self, by: u64);
}

/// The value from a time on.
impl Item for u64 {
    fn extremes(&self) -> Extremes {
        Extremes::of(*self)
    }

    fn raise(&mut self, by: u64) {
        *self = self.wrapping_add(by);
    }
}

/// A node below another one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Child {
    /// Extremes of all values below, including `pending`.
    pub(super) extremes: Extremes,
    /// Amount that must still be added to all values of the child itself.
    pub(super) pending: u64,
    /// Index of the child in the slab of its height.
    pub(super) id: u32,
}

impl Default for Child {
    fn default() -> Self {
        Self { extremes: Extremes::NONE, pending: 0, id: u32::MAX }
    }
}

impl Item for Child {
    fn extremes(&self) -> Extremes {
        self.extremes
    }

    fn raise(&mut self, by: u64) {
        self.extremes = self.extremes.raised(by);
        self.pending = self.pending.wrapping_add(by);
    }
}

/// Up to `N` times in order, the item of each reaching to the next time. That of
/// the last reaches to where the node ends, which the node itself does not know.
#[derive(Clone, Copy)]
pub(super) struct Node<T, const N: usize> {
    len: u32,
    times: [u64; N],
    items: [T; N],
}

impl<T: Item, const N: usize> Node<T, N> {
    pub(super) fn new() -> Self {
        Self { len: 0, times: [0; N], items: [T::default(); N] }
    }

    pub(super) fn len(&self) -> usize {
        self.len as usize
    }

    pub(super) fn is_full(&self) -> bool {
        self.len() == N
    }

    pub(super) fn times(&self) -> &[u64] {
        &self.times[..self.len()]
    }

    pub(super) fn items(&self) -> &[T] {
        &self.items[..self.len()]
    }

    pub(super) fn item_mut(&mut self, at: usize) -> &mut T {
        &mut self.items[at]
    }

    pub(super) fn set_time(&mut self, at: usize, time: u64) {
        self.times[at] = time;
    }

    /// Returns the beginning of the node.
    pub(super) fn start(&self) -> u64 {
        self.times[0]
    }

    /// Returns the end of the item, in a node that ends at `end`.
    pub(super) fn end(&self, at: usize, end: u64) -> u64 {
        self.times().get(at + 1).copied().unwrap_or(end)
    }

    /// The item that `time` is in; the first if `time` is before the node.
    pub(super) fn find(&self, time: u64) -> usize {
        self.times().partition_point(|&start| start <= time).saturating_sub(1)
    }

    pub(super) fn extremes(&self) -> Extremes {
        let each = self.items().iter().map(Item::extremes);
        each.fold(Extremes::NONE, Extremes::and)
    }

    pub(super) fn raise(&mut self, which: Range<usize>, by: u64) {
        for item in &mut self.items[which] {
            item.raise(by);
        }
    }

    /// The node is not full.
    pub(super) fn insert(&mut self, at: usize, time: u64, item: T) {
        let len = self.len();
        self.times.copy_within(at..len, at + 1);
        self.items.copy_within(at..len, at + 1);
        self.times[at] = time;
        self.items[at] = item;
        self.len += 1;
    }

    pub(super) fn remove(&mut self, which: Range<usize>) {
        let len = self.len();
        self.times.copy_within(which.end..len, which.start);
        self.items.copy_within(which.end..len, which.start);
        self.len -= which.len() as u32;
    }

    /// Keeps the first `keep`, and gives the rest away.
    pub(super) fn split_off(&mut self, keep: usize) -> Self {
        let mut rest = Self::new();
        let moved = self.len() - keep;
        rest.times[..moved].copy_from_slice(&self.times()[keep..]);
        rest.items[..moved].copy_from_slice(&self.items()[keep..]);
        rest.len = moved as u32;
        self.len = keep as u32;
        rest
    }

    /// Takes what comes after this node; both together are no more than `N`.
    pub(super) fn append(&mut self, next: &Self) {
        let (len, all) = (self.len(), self.len() + next.len());
        self.times[len..all].copy_from_slice(next.times());
        self.items[len..all].copy_from_slice(next.items());
        self.len = all as u32;
    }
}
