// SPDX-License-Identifier: GPL-2.0

//! Decisions where slots float.

use super::super::event::{Event, EventKind, Sink};
use super::super::memory::Memory;
use super::super::next_check::NextCheck;
use super::super::node::Node;
use super::super::plan::Predecessor;
use super::super::run::{Presence, Run};
use super::super::standing::Clock;
use super::place::{Came, NO_SLOT, STEPS_A_DECISION};

impl<M: Memory> Node<M> {
    /// Decides where the last decision does not stand, or other processes can run now.
    #[inline(never)]
    pub(in super::super) fn settle_floating(&mut self, now_ns: u64, sink: &mut impl Sink) {
        let ran = self.grant.process();
        // Neither clock nor count brings a change, and no threshold is reached.
        let is_same = self.standing.holds(now_ns)
            && now_ns < self.standing.clock().change_ns
            && !self.processes.idle().is_waiting()
            && self.processes.live() != 0;
        let (mut pending, mut seen) = (false, Some(self.standing.next_check()));
        if !is_same {
            self.standing.revoke();
            self.windows.advance(now_ns);
            pending = self.wait_lists.is_pending();
            if pending {
                self.release(now_ns, sink);
            }
        }
        let plan_ns = self.windows.plan_ns(now_ns);
        if !is_same {
            self.processes.count_idle(plan_ns, self.rates.cpu());
            // The instructions of the granted process count, whether or not it may go on.
            seen = ran.map(|p| self.check_lateness(p, now_ns, sink));
            if let Some(p) = ran {
                self.cut_floating(p, now_ns, plan_ns, sink);
            }
        }
        let chosen = self.choose_floating(now_ns, plan_ns, sink);
        let reported = chosen && self.report_missing(now_ns, plan_ns, sink);
        self.end_decision(now_ns, plan_ns, ran, seen, sink);
        let is_pending = pending && self.wait_lists.is_pending();
        let passed = self.advance_front();
        if !reported || !passed || is_pending {
            self.standing.leave_unfinished();
        }
    }

    /// Completes a decision: sends the reports, and sets the next check of thresholds and the
    /// clock.
    fn end_decision(
        &mut self,
        now_ns: u64,
        plan_ns: u64,
        ran: Option<u32>,
        seen: Option<NextCheck>,
        sink: &mut impl Sink,
    ) {
        let granted = self.grant.process();
        if let Some(p) = granted {
            self.processes.begin_task(p);
        }
        self.note_grant(self.slot_on_wire(), now_ns, sink);
        let next_check = match (granted, seen) {
            (Some(p), Some(seen)) if ran == Some(p) => seen,
            (Some(p), _) => self.check_lateness(p, now_ns, sink),
            (None, _) => NextCheck::NEVER,
        };
        self.standing.set_next_check(next_check);
        if self.is_over(plan_ns) && !self.status.has_ended() {
            self.status.end();
            let mut event = Event::new(EventKind::PlanEnded, now_ns);
            event.value = u64::from(self.processes.unfinished());
            self.report(event, sink);
        }
        if self.policy.config.idle_is_lateness != 0 && granted.is_none() {
            let waits = !self.status.has_ended() && self.processes.unfinished() != 0;
            self.processes.wait_since(waits.then_some(plan_ns));
        }
        let goes_on = granted.is_some() || self.waits_for_missing();
        let left_insns = self.count_left_insns();
        let clock = self.floating_clock(now_ns, plan_ns);
        self.standing.stand(now_ns, clock, left_insns, goes_on);
    }

    /// Whether the plan is over: no process that has tasks left is there, and the plan has waited
    /// long enough for those that are absent.
    fn is_over(&self, plan_ns: u64) -> bool {
        self.processes.live() == 0
            && self.grant.process().is_none()
            && self.floating.first_missing().is_none()
            && plan_ns >= self.floating.waits_until_ns
    }

    /// Whether the clock continues for absent processes while nobody runs.
    fn waits_for_missing(&self) -> bool {
        let waits = self.processes.live() == 0 || self.floating.first_missing().is_some();
        waits && !self.status.has_ended()
    }

    /// The next change that the clock brings after `now_ns`.
    fn floating_clock(&self, now_ns: u64, plan_ns: u64) -> Clock {
        let mut change_ns = self.windows.change_ns(now_ns);
        if let Some(p) = self.grant.process() {
            if self.slot.has_begun() {
                let end_ns = self.windows.until_ns(now_ns, self.slot.end_plan_ns());
                change_ns = change_ns.min(end_ns);
            }
            change_ns = change_ns.min(self.hopeless_ns(p));
        } else if self.floating.waits_until_ns > plan_ns {
            let end_ns = self.windows.until_ns(now_ns, self.floating.waits_until_ns);
            change_ns = change_ns.min(end_ns);
        }
        Clock {
            change_ns,
            unallocated: self.windows.unallocated(now_ns),
        }
    }

    /// Reports the processes that can't run, and come before the one that is granted.  If none is
    /// granted, the next one is reported when the plan has waited for the one before.  A plan that
    /// has ended waits for none.  Returns whether that was not too much for one decision.
    fn report_missing(&mut self, now_ns: u64, plan_ns: u64, sink: &mut impl Sink) -> bool {
        if self.status.has_ended() {
            return true;
        }
        let mut budget = STEPS_A_DECISION;
        while let Some(p) = self.floating.first_missing() {
            let comes = match self.grant.process() {
                Some(granted) => self.floating.before(p, granted),
                None => plan_ns >= self.floating.waits_until_ns,
            };
            if !comes {
                break;
            }
            let Some(rest) = budget.checked_sub(1) else {
                return false;
            };
            budget = rest;
            let Some(run) = self.processes.get(p).copied() else {
                break;
            };
            if run.held
                && (run.postponed || (run.reported_wait == 0 && run.waits_at == Predecessor::NONE))
            {
                // A later decision finds the edge that it waits for.
                break;
            }
            if run.presence == Presence::Absent {
                let until_ns = plan_ns.saturating_add(self.absence_ns(p, &run));
                self.floating.wait_for(p, until_ns);
            }
            let came = if run.held {
                self.report_wait(p, now_ns, sink);
                Came::Held
            } else {
                let event = self.process_event(EventKind::Absent, p, now_ns);
                self.report(event, sink);
                Came::Absent
            };
            if let Some(place) = self.floating.place_mut(p) {
                place.came = came;
            }
            self.requeue(p);
        }
        true
    }

    /// Plan time for which the plan waits for an absent process: the ceilings of the slots
    /// that the process has left.
    fn absence_ns(&self, p: u32, run: &Run) -> u64 {
        let config = &self.policy.config;
        let count = self.plan.process(p).map_or(0, |process| process.count);
        let others = count.saturating_sub(run.position).saturating_sub(1);
        config
            .ceiling_ns(run.rest_insns, self.rates.of(p))
            .saturating_add(config.ceiling_extra_ns.saturating_mul(others.into()))
    }

    /// Advances to the first slot that is not over.  Returns whether that was not too much
    /// for one decision.
    fn advance_front(&mut self) -> bool {
        if !self.floating.moved {
            return true;
        }
        for _ in 0..STEPS_A_DECISION {
            let slot = self.plan.slot(self.floating.front);
            let Some(slot) = slot else {
                break;
            };
            let (run, place) = (
                self.processes.get(slot.process),
                self.floating.place(slot.process),
            );
            let is_over = match (run, place) {
                (Some(run), Some(place)) => {
                    let is_behind = place.number == NO_SLOT || place.number > self.floating.front;
                    run.done || run.position > slot.position || is_behind
                }
                // Idle slots are nothing to wait for.
                _ => true,
            };
            if !is_over {
                self.floating.moved = false;
                return true;
            }
            self.floating.front = self.floating.front.saturating_add(1);
        }
        let at_end = self.plan.slot(self.floating.front).is_none();
        self.floating.moved = !at_end;
        at_end
    }
}
