// SPDX-License-Identifier: GPL-2.0

//! Idea 3 of 3.2.3: less generous pieces where the node is late.

use super::super::division::Division;
use super::super::fraction::fraction;
use super::decisions::{Candidate, Decisions, IdleSlot, Piece};
use super::pieces::first_come;

pub(super) struct ByState;

impl Decisions for ByState {
    #[inline]
    fn urgency(candidate: &impl Candidate) -> i64 {
        first_come(candidate)
    }

    fn divide(_slot: &IdleSlot) -> Division {
        Division::PIECES
    }

    /// Up to three quarters of a piece are withheld, in proportion to the ratio of the node's
    /// lateness to t2_node without stress.
    fn piece_ns(piece: &Piece, _candidate: &impl Candidate) -> u64 {
        let whole_ns = piece.idle_piece_ns;
        let withheld_ns = match piece.node_late_insns {
            0 => 0,
            late_insns => fraction(whole_ns - whole_ns / 4, late_insns, piece.t2_node_insns),
        };
        piece.fit_ns(whole_ns.saturating_sub(withheld_ns))
    }
}
