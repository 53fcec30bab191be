// SPDX-License-Identifier: GPL-2.0

//! Division of a slot among the processes that fill it.

/// Division of the present slot, if its own process can't run or there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Division {
    /// In turns, which end with the window.
    Turns,
    /// In pieces of plan time.
    Pieces {
        /// End of the present piece.
        until_plan_ns: u64,
        /// Share of each candidate, if that is computed once for a slot; 0: not yet.
        share_ns: u64,
    },
    /// The whole slot for one process alone.
    Whole(u32),
    /// In turns, for processes whose tasks were preempted.
    Preempted,
    /// For no process.
    Nobody,
}

impl Division {
    /// Whether the process that fills the slot keeps it at `plan_ns`.  `in_turn`: its turn began in
    /// this window.
    #[inline]
    pub(super) fn goes_on(&self, in_turn: bool, plan_ns: impl FnOnce() -> u64) -> bool {
        match *self {
            Division::Turns | Division::Preempted => in_turn,
            Division::Nobody => false,
            Division::Pieces { until_plan_ns, .. } => plan_ns() < until_plan_ns,
            Division::Whole(_) => true,
        }
    }
}
