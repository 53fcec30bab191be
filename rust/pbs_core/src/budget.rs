// SPDX-License-Identifier: GPL-2.0

//! Budget of the time that threads may take out of turn.

/// Time that may still be taken out of turn in the present window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Budget {
    left_ns: u64,
    /// End of the window, at which a new budget begins.
    until_ns: u64,
}

impl Budget {
    /// An unknown budget: the first check begins one.
    pub(super) const UNKNOWN: Budget = Budget {
        left_ns: 0,
        until_ns: 0,
    };

    pub(super) fn left_ns(&self) -> u64 {
        self.left_ns
    }

    /// Whether the window is over at `now_ns`.
    pub(super) fn is_over(&self, now_ns: u64) -> bool {
        now_ns >= self.until_ns
    }

    /// Begins the budget of a window that ends at `until_ns`.
    pub(super) fn begin(&mut self, left_ns: u64, until_ns: u64) {
        *self = Budget { left_ns, until_ns };
    }

    pub(super) fn take(&mut self, ns: u64) {
        self.left_ns = self.left_ns.saturating_sub(ns);
    }
}

saved!([super] Budget {
    left_ns,
    until_ns,
});
