// SPDX-License-Identifier: GPL-2.0

//! Division of a slot among the processes that fill it.

/// How the present slot is divided, where its own process can't run or there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Division {
    /// In turns, which end with the window.
    Turns,
    /// In pieces of plan time.
    Pieces {
        /// When the present one ends.
        until_plan_ns: u64,
        /// What all have, where that is found out once for a slot; 0: not yet.
        share_ns: u64,
    },
    /// It is for one process alone.
    Whole(u32),
}

impl Division {
    /// Does who has the slot keep it at `plan_ns`, if its turn began in this window
    /// or not?
    #[inline]
    pub(super) fn goes_on(&self, in_turn: bool, plan_ns: impl FnOnce() -> u64) -> bool {
        match *self {
            Division::Turns => in_turn,
            Division::Pieces { until_plan_ns, .. } => plan_ns() < until_plan_ns,
            Division::Whole(_) => true,
        }
    }
}
