// SPDX-License-Identifier: GPL-2.0
//! Values that change over a stretch of time.

use std::ops::Range;

use super::node::{Child, Item, Node};
use super::slab::Slab;
use super::{Inner, Tree};
use crate::FOREVER;

/// Result of a cut.
enum Cut {
    /// A step began there before.
    Was,
    Done,
    /// Done, and the node has a new neighbour after it.
    Split(u32),
}

impl Tree {
    /// Raises the values from and until these times, which are at or after the
    /// start and not the same. The caller has seen to it that none overflows; what
    /// is to be subtracted is given as its two's complement, and it is not 0.
    pub(crate) fn raise(&mut self, over: Range<u64>, by: u64) {
        let begins = self.cut(over.start);
        let ends = over.end == FOREVER || self.cut(over.end);
        self.raise_in(self.root, self.height, FOREVER, &over, by);
        // A step that was cut in two has different values on both sides now.
        if !begins {
            self.heal(over.start);
        }
        if !ends {
            self.heal(over.end);
        }
    }

    /// Makes a step begin at `time`. Says whether it had to be made.
    fn cut(&mut self, time: u64) -> bool {
        match self.cut_in(self.root, self.height, time, FOREVER) {
            Cut::Was => return false,
            Cut::Done => (),
            Cut::Split(right) => self.grow(right),
        }
        self.steps += 1;
        true
    }

    fn cut_in(&mut self, id: u32, height: u32, time: u64, end: u64) -> Cut {
        if height == 0 {
            let leaf = &self.leaves[id];
            let at = leaf.find(time);
            if leaf.times()[at] == time {
                return Cut::Was;
            }
            let value = leaf.items()[at];
            let added = insert(&mut self.leaves, id, at + 1, (time, value), end);
            return added.map_or(Cut::Done, Cut::Split);
        }
        let inner = &self.inners[id];
        let at = inner.find(time);
        let end_of_child = inner.end(at, end);
        let Child { id: child, pending, .. } = inner.items()[at];
        match self.cut_in(child, height - 1, time, end_of_child) {
            Cut::Split(right) => {
                // Both halves have the values of the whole.
                self.refresh(id, at, height - 1);
                let start = self.start_of(right, height - 1);
                let entry = self.child(right, height - 1, pending);
                let added = insert(&mut self.inners, id, at + 1, (start, entry), end);
                added.map_or(Cut::Done, Cut::Split)
            }
            // The new step has the value of the one that it was part of.
            done => done,
        }
    }

    /// Returns a parent's entry for a node.
    pub(super) fn child(&self, id: u32, height: u32, pending: u64) -> Child {
        Child { extremes: self.extremes_of(id, height).raised(pending), pending, id }
    }

    /// A root above the root and its new neighbour.
    fn grow(&mut self, right: u32) {
        let mut root = Inner::new();
        for (at, id) in [self.root, right].into_iter().enumerate() {
            let start = self.start_of(id, self.height);
            root.insert(at, start, self.child(id, self.height, 0));
        }
        self.root = self.inners.put(root);
        self.height += 1;
    }

    /// Steps begin at both ends, or time does.
    fn raise_in(&mut self, id: u32, height: u32, end: u64, over: &Range<u64>, by: u64) {
        if height == 0 {
            let leaf = &mut self.leaves[id];
            let times = leaf.times();
            let first = times.partition_point(|&time| time < over.start);
            let last = times.partition_point(|&time| time < over.end);
            leaf.raise(first..last, by);
            return;
        }
        let mut at = self.inners[id].find(over.start);
        while at < self.inners[id].len() && self.inners[id].times()[at] < over.end {
            let inner = &mut self.inners[id];
            let end_of_child = inner.end(at, end);
            if over.start <= inner.times()[at] && end_of_child <= over.end {
                inner.item_mut(at).raise(by);
            } else if over.start < end_of_child {
                let child = inner.items()[at].id;
                self.settle(id, at, height - 1);
                self.raise_in(child, height - 1, end_of_child, over, by);
                self.refresh(id, at, height - 1);
            }
            at += 1;
        }
    }

    /// Joins the steps before and after `time` if they are equal.
    fn heal(&mut self, time: u64) {
        if time > self.start() && self.value_at(time - 1) == self.value_at(time) {
            self.remove(time);
        }
    }
}

/// Puts something into a node, which ends at `end`. If it is full, the rest of it
/// goes to a new node after it, which is told.
fn insert<T: Item, const N: usize>(
    nodes: &mut Slab<Node<T, N>>,
    id: u32,
    at: usize,
    (time, item): (u64, T),
    end: u64,
) -> Option<u32> {
    let node = &mut nodes[id];
    if !node.is_full() {
        node.insert(at, time, item);
        return None;
    }
    // Plans grow at their end: what is full there will not change much.
    let keep = if at == N && end == FOREVER { N } else { N / 2 };
    let mut right = node.split_off(keep);
    if at > keep || keep == N {
        right.insert(at - keep, time, item);
    } else {
        node.insert(at, time, item);
    }
    Some(nodes.put(right))
}
