// SPDX-License-Identifier: GPL-2.0

//! Time that is taken out of turn.
//!
//! A thread that may not run any more can be in the kernel, where it may hold
//! what all need: it goes on to the edge of user space, before the process that
//! is granted the CPU.  So that no process takes the slots of another by that,
//!
//! * the clock of the slot stands still meanwhile ([`Node::out_of_turn`]),
//! * what is taken is owed by the process that has taken it, and shortens its
//!   own next slots ([`Node::owe`]),
//! * and it is limited: of each window no more is taken than
//!   `kernel_budget_permille`; after that who is granted the CPU goes first
//!   ([`Node::budget_left_ns`]).

use super::budget::Budget;
use super::input::{Input, InputKind};
use super::memory::Memory;
use super::node::Node;
use super::plan::Slot;

impl<M: Memory> Node<M> {
    /// What threads out of turn may still take of the window that contains
    /// `now_ns`.
    #[inline]
    pub fn budget_left_ns(&self, now_ns: u64) -> u64 {
        if now_ns < self.budget.until_ns {
            self.budget.left_ns
        } else {
            self.policy.config.kernel_budget_ns()
        }
    }

    /// In the `took_ns` before `now_ns` a thread out of turn had the CPU, and who
    /// is granted it had not.
    pub fn out_of_turn(&mut self, took_ns: u64, now_ns: u64) {
        if now_ns >= self.budget.until_ns {
            self.windows.advance(now_ns);
            self.budget = Budget {
                left_ns: self.policy.config.kernel_budget_ns(),
                until_ns: self.windows.end_ns(),
            };
        }
        self.budget.left_ns = self.budget.left_ns.saturating_sub(took_ns);
        let owner = self.slot.owner;
        if self.slot.begun && owner != Slot::IDLE && self.grant == Some(owner) {
            self.slot.end_plan_ns = self.slot.end_plan_ns.saturating_add(took_ns);
            self.stands = false;
        }
        self.note(move |node| Input {
            time_ns: now_ns,
            value: took_ns,
            more: node.budget.left_ns,
            ..Input::of(InputKind::OutOfTurn)
        });
    }

    /// `p` has taken `ns` that were others', and gives them back: see
    /// [`Node::pay`].
    pub fn owe(&mut self, p: u32, ns: u64) {
        let Some(run) = self.runs.get_mut(p as usize).filter(|run| !run.done) else {
            return;
        };
        run.owed_ns = run.owed_ns.saturating_add(ns);
        let owed_ns = run.owed_ns;
        if run.copied {
            self.note_change(p);
        }
        self.note(move |_| Input {
            process: p,
            value: ns,
            more: owed_ns,
            ..Input::of(InputKind::Owe)
        });
    }

    /// A slot of `p` begins, of at most `most_insns`: what `p` owes is taken from
    /// it, as far as it goes.  Returns that as instructions and as time.
    pub(super) fn pay(&mut self, p: u32, most_insns: u64) -> (u64, u64) {
        let rate = self.rate_of(p);
        let Some(run) = self.runs.get_mut(p as usize).filter(|run| run.owed_ns != 0) else {
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
            self.note_change(p);
        }
        (paid_insns, paid_ns)
    }
}
