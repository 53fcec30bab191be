// SPDX-License-Identifier: GPL-2.0

//! Pieces for tests: the more often a task was preempted, the longer its piece.

use super::super::division::Division;
use super::decisions::{Candidate, Decisions, IdleSlot, Piece};
use super::pieces::first_come;

pub(super) struct Trial;

impl Decisions for Trial {
    #[inline]
    fn urgency(candidate: &impl Candidate) -> i64 {
        first_come(candidate)
    }

    fn divide(_slot: &IdleSlot) -> Division {
        Division::PIECES
    }

    fn piece_ns(piece: &Piece, candidate: &impl Candidate) -> u64 {
        let doublings = candidate.preemptions().min(8);
        piece.fit_ns(piece.idle_piece_ns.saturating_mul(1 << doublings))
    }
}
