// SPDX-License-Identifier: GPL-2.0

//! Choice of the process that has the CPU, where slots float.

use super::super::event::{Grant, Sink};
use super::super::memory::Memory;
use super::super::node::Node;
use super::place::{Level, NO_SLOT, STEPS_A_DECISION};

impl<M: Memory> Node<M> {
    /// Grants the CPU to the first of the processes that can run.  Returns whether that was
    /// not too much for one decision.
    pub(super) fn choose_floating(
        &mut self,
        now_ns: u64,
        plan_ns: u64,
        sink: &mut impl Sink,
    ) -> bool {
        let turn = self.windows.number();
        self.end_turn(turn);
        let mut budget = STEPS_A_DECISION;
        while let Some(p) = self.first_floating() {
            let Some(rest) = budget.checked_sub(1) else {
                return false;
            };
            budget = rest;
            if self.is_hopeless(p, turn, now_ns) {
                if let Some(place) = self.floating.place_mut(p) {
                    place.level = Level::Hopeless;
                }
                self.requeue(p);
                continue;
            }
            self.hand_over(p, turn, plan_ns, sink);
            if !self.cut_floating(p, now_ns, plan_ns, sink) {
                return true;
            }
        }
        if let Some(old) = self.grant.process() {
            self.suspend_floating(old, plan_ns, sink);
            self.grant.fill(None, Grant::None, turn);
            self.requeue(old);
        }
        true
    }

    /// The first of the processes that can run.
    fn first_floating(&self) -> Option<u32> {
        let granted = self.grant.process();
        let granted = granted.filter(|&p| {
            let run = self.processes.get(p);
            run.is_some_and(|run| run.can_run() && !run.done)
        });
        match (granted, self.floating.first_ready()) {
            (Some(granted), Some(first)) if self.floating.before(first, granted) => Some(first),
            (granted, first) => granted.or(first),
        }
    }

    /// In the background turns last to the end of the window.
    fn end_turn(&mut self, turn: u64) {
        if let Some(p) = self.grant.process().filter(|_| self.grant.turn() != turn) {
            self.age_in_background(p);
        }
    }

    /// Whether `p` has a deadline that it can't keep any more, even if it retired at once what is
    /// planned.
    ///
    /// A process that is to have the CPU is checked with all that it has left, and again at the
    /// begin of each window.  Until then it retires what is left of its task, or
    /// [`hopeless_ns`](Node::hopeless_ns) comes.  Therefore it does not matter how often the node
    /// is asked meanwhile.
    fn is_hopeless(&self, p: u32, turn: u64, now_ns: u64) -> bool {
        let (Some(run), Some(place)) = (self.processes.get(p), self.floating.place(p)) else {
            return false;
        };
        if place.level != Level::Timely {
            return false;
        }
        let goes_on = self.grant.is(p) && self.grant.turn() == turn && !place.fresh;
        let left_insns = match goes_on {
            true => 0,
            false => run.planned_insns.saturating_sub(run.retired_insns),
        };
        let left_ns = self.rates.of(p).to_ns(left_insns);
        now_ns.saturating_add(left_ns) >= self.hopeless_ns(p)
    }

    /// The moment from which on `p` can't keep its deadline any more, even if its task ended
    /// at once; `u64::MAX`: it has none, or can't keep it already.
    pub(super) fn hopeless_ns(&self, p: u32) -> u64 {
        let place = self.floating.place(p);
        let is_timely = place.is_some_and(|place| place.level == Level::Timely);
        let (Some(run), Some(process), true) =
            (self.processes.get(p), self.plan.process(p), is_timely)
        else {
            return u64::MAX;
        };
        let after_insns = run.rest_insns.saturating_sub(run.planned_insns);
        let after_ns = self.rates.of(p).to_ns(after_insns);
        let latest_ns = process.deadline_ns.saturating_sub(after_ns);
        let latest_ns = self.status.installed_ns().saturating_add(latest_ns);
        latest_ns.saturating_add(1)
    }

    /// Grants the CPU to `p`, unless it has the CPU already, and begins its slot or goes on
    /// with it.
    fn hand_over(&mut self, p: u32, turn: u64, plan_ns: u64, sink: &mut impl Sink) {
        let old = self.grant.process();
        if old != Some(p) {
            if let Some(old) = old {
                self.suspend_floating(old, plan_ns, sink);
            }
            let runs = self.processes.runs_mut();
            self.floating.take(runs, p);
        }
        let place = self.floating.place(p);
        let has_slot = place.is_some_and(|place| place.number != NO_SLOT);
        let goes_on = place.is_some_and(|place| place.begun) && self.slot.is_of(p);
        let reason = match has_slot {
            true => Grant::Slot,
            false => Grant::AfterPlan,
        };
        self.grant.fill(Some(p), reason, turn);
        if let Some(place) = self.floating.place_mut(p) {
            place.fresh = false;
        }
        if let Some(old) = old.filter(|&old| old != p) {
            self.requeue(old);
        }
        if has_slot && !goes_on {
            self.begin_floating(p, plan_ns, sink);
        }
    }
}
