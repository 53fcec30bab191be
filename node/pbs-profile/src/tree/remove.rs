// SPDX-License-Identifier: GPL-2.0
//! Steps that go.

use super::node::{Item, Node};
use super::slab::Slab;
use super::{Tree, FAN, LEAF};

impl Tree {
    /// Lets the step before reach over the one that begins at `time`, which is
    /// not the first.
    pub(super) fn remove(&mut self, time: u64) {
        self.remove_in(self.root, self.height, time);
        self.steps -= 1;
        self.shrink();
    }

    /// Leaves the node empty if that was all of it.
    fn remove_in(&mut self, id: u32, height: u32, time: u64) {
        if height == 0 {
            let leaf = &mut self.leaves[id];
            let at = leaf.find(time);
            leaf.remove(at..at + 1);
            return;
        }
        let inner = &self.inners[id];
        let at = inner.find(time);
        let child = inner.items()[at].id;
        self.remove_in(child, height - 1, time);
        let capacity = if height == 1 { LEAF } else { FAN };
        match self.len_of(child, height - 1) {
            0 => {
                self.inners[id].remove(at..at + 1);
                self.free(child, height - 1);
            }
            len => {
                self.refresh(id, at, height - 1);
                if len < capacity / 4 {
                    self.join_neighbours(id, at, height - 1, capacity);
                }
            }
        }
    }

    /// Joins a child with the one after or before it if both fit into one node;
    /// `height` is the children's.
    fn join_neighbours(&mut self, parent: u32, at: usize, height: u32, capacity: usize) {
        for left in [Some(at), at.checked_sub(1)].into_iter().flatten() {
            let &[first, second, ..] = &self.inners[parent].items()[left..] else {
                continue;
            };
            if self.len_of(first.id, height) + self.len_of(second.id, height) > capacity {
                continue;
            }
            // What is pending for one is not for the other.
            self.settle(parent, left, height);
            self.settle(parent, left + 1, height);
            match height {
                0 => join(&mut self.leaves, first.id, second.id),
                _ => join(&mut self.inners, first.id, second.id),
            }
            self.inners[parent].remove(left + 1..left + 2);
            self.refresh(parent, left, height);
            return;
        }
    }

    fn free(&mut self, id: u32, height: u32) {
        match height {
            0 => self.leaves.free(id),
            _ => self.inners.free(id),
        }
    }

    /// A root with one child is none.
    fn shrink(&mut self) {
        while self.height > 0 && self.inners[self.root].len() == 1 {
            self.settle(self.root, 0, self.height - 1);
            let root = self.inners[self.root].items()[0].id;
            self.inners.free(self.root);
            self.root = root;
            self.height -= 1;
        }
    }

    /// Lets the first step begin at `time`, which is after the start; what was
    /// before is gone.
    pub(crate) fn forget_before(&mut self, time: u64) {
        self.forget_in(self.root, self.height, time);
        self.shrink();
    }

    fn forget_in(&mut self, id: u32, height: u32, time: u64) {
        if height == 0 {
            let leaf = &mut self.leaves[id];
            let at = leaf.find(time);
            leaf.remove(0..at);
            leaf.set_time(0, time);
            self.steps -= at;
            return;
        }
        let at = self.inners[id].find(time);
        for before in 0..at {
            let child = self.inners[id].items()[before].id;
            self.free_below(child, height - 1);
        }
        let inner = &mut self.inners[id];
        inner.remove(0..at);
        let child = inner.items()[0].id;
        self.forget_in(child, height - 1, time);
        self.refresh(id, 0, height - 1);
    }

    /// Frees a node with all below it.
    fn free_below(&mut self, id: u32, height: u32) {
        if height == 0 {
            self.steps -= self.leaves[id].len();
        } else {
            for at in 0..self.inners[id].len() {
                let child = self.inners[id].items()[at].id;
                self.free_below(child, height - 1);
            }
        }
        self.free(id, height);
    }
}

/// Puts all of the second node into the first.
fn join<T: Item, const N: usize>(nodes: &mut Slab<Node<T, N>>, first: u32, second: u32) {
    let rest = nodes[second];
    nodes[first].append(&rest);
    nodes.free(second);
}
