// SPDX-License-Identifier: GPL-2.0

//! Idea 1 of 3.2.3: pieces of one size, for the candidates in the order in which they have waited.

use super::super::division::Division;
use super::decisions::{Candidate, Decisions, IdleSlot, Piece};

pub(super) struct Pieces;

impl Decisions for Pieces {
    #[inline]
    fn urgency(candidate: &impl Candidate) -> i64 {
        first_come(candidate)
    }

    fn divide(_slot: &IdleSlot) -> Division {
        Division::PIECES
    }

    fn piece_ns(piece: &Piece, _candidate: &impl Candidate) -> u64 {
        piece.fit_ns(piece.idle_piece_ns)
    }
}

/// Urgency that grows with the time for which a candidate has waited.
#[inline]
pub(super) fn first_come(candidate: &impl Candidate) -> i64 {
    // At most 2^63 tickets are issued in any life.
    (candidate.ticket() as i64).wrapping_neg()
}
