// SPDX-License-Identifier: GPL-2.0

//! Idea 4 of 3.2.3: the whole slot for one process, each process of the plan in turn.

use super::super::division::Division;
use super::decisions::{Candidate, Decisions, IdleSlot};
use super::pieces::first_come;

pub(super) struct RoundRobin;

impl Decisions for RoundRobin {
    #[inline]
    fn urgency(candidate: &impl Candidate) -> i64 {
        first_come(candidate)
    }

    fn divide(slot: &IdleSlot) -> Division {
        let turn = slot.whole_slots.checked_rem(slot.processes.into());
        Division::Whole(turn.unwrap_or(0) as u32)
    }
}
