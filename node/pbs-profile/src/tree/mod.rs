// SPDX-License-Identifier: GPL-2.0
//! The steps as a B+ tree over time.
//!
//! A leaf has times with the values from there on, an inner node has children
//! with the least and the greatest value below each.
//!
//! A change of a whole subtree is noted where its parent names it (`pending`),
//! and reaches the nodes below when a change goes through them. So a value is
//! what the leaf says and all that is pending on the way there. What is noted
//! wraps around; a value that results does not, as changes are checked before.
//! A node's own numbers compare as the values do: they are the values of the
//! moment in which nothing was pending above the node, as every change of some
//! values of a node makes that so first ([`Tree::settle`]).
//!
//! Nodes may be less than half full: only neighbours that fit into one node are
//! joined when one of them is nearly empty. That suffices for a low tree, and
//! what is added and taken away again and again splits nothing.

mod build;
mod change;
mod hole;
mod node;
mod query;
mod remove;
mod slab;

pub(crate) use build::Builder;
pub(crate) use query::LeafView;

use node::{Child, Extremes, Node};
use slab::Slab;

/// Steps of a leaf. A profile that fits into one leaf takes about 600 bytes. The
/// tests of this crate have small nodes and so high trees.
const LEAF: usize = if cfg!(test) { 8 } else { 32 };
/// Children of an inner node.
const FAN: usize = if cfg!(test) { 8 } else { 16 };

type Leaf = Node<u64, LEAF>;
type Inner = Node<Child, FAN>;

#[derive(Clone)]
pub(crate) struct Tree {
    leaves: Slab<Leaf>,
    inners: Slab<Inner>,
    /// A leaf if `height` is 0.
    root: u32,
    height: u32,
    /// In all leaves.
    steps: usize,
}

impl Tree {
    pub(crate) fn steps(&self) -> usize {
        self.steps
    }

    /// Returns the memory of the nodes.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.leaves.heap_bytes() + self.inners.heap_bytes()
    }

    /// Returns the beginning of the first step.
    pub(crate) fn start(&self) -> u64 {
        self.start_of(self.root, self.height)
    }

    fn start_of(&self, id: u32, height: u32) -> u64 {
        match height {
            0 => self.leaves[id].start(),
            _ => self.inners[id].start(),
        }
    }

    fn len_of(&self, id: u32, height: u32) -> usize {
        match height {
            0 => self.leaves[id].len(),
            _ => self.inners[id].len(),
        }
    }

    /// Without what is pending above.
    fn extremes_of(&self, id: u32, height: u32) -> Extremes {
        match height {
            0 => self.leaves[id].extremes(),
            _ => self.inners[id].extremes(),
        }
    }

    /// Notes in its parent how a child is now; `height` is the child's.
    fn refresh(&mut self, parent: u32, at: usize, height: u32) {
        let Child { id, pending, .. } = self.inners[parent].items()[at];
        let start = self.start_of(id, height);
        let extremes = self.extremes_of(id, height).raised(pending);
        let parent = &mut self.inners[parent];
        parent.set_time(at, start);
        parent.item_mut(at).extremes = extremes;
    }

    /// Lets what is pending for a child reach it; `height` is the child's.
    fn settle(&mut self, parent: u32, at: usize, height: u32) {
        let child = self.inners[parent].item_mut(at);
        let Child { id, pending, .. } = *child;
        if pending == 0 {
            return;
        }
        child.pending = 0;
        match height {
            0 => {
                let len = self.leaves[id].len();
                self.leaves[id].raise(0..len, pending);
            }
            _ => {
                let len = self.inners[id].len();
                self.inners[id].raise(0..len, pending);
            }
        }
    }
}

#[cfg(test)]
mod tests;
