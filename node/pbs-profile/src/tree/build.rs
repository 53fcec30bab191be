// SPDX-License-Identifier: GPL-2.0
//! A tree of steps that come in order.

use super::slab::Slab;
use super::{Inner, Leaf, Tree, FAN, LEAF};

/// Number of items with which a node is filled; room remains, and not every change splits a node.
const LEAF_FILL: usize = LEAF * 3 / 4;
const FAN_FILL: usize = FAN * 3 / 4;

/// Takes steps in the order of time, and makes one of equal ones.
pub(crate) struct Builder {
    leaves: Slab<Leaf>,
    /// The last, which is not in `leaves` yet.
    leaf: Leaf,
    full: Vec<u32>,
    steps: usize,
    last: u64,
}

impl Builder {
    /// With the first step.
    pub(crate) fn new(start: u64, value: u64) -> Self {
        let mut leaf = Leaf::new();
        leaf.insert(0, start, value);
        Self { leaves: Slab::new(), leaf, full: Vec::new(), steps: 1, last: value }
    }

    /// The value is this from `time` on, which is after all before.
    pub(crate) fn push(&mut self, time: u64, value: u64) {
        if value == self.last {
            return;
        }
        if self.leaf.len() == LEAF_FILL {
            self.full.push(self.leaves.put(self.leaf));
            self.leaf = Leaf::new();
        }
        self.leaf.insert(self.leaf.len(), time, value);
        self.steps += 1;
        self.last = value;
    }

    pub(crate) fn finish(mut self) -> Tree {
        self.full.push(self.leaves.put(self.leaf));
        let mut tree = Tree {
            leaves: self.leaves,
            inners: Slab::new(),
            root: 0,
            height: 0,
            steps: self.steps,
        };
        let mut level = self.full;
        while level.len() > 1 {
            let groups = level.chunks(FAN_FILL);
            level = groups.map(|ids| tree.parent(ids)).collect();
            tree.height += 1;
        }
        tree.root = level[0];
        tree
    }
}

impl Tree {
    /// A node above these, which are as high as the tree so far.
    fn parent(&mut self, ids: &[u32]) -> u32 {
        let mut inner = Inner::new();
        for (at, &id) in ids.iter().enumerate() {
            let start = self.start_of(id, self.height);
            inner.insert(at, start, self.child(id, self.height, 0));
        }
        self.inners.put(inner)
    }
}
