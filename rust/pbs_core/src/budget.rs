// SPDX-License-Identifier: GPL-2.0

//! Budget of the time that threads may take out of turn.

/// What may be taken of the present window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Budget {
    pub(super) left_ns: u64,
    /// When the window ends, and there is a new budget.
    pub(super) until_ns: u64,
}

impl Budget {
    /// None is known: the first look brings a new one.
    pub(super) const UNKNOWN: Budget = Budget {
        left_ns: 0,
        until_ns: 0,
    };
}
