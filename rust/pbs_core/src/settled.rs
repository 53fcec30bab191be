// SPDX-License-Identifier: GPL-2.0

//! The last decision of a node.

/// What was decided last, beside who may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Settled {
    /// When.
    pub(super) since_ns: u64,
    /// When the slot ends by the clock, or the windows change.
    pub(super) clock_ns: u64,
    /// When the clock alone brings something new; `u64::MAX`: never.
    pub(super) until_ns: u64,
    /// What who runs may still retire before the count brings something new;
    /// `u64::MAX`: as much as it likes.
    pub(super) left_insns: u64,
    /// Whether lower classes go first until then, if anybody goes on.
    pub(super) clock_unallocated: bool,
    /// It is unallocated time.
    pub(super) unallocated: bool,
    /// The work was more than one decision may do.
    pub(super) again: bool,
}

impl Settled {
    /// Nothing was decided.
    pub(super) const NONE: Settled = Settled {
        since_ns: 0,
        clock_ns: 0,
        until_ns: u64::MAX,
        left_insns: u64::MAX,
        clock_unallocated: false,
        unallocated: false,
        again: false,
    };

    /// `left_insns`, if it is bounded.
    #[inline]
    pub(super) fn left_insns(&self) -> Option<u64> {
        (self.left_insns != u64::MAX).then_some(self.left_insns)
    }

    /// `until_ns`, if it comes.
    #[inline]
    pub(super) fn until_ns(&self) -> Option<u64> {
        (self.until_ns != u64::MAX).then_some(self.until_ns)
    }
}
