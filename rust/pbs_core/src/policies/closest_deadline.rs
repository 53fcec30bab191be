// SPDX-License-Identifier: GPL-2.0

//! Idea 5 of 3.2.3: the closest deadline.

use super::decisions::{Candidate, Decisions};

pub(super) struct ClosestDeadline;

impl Decisions for ClosestDeadline {
    #[inline]
    fn urgency(candidate: &impl Candidate) -> i64 {
        // At most 2^62 + 2^56.
        (candidate.deadline_insns() as i64).wrapping_neg()
    }
}
