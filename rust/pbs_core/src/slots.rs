// SPDX-License-Identifier: GPL-2.0

//! Begin and end of slots.

use super::config::{PreemptionWay, T1State};
use super::event::{EventKind, Sink};
use super::memory::Memory;
use super::node::Node;
use super::plan::Slot;
use super::slot::SlotEnd;

impl<M: Memory> Node<M> {
    /// Begins the present slot if it has not begun.  Returns whether the node should stay in the
    /// slot.  After the last slot there is none to leave.
    pub(super) fn in_slot(&mut self, now_ns: u64, plan_ns: u64, sink: &mut impl Sink) -> bool {
        if !self.slot.has_begun() {
            let Some(&slot) = self.plan.slot(self.slot.number()) else {
                return true;
            };
            if self.caught_up(slot.process, slot.position) {
                return false;
            }
            self.begin_slot(&slot, plan_ns);
            sink.slot_begin(|| self.slot.present(&self.plan));
        } else if self.caught_up(self.slot.owner(), self.slot.position()) {
            return false;
        }
        let owner = self.slot.owner();
        let (kind, value) = match self.slot.end(plan_ns) {
            None => return true,
            Some(SlotEnd::Idle) => return false,
            Some(SlotEnd::Count(t1_insns)) => (EventKind::Preempted, t1_insns),
            Some(SlotEnd::Ceiling(ceiling_ns)) => (EventKind::Ceiling, ceiling_ns),
        };
        self.report_pending_grant(sink);
        // A task that has no room left by an earlier one is not preempted.  Nor does a process that
        // waits for others lose the CPU.
        self.processes.update(owner, |run| {
            if run.is_late() && run.can_run() {
                run.preemptions = run.preemptions.saturating_add(1);
            }
        });
        let mut event = self.process_event(kind, owner, now_ns);
        event.value = value;
        self.report(event, sink);
        self.check_preemptions(owner, now_ns, sink);
        self.check_awaited_message(owner, now_ns, sink);
        false
    }

    /// Whether a slot, planned for the task at `position` of `owner`, is of no use any more,
    /// because that task is done or never will be.
    fn caught_up(&self, owner: u32, position: u32) -> bool {
        self.processes
            .get(owner)
            .is_some_and(|run| run.done || run.position > position)
    }

    /// t1 of a slot, if it has one.
    pub fn t1_insns(&self, slot: &Slot) -> Option<u64> {
        let process = self.plan.process(slot.process)?;
        let is_last = slot.is_last_of(process);
        let t1_insns = self.policy.t1_of_slot_insns(slot.length_insns, is_last)?;
        if self.policy.config.t1_state == T1State::Ignored as u64 {
            return Some(t1_insns);
        }
        Some(self.t1_in_state_insns(slot.length_insns, t1_insns))
    }

    #[cold]
    fn t1_in_state_insns(&self, slot_insns: u64, t1_insns: u64) -> u64 {
        let sums = self.processes.sums();
        let late_insns = sums.lateness_insns().max(0).unsigned_abs();
        let lateness = (late_insns, self.calm_t2_node_insns());
        self.policy
            .t1_in_state_insns(slot_insns, t1_insns, lateness, sums.active())
    }

    /// Instructions for which the ceiling of a slot leaves room: the length of the slot, or
    /// all that its process has left, if the slot is its last one and spared.
    pub fn room_insns(&self, slot: &Slot) -> u64 {
        let process = self.plan.process(slot.process);
        let is_last = process.is_some_and(|process| slot.is_last_of(process));
        if !is_last || self.policy.config.t1_spares_last_slot == 0 {
            return slot.length_insns;
        }
        let run = self.processes.get(slot.process);
        run.map_or(0, |run| run.rest_insns).max(slot.length_insns)
    }

    /// Instructions that the current task of `p` may retire in a slot that begins, whatever
    /// its t1: where tasks are preempted once, a task that was preempted continues until it
    /// is beyond t2_task.
    #[cold]
    pub(super) fn sparing_insns(&self, p: u32) -> u64 {
        let run = self.processes.get(p);
        run.filter(|run| run.preemptions != 0).map_or(0, |run| {
            let t2_insns = self.policy.t2_task_insns(run.planned_insns);
            t2_insns.saturating_add(1).saturating_sub(run.retired_insns)
        })
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
            self.rates.cpu().to_ns(length_insns)
        } else {
            let room_insns = self.room_insns(slot).max(sparing_insns);
            let ceiling_ns = self
                .policy
                .config
                .ceiling_ns(room_insns, self.rates.of(slot.process));
            ceiling_ns.saturating_sub(paid_ns)
        };
        let left_insns = t1_insns.map(|t1_insns| t1_insns.saturating_sub(paid_insns));
        self.slot.begin(slot, left_insns, plan_ns, lasts_ns);
        if sparing_insns != 0 {
            // A debt is taken from that, too.
            self.slot.spare(sparing_insns.saturating_sub(paid_insns));
        }
        if slot.is_idle() {
            self.divide();
        }
    }

    /// Traces the end of the present slot, as another plan follows, or none.
    pub fn leave_slot(&self, sink: &mut impl Sink) {
        sink.slot_end(|| self.slot.present(&self.plan));
    }

    /// Leaves the present slot.  Only its own process can fall behind by that.
    pub(super) fn pass_slot(&mut self, sink: &mut impl Sink) {
        self.leave_slot(sink);
        let slot = self.plan.slot(self.slot.number()).copied();
        let slot = slot.unwrap_or(Slot::NONE);
        let owner = slot.process;
        if !self.timetable.is_empty() {
            self.pass_by_timetable(&slot);
        }
        self.slot.pass();
        // The grant was for this slot; in the next one the choice is made anew.
        self.grant.forget_reason();
        if owner != Slot::IDLE {
            self.requeue(owner);
        }
    }
}
