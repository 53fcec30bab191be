// SPDX-License-Identifier: GPL-2.0

//! Begin and end of slots.

use super::config::PreemptionWay;
use super::division::Division;
use super::event::{EventKind, Grant, PresentSlot, Sink};
use super::memory::Memory;
use super::node::Node;
use super::plan::Slot;
use super::slot::SlotState;
use super::wire::format;

impl<M: Memory> Node<M> {
    /// Is the present slot one to stay in?  Begins it where it has not begun.
    /// After the last slot there is none to leave.
    pub(super) fn in_slot(&mut self, now_ns: u64, plan_ns: u64, sink: &mut impl Sink) -> bool {
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
            process: process.map_or(format::IDLE, |process| process.id),
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
    pub(super) fn pass_slot(&mut self, sink: &mut impl Sink) {
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
}
