// SPDX-License-Identifier: GPL-2.0

//! Time of a slot in which its owner retires nothing, though it has the CPU.
//!
//! A process in system calls does not come to its t1, which is a number of instructions: its time
//! in the kernel counts towards t1, at the rate of the process, but for a little that each slot
//! has for nothing.  Interrupts are none of its doing: their time is given back to the slot.

use super::event::Grant;
use super::input::{Input, InputKind};
use super::memory::Memory;
use super::node::Node;

impl<M: Memory> Node<M> {
    /// Reports that `p` had the CPU when it was looked at, at `now_ns`.  It was found in the kernel
    /// `ns` after the look before, or in user space, where `ns` is 0.
    ///
    /// The caller looks now and then.  A process that is in the kernel for a share of the time is
    /// found there in this share of the looks, on average.  One that leaves the CPU before each
    /// look is not found, and has until the ceiling.  One that has meanwhile retired what its rate
    /// promises gets the time back that counted.
    pub fn in_kernel(&mut self, p: u32, ns: u64, now_ns: u64) {
        if !self.has_own_slot(p) || (ns == 0 && !self.slot.has_kernel_insns()) {
            return;
        }
        self.windows.advance(now_ns);
        let plan_ns = self.windows.plan_ns(now_ns);
        let free_ns = self.policy.config.free_in_kernel_ns();
        let rate = self.rates.of(p);
        self.slot.spend_in_kernel(ns, plan_ns, rate, free_ns);
        self.standing.revoke();
        self.note(move |node| Input {
            time_ns: now_ns,
            process: p,
            value: ns,
            more: node.slot.left_insns(),
            ..Input::of(InputKind::InKernel)
        });
    }

    /// Reports that interrupts, and not the granted process, had the CPU for `ns` before `now_ns`.
    ///
    /// A process can cause interrupts itself, so that a slot gets back no more than the time in the
    /// kernel that it has for nothing.
    pub fn interrupted(&mut self, ns: u64, now_ns: u64) {
        if !self.grant.process().is_some_and(|p| self.has_own_slot(p)) {
            return;
        }
        let most_ns = self.policy.config.free_in_kernel_ns();
        self.slot.give_back(ns, most_ns);
        self.standing.revoke();
        self.note(move |node| Input {
            time_ns: now_ns,
            value: ns,
            more: node.slot.end_plan_ns(),
            ..Input::of(InputKind::Interrupted)
        });
    }

    /// Whether `p` has the CPU as the owner of the present slot, whose clock does not stand still.
    fn has_own_slot(&self, p: u32) -> bool {
        let is_owner = self.grant.is(p) && self.grant.reason() == Grant::Slot;
        is_owner && self.slot.is_of(p) && !self.standing.is_unallocated()
    }
}
