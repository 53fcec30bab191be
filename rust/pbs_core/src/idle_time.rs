// SPDX-License-Identifier: GPL-2.0

//! Idle time of a node (Leppert 2021, 3.3.8, "Accumulating earliness").

use super::rate::Rate;

/// Instructions that could have been retired while the plan waited for its
/// processes.
///
/// They lessen the earliness of the node, and are never more than that: idling
/// can make a node less early, not late.
#[derive(Clone, Copy, Debug)]
pub(super) struct IdleTime {
    insns: u64,
    /// Plan time since which the plan has been waiting for its processes, if it is waiting and that
    /// counts.
    waits_since_ns: Option<u64>,
}

impl IdleTime {
    pub(super) const NONE: IdleTime = IdleTime {
        insns: 0,
        waits_since_ns: None,
    };

    pub(super) fn insns(&self) -> u64 {
        self.insns
    }

    pub(super) fn is_waiting(&self) -> bool {
        self.waits_since_ns.is_some()
    }

    /// Notes that the plan has been waiting for its processes since that plan time; `None`: it is
    /// not waiting.
    pub(super) fn wait_since(&mut self, plan_ns: Option<u64>) {
        self.waits_since_ns = plan_ns;
    }

    /// Idle instructions at `plan_ns` of a node that is early by `early_insns`.
    pub(super) fn insns_at(&self, plan_ns: u64, rate: Rate, early_insns: u64) -> u64 {
        let Some(since_ns) = self.waits_since_ns else {
            return self.insns;
        };
        let waited_ns = plan_ns.saturating_sub(since_ns);
        self.insns
            .saturating_add(rate.to_insns(waited_ns))
            .min(early_insns)
    }

    /// Replaces the idle instructions, and ends the wait.
    pub(super) fn set(&mut self, insns: u64) {
        *self = IdleTime {
            insns,
            waits_since_ns: None,
        };
    }

    /// Limits the idle instructions to `early_insns`, by which the node is early now.
    #[inline]
    pub(super) fn limit(&mut self, early_insns: impl FnOnce() -> u64) {
        if self.insns != 0 {
            self.insns = self.insns.min(early_insns());
        }
    }
}

saved!([super] IdleTime {
    insns,
    waits_since_ns,
});
