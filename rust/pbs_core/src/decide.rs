// SPDX-License-Identifier: GPL-2.0

//! Who may run, and until when.

use super::idle::Division;
use super::node::SlotState;
use super::signals::Watch;
use super::{
    wire, Event, EventKind, Grant, Memory, Node, PreemptionWay, Presence, PresentSlot, Sink, Slot,
};

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

/// What was decided last, beside who may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Settled {
    /// When.
    since_ns: u64,
    /// When the slot ends by the clock, or the windows change.
    clock_ns: u64,
    /// When the clock alone brings something new; `u64::MAX`: never.
    until_ns: u64,
    /// What who runs may still retire before the count brings something new;
    /// `u64::MAX`: as much as it likes.
    pub(super) left_insns: u64,
    /// Whether lower classes go first until then, if anybody goes on.
    clock_unallocated: bool,
    /// It is unallocated time.
    unallocated: bool,
    /// The work was more than one decision may do.
    again: bool,
}

impl Settled {
    /// Nothing was decided.
    pub(super) const NONE: Settled = Settled {
        since_ns: 0,
        clock_ns: 0,
        until_ns: u64::MAX,
        left_insns: u64::MAX,
        clock_unallocated: false,
        unallocated: false,
        again: false,
    };
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
            until_insns: self.left_insns(),
            until_ns: self.until_ns(),
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

    /// Is the present slot one to stay in?  Begins it where it has not begun.
    /// After the last slot there is none to leave.
    fn in_slot(&mut self, now_ns: u64, plan_ns: u64, sink: &mut impl Sink) -> bool {
        if !self.slot.begun {
            let Some(&slot) = self.plan.slot(self.cursor) else {
                return true;
            };
            if self.caught_up(slot.process, slot.position) {
                return false;
            }
            self.begin_slot(&slot, plan_ns);
            sink.slot_begin(|| self.present_slot());
        } else if self.caught_up(self.slot.owner, self.slot.position) {
            return false;
        }
        let owner = self.slot.owner;
        if owner == Slot::IDLE {
            return plan_ns < self.slot.end_plan_ns;
        }
        let count_insns = self.slot.count_insns;
        let reached = |&t1_insns: &u64| count_insns >= t1_insns;
        let (kind, value) = if let Some(t1_insns) = self.slot.t1_insns.filter(reached) {
            (EventKind::Preempted, t1_insns)
        } else if plan_ns >= self.slot.end_plan_ns {
            (EventKind::Ceiling, self.slot.ceiling_ns)
        } else {
            return true;
        };
        self.tell_untold_before(sink);
        // Not its fault, if what came before used up the slot; nor does who waits
        // for others lose the CPU.
        self.update(owner, |run| {
            if run.is_late() && run.can_run() {
                run.preemptions = run.preemptions.saturating_add(1);
            }
        });
        let mut event = self.process_event(kind, owner, now_ns);
        event.value = value;
        self.tell(event, sink);
        self.watch_preemptions(owner, now_ns, sink);
        false
    }

    /// Is a slot, planned for the task at `position` of `owner`, of no use any
    /// more, because that task is done or never will be?
    fn caught_up(&self, owner: u32, position: u32) -> bool {
        self.runs
            .get(owner as usize)
            .is_some_and(|run| run.done || run.position > position)
    }

    /// t1 of a slot, if it has one.
    pub fn t1_insns(&self, slot: &Slot) -> Option<u64> {
        let process = self.plan.process(slot.process)?;
        let is_last = slot.is_last_of(process);
        self.policy.t1_of_slot_insns(slot.length_insns, is_last)
    }

    /// What a slot's ceiling is to leave room for: its length, or, if it is the
    /// last one of a process and spared, all that the process has left.
    pub fn room_insns(&self, slot: &Slot) -> u64 {
        let process = self.plan.process(slot.process);
        let is_last = process.is_some_and(|process| slot.is_last_of(process));
        if !is_last || self.policy.config.t1_spares_last_slot == 0 {
            return slot.length_insns;
        }
        let run = self.runs.get(slot.process as usize);
        run.map_or(0, |run| run.rest_insns).max(slot.length_insns)
    }

    /// What the current task of `p` may retire in a slot that begins, whatever t1 of that
    /// is: where tasks are preempted once, one that was goes on until it is beyond
    /// t2_task.
    #[cold]
    fn sparing_insns(&self, p: u32) -> u64 {
        let run = self.runs.get(p as usize);
        run.filter(|run| run.preemptions != 0).map_or(0, |run| {
            let t2_insns = self.policy.t2_task_insns(run.planned_insns);
            t2_insns.saturating_add(1).saturating_sub(run.retired_insns)
        })
    }

    /// The slot that has begun ends by the count further on, where its task is not to be
    /// preempted again.
    #[cold]
    fn spare(&mut self, sparing_insns: u64) {
        if let Some(t1_insns) = &mut self.slot.t1_insns {
            self.slot.spared_insns = sparing_insns.saturating_sub(*t1_insns);
            *t1_insns = (*t1_insns).max(sparing_insns);
        }
    }

    /// A task of `p` ends: if the present slot spared it, t1 holds there again.
    #[cold]
    pub(super) fn spare_no_longer(&mut self, p: u32) {
        if self.slot.begun && self.slot.owner == p {
            let spared_insns = core::mem::replace(&mut self.slot.spared_insns, 0);
            if let Some(t1_insns) = &mut self.slot.t1_insns {
                *t1_insns = t1_insns.saturating_sub(spared_insns);
            }
        }
    }

    fn begin_slot(&mut self, slot: &Slot, plan_ns: u64) {
        let length_insns = slot.length_insns;
        let t1_insns = self.t1_insns(slot);
        let mut sparing_insns = 0;
        if self.policy.config.preemption_way == PreemptionWay::Once as u64 {
            sparing_insns = self.sparing_insns(slot.process);
        }
        let (paid_insns, paid_ns) = self.pay(slot.process, t1_insns.unwrap_or(length_insns));
        let lasts_ns = if slot.is_idle() {
            self.rate.to_ns(length_insns)
        } else {
            let room_insns = self.room_insns(slot).max(sparing_insns);
            let ceiling_ns = self
                .policy
                .config
                .ceiling_ns(room_insns, self.rate_of(slot.process));
            ceiling_ns.saturating_sub(paid_ns)
        };
        self.slot = SlotState {
            begun: true,
            owner: slot.process,
            position: slot.position,
            count_insns: 0,
            t1_insns: t1_insns.map(|t1_insns| t1_insns.saturating_sub(paid_insns)),
            spared_insns: 0,
            division: Division::Turns,
            end_plan_ns: plan_ns.saturating_add(lasts_ns),
            ceiling_ns: lasts_ns,
            absent_told: false,
        };
        if sparing_insns != 0 {
            // What it owes is taken from that, too.
            self.spare(sparing_insns.saturating_sub(paid_insns));
        }
        if slot.is_idle() {
            self.divide();
        }
    }

    /// The present slot, unless it has not begun.
    fn present_slot(&self) -> Option<PresentSlot> {
        let slot = self.plan.slot(self.cursor).filter(|_| self.slot.begun)?;
        let process = self.plan.process(slot.process);
        Some(PresentSlot {
            number: self.cursor,
            process: process.map_or(wire::IDLE, |process| process.id),
            task: slot.task,
            length_insns: slot.length_insns,
            count_insns: self.slot.count_insns,
            t1_insns: self.slot.t1_insns,
            limit_ns: self.slot.ceiling_ns,
        })
    }

    /// Traces the end of the present slot, as another plan follows, or none.
    pub fn leave_slot(&self, sink: &mut impl Sink) {
        sink.slot_end(|| self.present_slot());
    }

    /// Leaves the present slot.  Only its own process can fall behind by that.
    fn pass_slot(&mut self, sink: &mut impl Sink) {
        self.leave_slot(sink);
        let owner = self
            .plan
            .slot(self.cursor)
            .map_or(Slot::IDLE, |s| s.process);
        self.cursor = self.cursor.saturating_add(1);
        self.slot.begun = false;
        self.slot.division = Division::Turns;
        // The grant was for this slot; in the next one the choice is made anew.
        self.reason = Grant::None;
        if owner != Slot::IDLE {
            self.requeue(owner);
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
        self.note_grant(wire::NO_SLOT, now_ns, sink);
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

    /// Instructions that who is granted may still retire before the node must be
    /// asked again, as [`Decision::until_insns`].
    #[inline]
    pub fn left_insns(&self) -> Option<u64> {
        let left_insns = self.settled.left_insns;
        (left_insns != u64::MAX).then_some(left_insns)
    }

    /// When the node must be asked again, as [`Decision::until_ns`].
    #[inline]
    pub fn until_ns(&self) -> Option<u64> {
        let until_ns = self.settled.until_ns;
        (until_ns != u64::MAX).then_some(until_ns)
    }

    /// When that was decided.
    #[inline]
    pub fn settled_ns(&self) -> u64 {
        self.settled.since_ns
    }

    /// Whether it was decided that it is unallocated time.
    #[inline]
    pub fn is_unallocated(&self) -> bool {
        self.settled.unallocated
    }

    /// Whether the last decision has to be gone on with soon.
    #[inline]
    pub fn is_unfinished(&self) -> bool {
        self.settled.again
    }
}
