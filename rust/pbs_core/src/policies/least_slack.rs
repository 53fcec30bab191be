// SPDX-License-Identifier: GPL-2.0

//! The least slack: the part of the plan buffer that the lateness leaves.

use super::decisions::{Candidate, Decisions};

pub(super) struct LeastSlack;

impl Decisions for LeastSlack {
    #[inline]
    fn urgency(candidate: &impl Candidate) -> i64 {
        // A plan buffer is at most 2^56.
        candidate
            .lateness_insns()
            .saturating_sub(candidate.buffer_insns() as i64)
    }
}
