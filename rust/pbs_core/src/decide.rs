// SPDX-License-Identifier: GPL-2.0

//! Who may run, and until when.

use super::division::Division;
use super::event::{Event, EventKind, Grant, Sink};
use super::memory::Memory;
use super::next_check::Watch;
use super::node::Node;
use super::plan::Slot;
use super::run::Presence;
use super::settled::Settled;
use super::wire::format;

/// How many slots one decision may leave behind.  A dead process may have
/// millions of slots, and decisions are made under a lock.
const MAX_SLOTS_A_DECISION: u32 = 128;

/// What the node decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The process that may run.
    pub grant: Option<u32>,
    /// Why.
    pub reason: Grant,
    /// It is unallocated time: the grant stands, but lower classes go first.
    pub unallocated: bool,
    /// Instructions that the process may still retire before the node must be
    /// asked again: at t1, when its task turns late, or when a lateness may
    /// reach a threshold.
    pub until_insns: Option<u64>,
    /// Monotonic time at which the clock alone brings something new: a ceiling,
    /// the end of an idle slot, a change of windows, or less stress.
    pub until_ns: Option<u64>,
    /// The work was more than one decision may do: decide again soon.
    pub again: bool,
}

impl<M: Memory> Node<M> {
    /// Decides who may run, given all that was told up to `now_ns`.
    ///
    /// Nothing changes if it is called again with nothing new.
    pub fn decide(&mut self, now_ns: u64, sink: &mut impl Sink) -> Decision {
        self.settle(now_ns, sink);
        Decision {
            grant: self.grant,
            reason: self.reason,
            unallocated: self.settled.unallocated,
            until_insns: self.settled.left_insns(),
            until_ns: self.settled.until_ns(),
            again: self.settled.again,
        }
    }

    /// The same for who asks for what was decided when it matters.
    #[inline]
    pub fn settle(&mut self, now_ns: u64, sink: &mut impl Sink) {
        self.tell_lasting(now_ns, sink);
        let settled = &self.settled;
        let holds = (settled.since_ns..settled.until_ns).contains(&now_ns);
        if self.stands && holds && settled.left_insns != 0 {
            if !self.stale {
                return;
            }
            if now_ns < settled.clock_ns && self.waits_since_ns.is_none() && self.live != 0 {
                self.choose_anew(now_ns, sink);
                return self.note_decision(now_ns);
            }
        }
        self.settle_anew(now_ns, sink);
        self.note_decision(now_ns);
    }

    /// Decides where the clock or the count may have brought something new.
    #[inline(never)]
    fn settle_anew(&mut self, now_ns: u64, sink: &mut impl Sink) {
        self.stands = false;
        self.windows.advance(now_ns);
        let pending = self.order.is_pending();
        if pending {
            self.release(now_ns, sink);
        }
        let plan_ns = self.windows.plan_ns(now_ns);
        self.count_idle(plan_ns);
        // What it has retired counts, whether or not it may go on.
        let ran = self.grant;
        let seen = ran.map(|p| self.watch(p, now_ns, sink));
        let mut budget = MAX_SLOTS_A_DECISION;
        while !self.in_slot(now_ns, plan_ns, sink) {
            let Some(rest) = budget.checked_sub(1) else {
                return self.postpone(now_ns, sink);
            };
            budget = rest;
            self.pass_slot(sink);
        }
        self.choose(now_ns, sink);
        self.watch = match (self.grant, seen) {
            (Some(p), Some(seen)) if ran == Some(p) => seen,
            (Some(p), _) => self.watch(p, now_ns, sink),
            (None, _) => Watch::NEVER,
        };
        if !self.slot.begun && self.live == 0 && !self.plan_ended {
            self.plan_ended = true;
            let mut event = Event::new(EventKind::PlanEnded, now_ns);
            event.value = u64::from(self.unfinished);
            self.tell(event, sink);
        }
        let (clock_ns, unallocated) = self.look_at_clock(now_ns);
        self.stand(now_ns, clock_ns, unallocated);
        if pending && self.order.is_pending() {
            self.stands = false;
            self.settled.again = true;
        }
    }

    /// The same where neither clock nor count brings anything new, and only who
    /// can run has changed: the slot stays, and no threshold is reached.
    fn choose_anew(&mut self, now_ns: u64, sink: &mut impl Sink) {
        let ran = self.grant;
        self.choose(now_ns, sink);
        if self.grant != ran {
            self.watch = match self.grant {
                Some(p) => self.watch(p, now_ns, sink),
                None => Watch::NEVER,
            };
        }
        let (clock_ns, unallocated) = match self.slot.division {
            // Another piece may have begun.
            Division::Pieces { .. } => self.look_at_clock(now_ns),
            _ => (self.settled.clock_ns, self.settled.clock_unallocated),
        };
        self.stand(now_ns, clock_ns, unallocated);
    }

    /// Chooses who may run in the present slot, or after the last.
    #[inline]
    fn choose(&mut self, now_ns: u64, sink: &mut impl Sink) {
        let filler = if self.slot.begun {
            self.choose_owner(now_ns, sink)
        } else {
            Some(Grant::AfterPlan)
        };
        if let Some(reason) = filler {
            self.choose_filler(reason, now_ns);
        }
        if let Some(p) = self.grant {
            self.begin_task(p);
        }
        self.note_grant(self.slot_on_wire(), now_ns, sink);
        if self.policy.config.idle_is_lateness != 0 && self.grant.is_none() {
            let waits = self.slot.begun && self.slot.owner != Slot::IDLE;
            self.waits_since_ns = waits.then(|| self.windows.plan_ns(now_ns));
        }
    }

    /// Grants to the process of the present slot, if it can run.  Returns why
    /// another one may, if it can't.
    fn choose_owner(&mut self, now_ns: u64, sink: &mut impl Sink) -> Option<Grant> {
        let owner = self.slot.owner;
        let Some(run) = self.runs.get(owner as usize) else {
            return Some(Grant::IdleSlot);
        };
        if run.can_run() {
            self.set_grant(Some(owner), Grant::Slot);
            return None;
        }
        if run.held {
            self.tell_wait(owner, now_ns, sink);
            return Some(Grant::BlockedSlot);
        }
        if run.presence == Presence::Absent && !self.slot.absent_told {
            self.slot.absent_told = true;
            let event = self.process_event(EventKind::Absent, owner, now_ns);
            self.tell(event, sink);
        }
        Some(Grant::BlockedSlot)
    }

    /// Grants to the most urgent candidate, or to the one for which the slot is, unless
    /// the one that fills this slot already may go on.
    fn choose_filler(&mut self, reason: Grant, now_ns: u64) {
        // A turn lasts to the end of the window.
        let turn = self.windows.number();
        if let Some(old) = self.grant {
            let run = self.runs.get(old as usize);
            if run.is_some_and(|run| run.is_candidate(self.cursor)) {
                let in_turn = self.turn == turn;
                let plan_ns = || self.windows.plan_ns(now_ns);
                if self.reason == reason && self.slot.division.goes_on(in_turn, plan_ns) {
                    return;
                }
                // The one that had the CPU competes with the others.
                self.queue.insert(&mut self.runs, old, turn);
            }
        }
        self.turn = turn;
        self.grant = match self.slot.division {
            Division::Whole(p) => self.queue.take(&mut self.runs, p),
            Division::Turns | Division::Pieces { .. } => self.queue.take_first(&mut self.runs),
        };
        self.reason = match self.grant {
            Some(_) => reason,
            None => Grant::None,
        };
        if self.grant.is_some() && self.slot.division != Division::Turns {
            self.begin_piece(now_ns);
        }
    }

    fn set_grant(&mut self, grant: Option<u32>, reason: Grant) {
        let old = core::mem::replace(&mut self.grant, grant);
        self.reason = reason;
        if old != grant {
            if let Some(p) = grant {
                self.queue.remove(&mut self.runs, p);
            }
            if let Some(old) = old {
                self.requeue(old);
            }
        }
    }

    /// Stops on the way to a slot that is of use; nobody runs meanwhile.
    fn postpone(&mut self, now_ns: u64, sink: &mut impl Sink) {
        self.set_grant(None, Grant::None);
        self.watch = Watch::NEVER;
        self.note_grant(format::NO_SLOT, now_ns, sink);
        let (clock_ns, unallocated) = self.look_at_clock(now_ns);
        self.stand(now_ns, clock_ns, unallocated);
        self.stands = false;
        self.settled.again = true;
    }

    /// When the clock brings something new after `now_ns`, and whether it is
    /// unallocated time until then.
    fn look_at_clock(&self, now_ns: u64) -> (u64, bool) {
        let clock_ns = if self.slot.begun {
            self.windows.until_ns(now_ns, self.end_plan_ns())
        } else {
            // After the plan the windows go on as long as somebody runs.
            self.windows.change_ns(now_ns)
        };
        (clock_ns, self.windows.unallocated(now_ns))
    }

    /// When the present slot, or who has a piece of it, ends by the clock, in plan time.
    #[inline]
    fn end_plan_ns(&self) -> u64 {
        let end_plan_ns = self.slot.end_plan_ns;
        match self.slot.division {
            Division::Pieces { until_plan_ns, .. } if self.grant.is_some() => {
                end_plan_ns.min(until_plan_ns)
            }
            _ => end_plan_ns,
        }
    }

    /// A decision was made at `now_ns`, and stands until something new comes.
    #[inline]
    fn stand(&mut self, now_ns: u64, clock_ns: u64, clock_unallocated: bool) {
        let goes_on = self.slot.begun || self.grant.is_some();
        self.settled = Settled {
            since_ns: now_ns,
            clock_ns,
            clock_unallocated,
            until_ns: if goes_on {
                clock_ns.min(self.watch.at_ns)
            } else {
                u64::MAX
            },
            left_insns: self.count_left_insns(),
            unallocated: goes_on && clock_unallocated,
            again: false,
        };
        self.stands = true;
        self.stale = false;
    }

    /// What who runs may still retire before the count brings something new.
    #[inline]
    fn count_left_insns(&self) -> u64 {
        let to_t1_insns = match (self.reason, self.slot.t1_insns) {
            (Grant::Slot, Some(t1_insns)) => t1_insns.saturating_sub(self.slot.count_insns),
            _ => u64::MAX,
        };
        let run = self.grant.and_then(|p| self.runs.get(p as usize));
        let to_look_insns = match (self.watch.at_insns, run) {
            (u64::MAX, _) | (_, None) => u64::MAX,
            (at_insns, Some(run)) => at_insns.saturating_sub(run.retired_insns),
        };
        to_t1_insns.min(to_look_insns)
    }
}
