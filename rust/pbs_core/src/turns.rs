// SPDX-License-Identifier: GPL-2.0

//! Time that is taken out of turn.
//!
//! A thread that may not run any more can be in the kernel, where it may hold a resource that all
//! need: it continues to the edge of user space, before the process that is granted the CPU.  Three
//! rules keep a process from taking the slots of another this way:
//!
//! * the clock of the slot stands still meanwhile ([`Node::out_of_turn`]),
//! * the process that has taken the time owes it, and its own next slots are shorter
//!   ([`Node::owe`]),
//! * the time is limited to `kernel_budget_permille` of each window; after that the
//!   process that is granted the CPU goes first ([`Node::budget_left_ns`]).

use super::input::{Input, InputKind};
use super::memory::Memory;
use super::node::Node;

impl<M: Memory> Node<M> {
    /// Time that threads out of turn may still take of the window that contains
    /// `now_ns`.
    #[inline]
    pub fn budget_left_ns(&self, now_ns: u64) -> u64 {
        if self.budget.is_over(now_ns) {
            let period_ns = self.windows.period_at_ns(now_ns);
            self.policy.config.kernel_budget_ns(period_ns)
        } else {
            self.budget.left_ns()
        }
    }

    /// Reports that a thread out of turn, and not the granted process, had the CPU in the `took_ns`
    /// before `now_ns`.
    pub fn out_of_turn(&mut self, took_ns: u64, now_ns: u64) {
        if self.budget.is_over(now_ns) {
            self.windows.advance(now_ns);
            let period_ns = self.windows.period_at_ns(now_ns);
            let whole_ns = self.policy.config.kernel_budget_ns(period_ns);
            self.budget.begin(whole_ns, self.windows.end_ns());
        }
        self.budget.take(took_ns);
        if self.grant.process().is_some_and(|p| self.slot.is_of(p)) {
            self.slot.extend(took_ns);
            self.standing.revoke();
        }
        self.note(move |node| Input {
            time_ns: now_ns,
            value: took_ns,
            more: node.budget.left_ns(),
            ..Input::of(InputKind::OutOfTurn)
        });
    }

    /// Notes that `p` has taken `ns` from others, and gives them back in its next slots.
    pub fn owe(&mut self, p: u32, ns: u64) {
        let Some(run) = self.processes.get_mut(p).filter(|run| !run.done) else {
            return;
        };
        run.owed_ns = run.owed_ns.saturating_add(ns);
        let owed_ns = run.owed_ns;
        if run.copied {
            self.processes.note_change(p);
        }
        self.note(move |_| Input {
            process: p,
            value: ns,
            more: owed_ns,
            ..Input::of(InputKind::Owe)
        });
    }

    /// Takes the debt of `p` from its slot that begins, of at most `most_insns`, as far as it goes.
    /// Returns the part that was paid, as instructions and as time.
    pub(super) fn pay(&mut self, p: u32, most_insns: u64) -> (u64, u64) {
        let rate = self.rates.of(p);
        let Some(run) = self.processes.get_mut(p).filter(|run| run.owed_ns != 0) else {
            return (0, 0);
        };
        let owed_insns = rate.to_insns(run.owed_ns);
        let (paid_insns, paid_ns) = if owed_insns <= most_insns {
            (owed_insns, run.owed_ns)
        } else {
            (most_insns, rate.to_ns(most_insns).min(run.owed_ns))
        };
        run.owed_ns -= paid_ns;
        if run.copied {
            self.processes.note_change(p);
        }
        (paid_insns, paid_ns)
    }
}
