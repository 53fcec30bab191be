// SPDX-License-Identifier: GPL-2.0
//! Memory use of the plan: Keller's report of his resource usage vectors (6, example 4).

/// Vectors with their slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Vectors {
    /// Number of vectors.
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

/// Memory use of the plan by kind of vector.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Vectors of the cluster as a whole and of its pools: sRS.
    pub system: Vectors,
    /// Vectors of nodes, one for each resource: nRS.
    pub nodes: Vectors,
    /// Vectors of users and groups: usdRS.
    pub consumers: Vectors,
}
