// SPDX-License-Identifier: GPL-2.0

//! Division of an idle slot among the candidates (Leppert 2021, 3.2.3).
//!
//! The queue decides *which* candidate comes next ([`Run::urgency`]), this file *how much*
//! of an idle slot it gets.  Each piece is computed when it begins, in constant time, and
//! ends on the clock of plan time, in which idle slots are measured.
//!
//! [`Run::urgency`]: super::run::Run::urgency

use super::config::IdlePolicy;
use super::division::Division;
use super::memory::Memory;
use super::node::Node;
use super::thresholds::fraction;

impl<M: Memory> Node<M> {
    /// Divides the present slot, which is idle and has begun.
    #[inline(never)]
    pub(super) fn divide(&mut self) {
        let processes = self.processes.len() as u64;
        self.slot.divide(self.queue.policy(), processes);
    }

    /// Begins a piece of the present idle slot, for the process that is granted the CPU.
    #[inline(never)]
    pub(super) fn begin_piece(&mut self, now_ns: u64) {
        let Division::Pieces { share_ns, .. } = *self.slot.division() else {
            return;
        };
        let plan_ns = self.windows.plan_ns(now_ns);
        let rest_ns = self.slot.end_plan_ns().saturating_sub(plan_ns);
        let (piece_ns, share_ns) = match self.queue.policy() {
            IdlePolicy::EqualShares => {
                let share_ns = match share_ns {
                    0 => self.equal_share_ns(rest_ns),
                    _ => share_ns,
                };
                (share_ns, share_ns)
            }
            IdlePolicy::ByState => (self.fit_ns(self.piece_by_state_ns(), rest_ns), 0),
            _ => (self.fit_ns(self.policy.config.idle_piece_ns, rest_ns), 0),
        };
        self.slot
            .begin_piece(plan_ns.saturating_add(piece_ns.max(1)), share_ns);
    }

    /// Share of each candidate in `rest_ns`, including the one that has just left the queue.
    /// Rounded up: nothing is left.
    fn equal_share_ns(&self, rest_ns: u64) -> u64 {
        let others = self.queue.len() as u64;
        let share_ns = rest_ns
            .saturating_add(others)
            .checked_div(others.saturating_add(1));
        share_ns.unwrap_or(rest_ns).max(1)
    }

    /// Returns `piece_ns`, or all of `rest_ns` if there would be no room for another piece.
    fn fit_ns(&self, piece_ns: u64, rest_ns: u64) -> u64 {
        if piece_ns == 0 || rest_ns.saturating_sub(piece_ns) < piece_ns {
            rest_ns
        } else {
            piece_ns
        }
    }

    /// Returns the length of a piece by idea 3 of 3.2.3: less generous pieces where the node is
    /// late.  Up to three quarters of a piece are withheld, in proportion to the ratio of the
    /// node's lateness to t2_node without stress.
    fn piece_by_state_ns(&self) -> u64 {
        let piece_ns = self.policy.config.idle_piece_ns;
        let late_insns = self.processes.sums().lateness_insns().max(0).unsigned_abs();
        if late_insns == 0 {
            return piece_ns;
        }
        let limit_insns = self.calm_t2_node_insns();
        let most_ns = piece_ns - piece_ns / 4;
        piece_ns.saturating_sub(fraction(most_ns, late_insns, limit_insns))
    }
}
