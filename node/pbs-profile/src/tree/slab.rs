// SPDX-License-Identifier: GPL-2.0
//! Nodes side by side in memory, named by their place.

use std::ops::{Index, IndexMut};

/// Places are 32 bits: that many nodes are a terabyte and more.
#[derive(Clone)]
pub(super) struct Slab<N> {
    nodes: Vec<N>,
    free: Vec<u32>,
}

impl<N> Slab<N> {
    pub(super) const fn new() -> Self {
        Self { nodes: Vec::new(), free: Vec::new() }
    }

    pub(super) fn put(&mut self, node: N) -> u32 {
        if let Some(id) = self.free.pop() {
            self[id] = node;
            return id;
        }
        if self.nodes.is_empty() {
            // Most profiles are one leaf; a vector would begin with four.
            self.nodes.reserve_exact(1);
        }
        self.nodes.push(node);
        (self.nodes.len() - 1) as u32
    }

    /// The place may be given to another node.
    pub(super) fn free(&mut self, id: u32) {
        self.free.push(id);
    }

    /// Returns the memory of the slab.
    pub(super) fn heap_bytes(&self) -> usize {
        self.nodes.capacity() * size_of::<N>() + self.free.capacity() * size_of::<u32>()
    }

    /// Returns the number of nodes.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.nodes.len() - self.free.len()
    }
}

impl<N> Index<u32> for Slab<N> {
    type Output = N;

    fn index(&self, id: u32) -> &N {
        &self.nodes[id as usize]
    }
}

impl<N> IndexMut<u32> for Slab<N> {
    fn index_mut(&mut self, id: u32) -> &mut N {
        &mut self.nodes[id as usize]
    }
}
