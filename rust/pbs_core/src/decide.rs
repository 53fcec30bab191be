// SPDX-License-Identifier: GPL-2.0

//! Decisions: which process may run, and until when.

use super::division::Division;
use super::event::{Cause, Event, EventKind, Grant, Sink};
use super::memory::Memory;
use super::next_check::NextCheck;
use super::node::Node;
use super::run::Presence;
use super::standing::Clock;
use super::wait_lists::FirstCheck;
use super::wire::format;

/// Greatest number of slots that one decision passes.  A dead process may have
/// millions of slots, and decisions are made under a lock.
const MAX_SLOTS_A_DECISION: u32 = 128;

/// A decision of the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The process that may run.
    pub grant: Option<u32>,
    /// Reason for the grant.
    pub reason: Grant,
    /// Whether it is unallocated time: the grant stands, but lower classes go first.
    pub unallocated: bool,
    /// Instructions that the process may still retire before the node must be
    /// asked again: at t1, when its task turns late, or when a lateness may
    /// reach a threshold.
    pub until_insns: Option<u64>,
    /// Monotonic time at which the clock alone requires a new decision: a ceiling,
    /// the end of an idle slot, a change of windows, or less stress.
    pub until_ns: Option<u64>,
    /// Whether the work was more than one decision may do: decide again soon.
    pub again: bool,
}

impl<M: Memory> Node<M> {
    /// Decides which process may run, given all inputs up to `now_ns`.
    ///
    /// Nothing changes if it is called again without a new input.
    pub fn decide(&mut self, now_ns: u64, sink: &mut impl Sink) -> Decision {
        self.settle(now_ns, sink);
        Decision {
            grant: self.grant.process(),
            reason: self.grant.reason(),
            unallocated: self.standing.is_unallocated(),
            until_insns: self.standing.left_insns(),
            until_ns: self.standing.until_ns(),
            again: self.standing.is_unfinished(),
        }
    }

    /// Like [`decide`](Node::decide), but returns nothing: for callers that read the
    /// result later through [`left_insns`](Node::left_insns) and
    /// [`until_ns`](Node::until_ns).
    #[inline]
    pub fn settle(&mut self, now_ns: u64, sink: &mut impl Sink) {
        self.report_lasting_grant(now_ns, sink);
        if self.standing.holds(now_ns) {
            if !self.standing.is_stale() {
                return;
            }
            let slot_stays = now_ns < self.standing.clock().change_ns && !self.floats();
            if slot_stays && !self.processes.idle().is_waiting() && self.processes.live() != 0 {
                self.choose_anew(now_ns, sink);
                return self.note_decision(now_ns);
            }
        }
        if self.floats() {
            self.settle_floating(now_ns, sink);
        } else {
            self.settle_anew(now_ns, sink);
        }
        self.note_decision(now_ns);
    }

    /// Decides where the clock or the count may have brought a change.
    #[inline(never)]
    fn settle_anew(&mut self, now_ns: u64, sink: &mut impl Sink) {
        self.standing.revoke();
        self.windows.advance(now_ns);
        let pending = self.wait_lists.is_pending();
        let mut first_check = FirstCheck::Past;
        if pending {
            first_check = self.release(now_ns, sink);
        }
        let plan_ns = self.windows.plan_ns(now_ns);
        self.processes.count_idle(plan_ns, self.rates.cpu());
        // The instructions of the granted process count, whether or not it may continue.
        let ran = self.grant.process();
        let seen = ran.map(|p| self.check_lateness(p, now_ns, sink));
        let mut budget = MAX_SLOTS_A_DECISION;
        while !self.in_slot(now_ns, plan_ns, sink) {
            let Some(rest) = budget.checked_sub(1) else {
                return self.postpone(now_ns, sink);
            };
            budget = rest;
            self.pass_slot(sink);
        }
        self.choose(first_check, now_ns, sink);
        let next_check = match (self.grant.process(), seen) {
            (Some(p), Some(seen)) if ran == Some(p) => seen,
            (Some(p), _) => self.check_lateness(p, now_ns, sink),
            (None, _) => NextCheck::NEVER,
        };
        self.standing.set_next_check(next_check);
        let is_over = !self.slot.has_begun() && self.processes.live() == 0;
        if is_over && !self.status.has_ended() {
            self.status.end();
            let mut event = Event::new(EventKind::PlanEnded, now_ns);
            event.value = u64::from(self.processes.unfinished());
            self.report(event, sink);
        }
        self.stand(now_ns, self.next_clock(now_ns));
        if pending && self.wait_lists.is_pending() {
            self.standing.leave_unfinished();
        }
    }

    /// Decides where neither clock nor count brings a change, and only the processes that
    /// can run have changed: the slot stays, and no threshold is reached.
    fn choose_anew(&mut self, now_ns: u64, sink: &mut impl Sink) {
        let ran = self.grant.process();
        self.choose(FirstCheck::Past, now_ns, sink);
        let granted = self.grant.process();
        if granted != ran {
            let next_check = match granted {
                Some(p) => self.check_lateness(p, now_ns, sink),
                None => NextCheck::NEVER,
            };
            self.standing.set_next_check(next_check);
        }
        let clock = match self.slot.division() {
            // Another piece may have begun.
            Division::Pieces { .. } => self.next_clock(now_ns),
            _ => self.standing.clock(),
        };
        self.stand(now_ns, clock);
    }

    /// Chooses the process that may run in the present slot, or after the last.
    #[inline]
    fn choose(&mut self, first_check: FirstCheck, now_ns: u64, sink: &mut impl Sink) {
        let filler = if self.slot.has_begun() {
            self.choose_owner(first_check, now_ns, sink)
        } else {
            Some(Grant::AfterPlan)
        };
        if let Some(reason) = filler {
            self.choose_filler(reason, first_check, now_ns);
        }
        let granted = self.grant.process();
        let starts = self.starts_by_timetable(granted);
        if let Some(p) = granted {
            self.processes.begin_task(p);
        }
        self.note_grant(self.slot_on_wire(), now_ns, sink);
        if let Some(p) = starts {
            self.check_timeliness(Cause::Start, p, 0, now_ns, sink);
        }
        if self.policy.config.idle_is_lateness != 0 && granted.is_none() {
            let waits = self.slot.is_owned();
            // Until the planned arrival of a message the plan waits for the clock.
            let gap_ns = self.planned_gap_ns(self.slot.owner(), now_ns);
            let arrival_ns = now_ns.saturating_add(gap_ns);
            let since_ns = waits.then(|| self.windows.later_plan_ns(arrival_ns));
            self.processes.wait_since(since_ns);
        }
    }

    /// Grants the CPU to the process of the present slot, if that can run.  Otherwise returns the
    /// reason why another process may run.
    fn choose_owner(
        &mut self,
        first_check: FirstCheck,
        now_ns: u64,
        sink: &mut impl Sink,
    ) -> Option<Grant> {
        let owner = self.slot.owner();
        let Some(run) = self.processes.get(owner) else {
            return Some(Grant::IdleSlot);
        };
        if run.can_run() {
            if self.slot.is_away() {
                self.slot.come_back(self.windows.plan_ns(now_ns));
            }
            if first_check != FirstCheck::Past {
                self.give_turn_back(owner);
            }
            self.set_grant(Some(owner), Grant::Slot);
            return None;
        }
        if !self.slot.is_away() {
            self.slot.go_away(self.windows.plan_ns(now_ns));
        }
        if run.held {
            self.report_wait(owner, now_ns, sink);
            return Some(Grant::BlockedSlot);
        }
        if run.presence == Presence::Absent && self.slot.report_absence() {
            let event = self.process_event(EventKind::Absent, owner, now_ns);
            self.report(event, sink);
        }
        Some(Grant::BlockedSlot)
    }

    /// Grants the CPU to the most urgent candidate, or to the process that the slot is for, unless
    /// the process that already fills this slot may continue.
    ///
    /// In a new plan, the first decisions know some of the candidates only.  When all are known,
    /// the process that fills the slot competes once with the others, by the turn that it has.
    fn choose_filler(&mut self, reason: Grant, first_check: FirstCheck, now_ns: u64) {
        // A turn lasts to the end of the window.
        let turn = self.windows.number();
        if let Some(old) = self.grant.process() {
            let run = self.processes.get(old);
            if run.is_some_and(|run| run.is_candidate(self.slot.number())) {
                let in_turn = self.grant.turn() == turn;
                let plan_ns = || self.windows.plan_ns(now_ns);
                let goes_on = self.slot.division().goes_on(in_turn, plan_ns);
                if self.grant.reason() == reason && goes_on && self.may_fill(old) {
                    if first_check != FirstCheck::Ends {
                        return;
                    }
                    self.slot.forget_pieces();
                    if !self.is_preceded(old) {
                        return self.begin_piece(now_ns);
                    }
                    self.enqueue_again(old);
                } else {
                    // The process that had the CPU competes with the others.
                    self.enqueue(old);
                }
            }
        }
        let first = self.queue.first().filter(|&p| self.may_fill(p));
        let runs = self.processes.runs_mut();
        let filler = match *self.slot.division() {
            Division::Nobody => None,
            Division::Admitted => first.and_then(|p| self.queue.take(runs, p)),
            Division::Whole(p) => self.queue.take(runs, p),
            Division::Turns | Division::Pieces { .. } => self.queue.take_first(runs),
        };
        self.grant.fill(filler, reason, turn);
        if filler.is_some() && *self.slot.division() != Division::Turns {
            self.begin_piece(now_ns);
        }
    }

    /// Puts the process that fills the slot of `owner`, which was not known yet, back into the
    /// queue with its turn.
    fn give_turn_back(&mut self, owner: u32) {
        // The turn of one that had the CPU in its own slot is of long ago.
        let fills = !matches!(self.grant.reason(), Grant::None | Grant::Slot);
        let Some(old) = self.grant.process().filter(|&old| fills && old != owner) else {
            return;
        };
        let run = self.processes.get(old);
        if run.is_some_and(|run| run.is_candidate(self.slot.number())) {
            self.enqueue_again(old);
        }
    }

    /// Whether another candidate would fill the present slot, if `p` were in the queue.
    fn is_preceded(&self, p: u32) -> bool {
        let first = self.queue.first().filter(|&first| self.may_fill(first));
        let precedes = |first| self.queue.before(self.processes.runs(), first, p);
        !matches!(self.slot.division(), Division::Whole(_)) && first.is_some_and(precedes)
    }

    /// Whether a candidate may fill the present slot.
    pub(super) fn may_fill(&self, p: u32) -> bool {
        let run = self.processes.get(p);
        *self.slot.division() != Division::Admitted
            || run.is_some_and(|run| self.queue.policy().may_fill(run))
    }

    fn set_grant(&mut self, grant: Option<u32>, reason: Grant) {
        let old = self.grant.set(grant, reason);
        if old != grant {
            if let Some(p) = grant {
                self.queue.remove(self.processes.runs_mut(), p);
            }
            if let Some(old) = old {
                self.requeue(old);
            }
        }
    }

    /// Stops before a usable slot is reached; no process runs meanwhile.
    fn postpone(&mut self, now_ns: u64, sink: &mut impl Sink) {
        self.set_grant(None, Grant::None);
        self.standing.set_next_check(NextCheck::NEVER);
        self.note_grant(format::NO_SLOT, now_ns, sink);
        self.stand(now_ns, self.next_clock(now_ns));
        self.standing.leave_unfinished();
    }

    /// The next change that the clock brings after `now_ns`.
    fn next_clock(&self, now_ns: u64) -> Clock {
        let change_ns = if self.slot.has_begun() {
            let is_filled = self.grant.process().is_some();
            self.windows
                .until_ns(now_ns, self.slot.next_plan_ns(is_filled))
                .min(self.next_message_check_ns(now_ns))
        } else {
            // After the plan the windows continue as long as a process runs.
            self.windows.change_ns(now_ns)
        };
        Clock {
            change_ns,
            unallocated: self.windows.unallocated(now_ns),
        }
    }

    /// Records a decision made at `now_ns`, which stands until the next change.
    #[inline]
    fn stand(&mut self, now_ns: u64, clock: Clock) {
        let goes_on = self.slot.has_begun() || self.grant.process().is_some();
        let left_insns = self.count_left_insns();
        self.standing.stand(now_ns, clock, left_insns, goes_on);
        let granted = self.grant.process().and_then(|p| self.processes.get(p));
        if granted.is_some_and(|run| run.suspended) {
            // It failed in the moment in which it was granted the CPU.
            self.standing.leave_unfinished();
        }
    }

    /// Instructions that the granted process may still retire before the count requires
    /// a new decision; `u64::MAX`: without a bound.
    #[inline]
    pub(super) fn count_left_insns(&self) -> u64 {
        let to_t1_insns = match self.grant.reason() {
            Grant::Slot => self.slot.left_insns(),
            _ => u64::MAX,
        };
        let run = self.grant.process().and_then(|p| self.processes.get(p));
        let to_check_insns = match (self.standing.next_check().at_insns, run) {
            (u64::MAX, _) | (_, None) => u64::MAX,
            (at_insns, Some(run)) => at_insns.saturating_sub(run.retired_insns),
        };
        to_t1_insns.min(to_check_insns)
    }
}
