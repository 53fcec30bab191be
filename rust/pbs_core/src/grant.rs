// SPDX-License-Identifier: GPL-2.0

//! The grant of the CPU, and what was reported of it.

use super::event::Grant;

/// The process that is granted the CPU.
#[derive(Clone, Copy, Debug)]
pub(super) struct CurrentGrant {
    process: Option<u32>,
    reason: Grant,
    /// Number of the window in which it was granted, if not for its own slot.
    turn: u64,
}

impl CurrentGrant {
    pub(super) const NONE: CurrentGrant = CurrentGrant {
        process: None,
        reason: Grant::None,
        turn: 0,
    };

    pub(super) fn process(&self) -> Option<u32> {
        self.process
    }

    pub(super) fn reason(&self) -> Grant {
        self.reason
    }

    /// Whether `p` is granted the CPU.
    pub(super) fn is(&self, p: u32) -> bool {
        self.process == Some(p)
    }

    pub(super) fn turn(&self) -> u64 {
        self.turn
    }

    /// Grants the CPU to `process`.  Returns the process that had it before.
    #[inline(always)]
    pub(super) fn set(&mut self, process: Option<u32>, reason: Grant) -> Option<u32> {
        self.reason = reason;
        core::mem::replace(&mut self.process, process)
    }

    /// Grants the CPU to a process that fills a slot, in the window `turn`; to none
    /// if there is none.
    #[inline(always)]
    pub(super) fn fill(&mut self, process: Option<u32>, reason: Grant, turn: u64) {
        *self = CurrentGrant {
            process,
            reason: process.map_or(Grant::None, |_| reason),
            turn,
        };
    }

    /// Forgets the reason, as the slot ends for which it held.
    pub(super) fn forget_reason(&mut self) {
        self.reason = Grant::None;
    }
}

/// A grant as an event reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReportedGrant {
    pub(super) process: Option<u32>,
    /// Number of the slot on the wire.
    pub(super) slot: u64,
    pub(super) reason: Grant,
}

/// A grant that is not reported yet, with the parts of its event that change
/// meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PendingGrant {
    pub(super) grant: ReportedGrant,
    pub(super) since_ns: u64,
    pub(super) retired_insns: u64,
    pub(super) node_lateness_insns: i64,
}

/// The last grant that was reported, and the one since.
#[derive(Clone, Copy, Debug)]
pub(super) struct GrantReports {
    last: Option<ReportedGrant>,
    pending: Option<PendingGrant>,
}

impl GrantReports {
    pub(super) const NONE: GrantReports = GrantReports {
        last: None,
        pending: None,
    };

    /// Drops a pending grant other than `grant`, which did not last.  Returns whether
    /// `grant` has still to become the pending one.
    #[inline(always)]
    pub(super) fn is_new(&mut self, grant: &ReportedGrant) -> bool {
        if let Some(pending) = &self.pending {
            if pending.grant == *grant {
                return false;
            }
            self.pending = None;
        }
        self.last != Some(*grant)
    }

    /// Makes a grant the pending one.  Returns whether it must be reported at once, as
    /// the first one of its slot.
    #[inline(always)]
    pub(super) fn set_pending(&mut self, pending: PendingGrant) -> bool {
        self.pending = Some(pending);
        self.last.is_none_or(|last| last.slot != pending.grant.slot)
    }

    /// Time at which the pending grant was decided, if there is one.
    pub(super) fn pending_since_ns(&self) -> Option<u64> {
        self.pending.as_ref().map(|pending| pending.since_ns)
    }

    /// Takes the pending grant, which is reported.
    pub(super) fn take_pending(&mut self) -> Option<PendingGrant> {
        self.pending.take()
    }

    /// Remembers the grant that was reported last.
    pub(super) fn set_last(&mut self, last: ReportedGrant) {
        self.last = Some(last);
    }
}

saved!([super] CurrentGrant {
    process,
    reason,
    turn,
});
saved!([super] ReportedGrant {
    process,
    slot,
    reason,
});
saved!([super] PendingGrant {
    grant,
    since_ns,
    retired_insns,
    node_lateness_insns,
});
saved!([super] GrantReports {
    last,
    pending,
});
