// SPDX-License-Identifier: GPL-2.0
//! Questions about values.

use std::ops::Range;

use super::node::{Extremes, Item};
use super::Tree;
use crate::FOREVER;

/// A leaf as it is in its tree.
#[derive(Clone, Copy)]
pub(crate) struct LeafView<'a> {
    /// Beginnings of its steps.
    pub(crate) times: &'a [u64],
    /// Their values, without `pending`.
    pub(crate) values: &'a [u64],
    /// Amount that is added to the values.
    pub(crate) pending: u64,
    /// End of its last step.
    pub(crate) end: u64,
}

impl Tree {
    /// The leaf that `time` is in, and which of its steps; the first if `time` is
    /// before the start.
    pub(crate) fn leaf_at(&self, time: u64) -> (LeafView<'_>, usize) {
        let (mut id, mut pending, mut end) = (self.root, 0u64, FOREVER);
        for _ in 0..self.height {
            let inner = &self.inners[id];
            let at = inner.find(time);
            let child = &inner.items()[at];
            end = inner.end(at, end);
            pending = pending.wrapping_add(child.pending);
            id = child.id;
        }
        let leaf = &self.leaves[id];
        let view = LeafView { times: leaf.times(), values: leaf.items(), pending, end };
        (view, leaf.find(time))
    }

    pub(crate) fn value_at(&self, time: u64) -> u64 {
        let (leaf, at) = self.leaf_at(time);
        leaf.values[at].wrapping_add(leaf.pending)
    }

    /// The least and the greatest value from and until these times, which are not
    /// the same.
    pub(crate) fn extremes_over(&self, over: &Range<u64>) -> (u64, u64) {
        let found = self.extremes_in(self.root, self.height, (0, FOREVER), over);
        (found.least, found.greatest)
    }

    /// Returns the extremes of a node, given its pending amount and its end.
    fn extremes_in(
        &self,
        id: u32,
        height: u32,
        (pending, end): (u64, u64),
        over: &Range<u64>,
    ) -> Extremes {
        let mut found = Extremes::NONE;
        if height == 0 {
            let leaf = &self.leaves[id];
            let last = leaf.times().partition_point(|&time| time < over.end);
            for value in &leaf.items()[leaf.find(over.start)..last] {
                found = found.and(value.extremes());
            }
            return found.raised(pending);
        }
        let inner = &self.inners[id];
        let children = inner.times().iter().zip(inner.items()).enumerate();
        for (at, (&start, child)) in children.skip(inner.find(over.start)) {
            if start >= over.end {
                break;
            }
            let end_of_child = inner.end(at, end);
            found = found.and(if over.start <= start && end_of_child <= over.end {
                child.extremes.raised(pending)
            } else {
                let pending = pending.wrapping_add(child.pending);
                self.extremes_in(child.id, height - 1, (pending, end_of_child), over)
            });
        }
        found
    }

    /// The first time of these at which the value is below `need`.
    pub(crate) fn first_below(&self, need: u64, over: &Range<u64>) -> Option<u64> {
        self.first_below_in(self.root, self.height, 0, need, over.start)
            .filter(|&time| time < over.end)
            .map(|time| time.max(over.start))
    }

    /// Returns the beginning of the first step below `need` that ends after `from`.
    fn first_below_in(
        &self,
        id: u32,
        height: u32,
        pending: u64,
        need: u64,
        from: u64,
    ) -> Option<u64> {
        if height == 0 {
            let leaf = &self.leaves[id];
            let mut steps = leaf.times().iter().zip(leaf.items()).skip(leaf.find(from));
            return steps
                .find(|(_, value)| value.wrapping_add(pending) < need)
                .map(|(&time, _)| time);
        }
        let inner = &self.inners[id];
        let children = inner.items().iter().skip(inner.find(from));
        children.filter(|child| child.extremes.raised(pending).least < need).find_map(|child| {
            let pending = pending.wrapping_add(child.pending);
            self.first_below_in(child.id, height - 1, pending, need, from)
        })
    }
}
