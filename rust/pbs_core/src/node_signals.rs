// SPDX-License-Identifier: GPL-2.0

//! Prediction failures of a node as a whole, as far as they were reported.

use super::level::Level;
use super::next_check::CachedCheck;

/// State of the thresholds of a node: last checks and reports.
#[derive(Clone, Copy, Debug)]
pub(super) struct NodeSignals {
    /// The last check of t2_node.
    pub(super) check: CachedCheck,
    /// Reported of t2_node.
    pub(super) late: Level,
    /// Reported of tm2_node.
    pub(super) early: Level,
    /// Reported of the plan's limit of memory.
    pub(super) memory: Level,
    /// Memory that processes on other CPUs used when it was last asked for.
    pub(super) elsewhere_bytes: u64,
}

impl NodeSignals {
    pub(super) const NONE: NodeSignals = NodeSignals {
        check: CachedCheck::NONE,
        late: Level::NOTHING,
        early: Level::NOTHING,
        memory: Level::NOTHING,
        elsewhere_bytes: 0,
    };

    /// Whether a plan that deals with the events before `dealt_seq` deals with a failure of the
    /// node's lateness or earliness.
    pub(super) fn is_dealt(&self, dealt_seq: u64) -> bool {
        self.late.is_dealt(dealt_seq) || self.early.is_dealt(dealt_seq)
    }

    /// Takes over the reports of `old` about lateness and earliness that the plan does not deal
    /// with.
    pub(super) fn reopen(&mut self, old: &NodeSignals, info_dealt_seq: u64) {
        self.late = old.late.reopened(info_dealt_seq);
        self.early = old.early.reopened(info_dealt_seq);
    }

    /// The state without the check, for a comparison.
    #[cfg(test)]
    pub(super) fn still(self, progress: u32) -> NodeSignals {
        NodeSignals {
            check: self.check.still(progress),
            ..self
        }
    }
}

saved!([super] NodeSignals {
    check,
    late,
    early,
    memory,
    elsewhere_bytes,
});
