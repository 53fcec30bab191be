// SPDX-License-Identifier: GPL-2.0

//! The lease of a plan: for how long its planner may be silent.

/// A lease, which begins anew with each renewal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    length_ns: u64,
    renewed_ns: u64,
}

impl Lease {
    /// A lease of that length that begins at `now_ns`; `None` for a length of 0.
    pub fn new(length_ns: u64, now_ns: u64) -> Option<Lease> {
        (length_ns != 0).then_some(Lease {
            length_ns,
            renewed_ns: now_ns,
        })
    }

    /// Length of the lease.
    pub fn length_ns(&self) -> u64 {
        self.length_ns
    }

    /// Begins the lease anew.
    pub fn renew(&mut self, now_ns: u64) {
        self.renewed_ns = now_ns;
    }

    /// End of the lease, unless it is renewed.
    pub fn end_ns(&self) -> u64 {
        self.renewed_ns.saturating_add(self.length_ns)
    }
}
