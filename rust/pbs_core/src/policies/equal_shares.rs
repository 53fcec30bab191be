// SPDX-License-Identifier: GPL-2.0

//! Idea 2 of 3.2.3: equal parts for all candidates at the time when the first gets the slot.

use super::super::division::Division;
use super::decisions::{Candidate, Decisions, IdleSlot, Piece};
use super::pieces::first_come;

pub(super) struct EqualShares;

impl Decisions for EqualShares {
    #[inline]
    fn urgency(candidate: &impl Candidate) -> i64 {
        first_come(candidate)
    }

    fn divide(_slot: &IdleSlot) -> Division {
        Division::PIECES
    }

    fn piece_ns(piece: &Piece, _candidate: &impl Candidate) -> u64 {
        match piece.last_ns {
            // Rounded up: nothing is left.
            0 => piece.rest_ns.div_ceil(piece.candidates.max(1)),
            share_ns => share_ns,
        }
    }
}
