// SPDX-License-Identifier: GPL-2.0

//! Idle slots that stay idle: a yardstick for all other policies.

use super::super::division::Division;
use super::decisions::{Candidate, Decisions, IdleSlot};

pub(super) struct Nobody;

impl Decisions for Nobody {
    #[inline]
    fn urgency(candidate: &impl Candidate) -> i64 {
        candidate.lateness_insns()
    }

    fn divide(_slot: &IdleSlot) -> Division {
        Division::Nobody
    }
}
