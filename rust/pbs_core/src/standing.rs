// SPDX-License-Identifier: GPL-2.0

//! The standing decision, and its duration.

use super::next_check::NextCheck;

/// The last decision, apart from the grant.
#[derive(Clone, Copy, Debug)]
pub(super) struct StandingDecision {
    since_ns: u64,
    /// Time at which the slot ends by the clock or the windows change, and whether it is
    /// unallocated time until then.
    clock: Clock,
    /// Time at which the clock alone requires a new decision; `u64::MAX`: never.
    until_ns: u64,
    /// Instructions that the granted process may still retire before the count requires
    /// a new decision; `u64::MAX`: without a bound.
    left_insns: u64,
    /// Whether it is unallocated time while a slot has begun or a process is granted.
    unallocated: bool,
    /// Whether the work was more than one decision may do.
    unfinished: bool,
    /// Whether the decision stands: no input since then could change it, other than by changing the
    /// processes that can run.  Of charges of the granted process only the count matters.
    stands: bool,
    /// Whether the processes that can run have changed since then.
    stale: bool,
    /// Next check of the lateness thresholds of the granted process.
    next_check: NextCheck,
}

/// The next change that the clock brings.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    /// Time at which the slot, or a piece of it, ends by the clock, or the windows change.
    pub(super) change_ns: u64,
    /// Whether it is unallocated time until then.
    pub(super) unallocated: bool,
}

impl StandingDecision {
    /// The absence of a decision.
    pub(super) const NONE: StandingDecision = StandingDecision {
        since_ns: 0,
        clock: Clock {
            change_ns: 0,
            unallocated: false,
        },
        until_ns: u64::MAX,
        left_insns: u64::MAX,
        unallocated: false,
        unfinished: false,
        stands: false,
        stale: false,
        next_check: NextCheck::NEVER,
    };

    pub(super) fn since_ns(&self) -> u64 {
        self.since_ns
    }

    pub(super) fn clock(&self) -> Clock {
        self.clock
    }

    /// Time at which the clock alone requires a new decision, if any.
    pub(super) fn until_ns(&self) -> Option<u64> {
        (self.until_ns != u64::MAX).then_some(self.until_ns)
    }

    /// Instructions that the granted process may still retire, if they are bounded.
    pub(super) fn left_insns(&self) -> Option<u64> {
        (self.left_insns != u64::MAX).then_some(self.left_insns)
    }

    pub(super) fn is_unallocated(&self) -> bool {
        self.unallocated
    }

    pub(super) fn is_unfinished(&self) -> bool {
        self.unfinished
    }

    pub(super) fn next_check(&self) -> NextCheck {
        self.next_check
    }

    pub(super) fn set_next_check(&mut self, next_check: NextCheck) {
        self.next_check = next_check;
    }

    /// Whether the decision holds at `now_ns`, unless other processes can run now.
    #[inline(always)]
    pub(super) fn holds(&self, now_ns: u64) -> bool {
        let holds = (self.since_ns..self.until_ns).contains(&now_ns);
        self.stands && holds && self.left_insns != 0
    }

    pub(super) fn is_stale(&self) -> bool {
        self.stale
    }

    /// Notes whether other processes can run now.
    pub(super) fn set_stale(&mut self, stale: bool) {
        self.stale |= stale;
    }

    /// Requires a new decision.
    pub(super) fn revoke(&mut self) {
        self.stands = false;
    }

    /// Requires a new decision soon: the work was too much for one.
    #[inline(always)]
    pub(super) fn leave_unfinished(&mut self) {
        self.stands = false;
        self.unfinished = true;
    }

    /// Notes that the granted process has retired `insns` more.
    #[inline(always)]
    pub(super) fn retire(&mut self, insns: u64) {
        if self.left_insns != u64::MAX {
            self.left_insns = self.left_insns.saturating_sub(insns);
        }
    }

    /// Records a decision made at `now_ns`.  It stands until the clock brings a change, the granted
    /// process has retired `left_insns`, or its thresholds must be checked; `goes_on`: a slot has
    /// begun or a process is granted.
    #[inline(always)]
    pub(super) fn stand(&mut self, now_ns: u64, clock: Clock, left_insns: u64, goes_on: bool) {
        *self = StandingDecision {
            since_ns: now_ns,
            clock,
            until_ns: if goes_on {
                clock.change_ns.min(self.next_check.at_ns)
            } else {
                u64::MAX
            },
            left_insns,
            unallocated: goes_on && clock.unallocated,
            unfinished: false,
            stands: true,
            stale: false,
            next_check: self.next_check,
        };
    }
}

saved!([super] StandingDecision {
    since_ns,
    clock,
    until_ns,
    left_insns,
    unallocated,
    unfinished,
    stands,
    stale,
    next_check,
});
saved!([super] Clock {
    change_ns,
    unallocated,
});
