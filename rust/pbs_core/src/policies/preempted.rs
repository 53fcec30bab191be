// SPDX-License-Identifier: GPL-2.0

//! Idle slots for preempted tasks alone (3.2.3).

use super::super::division::Division;
use super::decisions::{Candidate, Decisions, IdleSlot};

pub(super) struct Preempted;

impl Decisions for Preempted {
    /// Preempted tasks come before all others.
    #[inline]
    fn urgency(candidate: &impl Candidate) -> i64 {
        let half = candidate.lateness_insns() / 2;
        match candidate.preemptions() {
            0 => half.saturating_sub(1 << 62),
            _ => half.saturating_add(1 << 62),
        }
    }

    fn divide(_slot: &IdleSlot) -> Division {
        Division::Admitted
    }

    fn may_fill(candidate: &impl Candidate) -> bool {
        candidate.preemptions() != 0
    }
}
