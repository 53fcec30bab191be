// SPDX-License-Identifier: GPL-2.0

//! How an idle slot is divided among the candidates (Leppert 2021, 3.2.3).
//!
//! *Who* comes next is the order of the queue ([`Run::urgency`]); *how much* it has of
//! an idle slot stands here.  Each piece is worked out when it begins, in constant
//! time, and ends on the clock of plan time, which is what an idle slot is measured
//! in.
//!
//! [`Run::urgency`]: super::run::Run::urgency

use super::config::IdlePolicy;
use super::division::Division;
use super::memory::Memory;
use super::node::Node;
use super::thresholds::fraction;

impl<M: Memory> Node<M> {
    /// The present slot, which is idle, has begun: how it is divided.
    #[inline(never)]
    pub(super) fn divide(&mut self) {
        self.slot.division = match self.queue.policy() {
            IdlePolicy::Latest | IdlePolicy::LeastSlack | IdlePolicy::ClosestDeadline => {
                Division::Turns
            }
            IdlePolicy::Pieces | IdlePolicy::EqualShares | IdlePolicy::ByState => {
                Division::Pieces {
                    until_plan_ns: 0,
                    share_ns: 0,
                }
            }
            IdlePolicy::RoundRobin => {
                let processes = self.runs.len() as u64;
                let owner = self.idle_slots.checked_rem(processes).unwrap_or(0);
                self.idle_slots = self.idle_slots.wrapping_add(1);
                Division::Whole(owner as u32)
            }
        };
    }

    /// A piece of the present idle slot begins, for who is granted the CPU.
    #[inline(never)]
    pub(super) fn begin_piece(&mut self, now_ns: u64) {
        let Division::Pieces { share_ns, .. } = self.slot.division else {
            return;
        };
        let plan_ns = self.windows.plan_ns(now_ns);
        let end_ns = self.slot.end_plan_ns;
        let rest_ns = end_ns.saturating_sub(plan_ns);
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
        self.slot.division = Division::Pieces {
            until_plan_ns: plan_ns.saturating_add(piece_ns.max(1)).min(end_ns),
            share_ns,
        };
    }

    /// What each candidate has of `rest_ns`, who has just left the queue among them.
    /// Rounded up, so that nothing is left.
    fn equal_share_ns(&self, rest_ns: u64) -> u64 {
        let others = self.queue.len() as u64;
        let share_ns = rest_ns
            .saturating_add(others)
            .checked_div(others.saturating_add(1));
        share_ns.unwrap_or(rest_ns).max(1)
    }

    /// A piece of `piece_ns`, or all that is left where no other would have room after
    /// it.
    fn fit_ns(&self, piece_ns: u64, rest_ns: u64) -> u64 {
        if piece_ns == 0 || rest_ns.saturating_sub(piece_ns) < piece_ns {
            rest_ns
        } else {
            piece_ns
        }
    }

    /// Idea 3 of 3.2.3, less generous pieces where the node is late: three quarters of a
    /// piece are withheld to the same part as the node's lateness is of t2_node without
    /// stress.
    fn piece_by_state_ns(&self) -> u64 {
        let piece_ns = self.policy.config.idle_piece_ns;
        let late_insns = self.sums.lateness_insns().max(0).unsigned_abs();
        if late_insns == 0 {
            return piece_ns;
        }
        let limit_insns = self.calm_t2_node_insns();
        let most_ns = piece_ns - piece_ns / 4;
        piece_ns.saturating_sub(fraction(most_ns, late_insns, limit_insns))
    }
}
