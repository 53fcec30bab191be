// SPDX-License-Identifier: GPL-2.0
//! What the plan takes of memory: Keller's report of his resource usage vectors (6, example
//! 4).

/// Vectors with their slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Vectors {
    /// How many.
    pub vectors: usize,
    /// The slots of all of them.
    pub slots: usize,
    /// Bytes that they take.
    pub bytes: usize,
}

impl Vectors {
    pub(crate) fn count(&mut self, slots: usize, bytes: usize) {
        self.vectors += 1;
        self.slots += slots;
        self.bytes += bytes;
    }
}

/// By what they are of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Of the cluster as a whole and of its pools: sRS.
    pub system: Vectors,
    /// Of nodes, one for each resource: nRS.
    pub nodes: Vectors,
    /// Of users and groups: usdRS.
    pub consumers: Vectors,
}
