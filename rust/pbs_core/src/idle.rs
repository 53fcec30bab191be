// SPDX-License-Identifier: GPL-2.0

//! Division of an idle slot among the candidates (Leppert 2021, 3.2.3).
//!
//! The queue decides *which* candidate comes next, this file *how much* of an idle slot it gets;
//! both by the policy.  Each piece is computed when it begins, in constant time, and ends on the
//! clock of plan time, in which idle slots are measured.

use super::division::Division;
use super::memory::Memory;
use super::node::Node;
use super::policies::{IdleSlot, Piece};

impl<M: Memory> Node<M> {
    /// Divides the present slot, which is idle and has begun.
    #[inline(never)]
    pub(super) fn divide(&mut self) {
        let slot = IdleSlot {
            processes: self.processes.len() as u32,
            whole_slots: self.slot.whole_slots(),
        };
        self.slot.divide(self.queue.policy().divide(&slot));
    }

    /// Begins a piece of the present idle slot, for the process that is granted the CPU.
    #[inline(never)]
    pub(super) fn begin_piece(&mut self, now_ns: u64) {
        let Division::Pieces { last_ns, .. } = *self.slot.division() else {
            return;
        };
        let granted = self.grant.process();
        let Some(candidate) = granted.and_then(|p| self.processes.get(p)) else {
            return;
        };
        let plan_ns = self.windows.plan_ns(now_ns);
        let piece = Piece {
            rest_ns: self.slot.end_plan_ns().saturating_sub(plan_ns),
            last_ns,
            candidates: (self.queue.len() as u64).saturating_add(1),
            idle_piece_ns: self.policy.config.idle_piece_ns,
            node_late_insns: self.processes.sums().lateness_insns().max(0).unsigned_abs(),
            t2_node_insns: self.calm_t2_node_insns(),
        };
        let piece_ns = self.queue.policy().piece_ns(&piece, candidate).max(1);
        self.slot
            .begin_piece(plan_ns.saturating_add(piece_ns), piece_ns);
    }
}
