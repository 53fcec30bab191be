// SPDX-License-Identifier: GPL-2.0

//! The present slot of a node.

use super::division::Division;
use super::event::PresentSlot;
use super::memory::Memory;
use super::plan::{Plan, Slot};
use super::rate::Rate;
use super::wire::format;

/// The present slot: where the plan stands, and what has been used of the slot.
#[derive(Clone, Copy, Debug)]
pub(super) struct CurrentSlot {
    /// Number of the slot in the plan; the number of all slots after the last.
    number: u32,
    /// The slot has begun: all that follows but `whole_slots` is valid only then.
    begun: bool,
    /// Process of the slot, or [`Slot::IDLE`].
    owner: u32,
    /// Position of the task for which the slot was planned.
    position: u32,
    /// Instructions that the owner has retired in the slot.
    count_insns: u64,
    /// Count at which the slot ends: t1, or a greater one for a task that is not to be
    /// preempted again.  `None` if t1 is switched off.
    t1_insns: Option<u64>,
    /// Difference between that count and t1.
    spared_insns: u64,
    /// Time for which the owner was found in the kernel.
    kernel_ns: u64,
    /// Instructions that this time counts as, towards t1.
    kernel_insns: u64,
    /// Time in interrupts by which its end was moved.
    given_back_ns: u64,
    /// Plan time since which the owner can't run; [`NOT_AWAY`]: it can.  Where slots float, a
    /// process that can't run has left its slot.
    away_since_ns: u64,
    /// Time of the slot for which the owner could not run, before that.
    away_ns: u64,
    /// Division among other processes than the owner.
    division: Division,
    /// Plan time at which the slot ends: its ceiling, or the end of an idle slot.
    end_plan_ns: u64,
    ceiling_ns: u64,
    /// The absence of the owner was reported.
    absence_reported: bool,
    /// Number of idle slots that were given to one process each.
    whole_slots: u64,
}

/// Plan time of an owner that can run.
const NOT_AWAY: u64 = u64::MAX;

/// The reason why a slot ends.
pub(super) enum SlotEnd {
    /// The time of an idle slot is over.
    Idle,
    /// The owner has retired as much as t1.
    Count(u64),
    /// The slot has lasted as long as its ceiling; or as long as this, with what its owner has
    /// retired and the time that it has spent in the kernel.
    Ceiling(u64),
}

impl CurrentSlot {
    /// The moment before the first slot.
    pub(super) const FIRST: CurrentSlot = CurrentSlot {
        number: 0,
        begun: false,
        owner: Slot::IDLE,
        position: 0,
        count_insns: 0,
        t1_insns: None,
        spared_insns: 0,
        kernel_ns: 0,
        kernel_insns: 0,
        given_back_ns: 0,
        away_since_ns: NOT_AWAY,
        away_ns: 0,
        division: Division::Turns,
        end_plan_ns: 0,
        ceiling_ns: 0,
        absence_reported: false,
        whole_slots: 0,
    };

    pub(super) fn number(&self) -> u32 {
        self.number
    }

    pub(super) fn has_begun(&self) -> bool {
        self.begun
    }

    /// Process of a slot that has begun, or [`Slot::IDLE`].
    pub(super) fn owner(&self) -> u32 {
        self.owner
    }

    pub(super) fn position(&self) -> u32 {
        self.position
    }

    /// Whether the slot has begun, and is that of `p`.
    pub(super) fn is_of(&self, p: u32) -> bool {
        self.begun && self.owner == p
    }

    /// Whether the slot has begun, and is that of a process.
    pub(super) fn is_owned(&self) -> bool {
        self.begun && self.owner != Slot::IDLE
    }

    pub(super) fn count_insns(&self) -> u64 {
        self.count_insns
    }

    pub(super) fn t1_insns(&self) -> Option<u64> {
        self.t1_insns
    }

    pub(super) fn division(&self) -> &Division {
        &self.division
    }

    pub(super) fn end_plan_ns(&self) -> u64 {
        self.end_plan_ns
    }

    /// Plan time at which the slot ends, or the piece of the process that fills it.
    #[inline(always)]
    pub(super) fn next_plan_ns(&self, is_filled: bool) -> u64 {
        match self.division {
            Division::Pieces { until_plan_ns, .. } if is_filled => {
                self.end_plan_ns.min(until_plan_ns)
            }
            _ => self.end_plan_ns,
        }
    }

    /// Instructions that the owner may still retire; `u64::MAX` if t1 is switched off.
    #[inline(always)]
    pub(super) fn left_insns(&self) -> u64 {
        self.t1_insns.map_or(u64::MAX, |t1_insns| {
            t1_insns.saturating_sub(self.used_insns())
        })
    }

    /// Instructions that count towards t1.
    #[inline(always)]
    fn used_insns(&self) -> u64 {
        self.count_insns.saturating_add(self.kernel_insns)
    }

    /// Plan time that the slot has lasted at `plan_ns`.  What it was extended by does not count.
    fn lasted_ns(&self, plan_ns: u64) -> u64 {
        let left_ns = self.end_plan_ns.saturating_sub(plan_ns);
        self.ceiling_ns.saturating_sub(left_ns)
    }

    /// The end of the slot, if it is over at `plan_ns`.
    #[inline(always)]
    pub(super) fn end(&self, plan_ns: u64) -> Option<SlotEnd> {
        let is_over = plan_ns >= self.end_plan_ns;
        if self.owner == Slot::IDLE {
            return is_over.then_some(SlotEnd::Idle);
        }
        match self.t1_insns {
            Some(t1_insns) if self.count_insns >= t1_insns => Some(SlotEnd::Count(t1_insns)),
            Some(t1_insns) if self.used_insns() >= t1_insns => {
                Some(SlotEnd::Ceiling(self.lasted_ns(plan_ns)))
            }
            _ => is_over.then_some(SlotEnd::Ceiling(self.ceiling_ns)),
        }
    }

    /// Begins `slot` at `plan_ns`, for `lasts_ns` of plan time.
    #[inline(always)]
    pub(super) fn begin(
        &mut self,
        slot: &Slot,
        t1_insns: Option<u64>,
        plan_ns: u64,
        lasts_ns: u64,
    ) {
        *self = CurrentSlot {
            number: self.number,
            begun: true,
            owner: slot.process,
            position: slot.position,
            t1_insns,
            end_plan_ns: plan_ns.saturating_add(lasts_ns),
            ceiling_ns: lasts_ns,
            whole_slots: self.whole_slots,
            ..CurrentSlot::FIRST
        };
    }

    /// Begins `slot`, whose number is that, at `plan_ns`, for `lasts_ns` of plan time.
    pub(super) fn begin_at(
        &mut self,
        number: u32,
        slot: &Slot,
        t1_insns: Option<u64>,
        plan_ns: u64,
        lasts_ns: u64,
    ) {
        self.number = number;
        self.begin(slot, t1_insns, plan_ns, lasts_ns);
    }

    /// Goes on at `plan_ns` with a slot that was left, for `left_ns` of plan time.
    pub(super) fn resume(&mut self, left: &CurrentSlot, plan_ns: u64, left_ns: u64) {
        *self = CurrentSlot {
            end_plan_ns: plan_ns.saturating_add(left_ns),
            whole_slots: self.whole_slots,
            ..*left
        };
    }

    /// Leaves the slot as it stands.
    pub(super) fn leave(&mut self) {
        self.begun = false;
    }

    /// Leaves the slot for the next one.
    #[inline(always)]
    pub(super) fn pass(&mut self) {
        self.number = self.number.saturating_add(1);
        self.begun = false;
        self.division = Division::Turns;
    }

    /// Notes that the owner has retired `insns` more in the slot.
    pub(super) fn retire(&mut self, insns: u64) {
        self.count_insns = self.count_insns.saturating_add(insns);
    }

    /// Whether time in the kernel counts towards t1.
    pub(super) fn has_kernel_insns(&self) -> bool {
        self.kernel_insns != 0
    }

    /// Notes that the owner, which retires at `rate`, was found in the kernel after `ns` at
    /// `plan_ns`; `free_ns` cost it nothing.  Only time for which it has retired too little counts:
    /// a rate that was learned from its runs contains the usual time in the kernel.
    pub(super) fn spend_in_kernel(&mut self, ns: u64, plan_ns: u64, rate: Rate, free_ns: u64) {
        let had_ns = self.lasted_ns(plan_ns).saturating_sub(self.away_ns);
        // The look before may have been in an earlier slot.
        self.kernel_ns = self.kernel_ns.saturating_add(ns).min(had_ns);
        let missing_insns = rate.to_insns(had_ns).saturating_sub(self.count_insns);
        let spent_insns = rate.to_insns(self.kernel_ns).min(missing_insns);
        self.kernel_insns = spent_insns.saturating_sub(rate.to_insns(free_ns));
    }

    /// Whether the owner can't run, while the slot lasts.
    #[inline(always)]
    pub(super) fn is_away(&self) -> bool {
        self.away_since_ns != NOT_AWAY
    }

    /// Notes that the owner can't run from `plan_ns` on.
    pub(super) fn go_away(&mut self, plan_ns: u64) {
        self.away_since_ns = plan_ns;
    }

    /// Notes that the owner can run again at `plan_ns`.
    pub(super) fn come_back(&mut self, plan_ns: u64) {
        let away_ns = plan_ns.saturating_sub(self.away_since_ns);
        self.away_ns = self.away_ns.saturating_add(away_ns);
        self.away_since_ns = NOT_AWAY;
    }

    /// Moves the end of the slot back by time in interrupts, by no more than `most_ns` in all.
    pub(super) fn give_back(&mut self, ns: u64, most_ns: u64) {
        let ns = ns.min(most_ns.saturating_sub(self.given_back_ns));
        self.given_back_ns = self.given_back_ns.saturating_add(ns);
        self.extend(ns);
    }

    /// Moves the end of the slot back by that plan time.
    pub(super) fn extend(&mut self, ns: u64) {
        self.end_plan_ns = self.end_plan_ns.saturating_add(ns);
    }

    /// Moves the end of the slot to `sparing_insns`, if that is a greater count than t1: its
    /// task is not to be preempted again.
    #[cold]
    pub(super) fn spare(&mut self, sparing_insns: u64) {
        if let Some(t1_insns) = &mut self.t1_insns {
            self.spared_insns = sparing_insns.saturating_sub(*t1_insns);
            *t1_insns = (*t1_insns).max(sparing_insns);
        }
    }

    /// Restores t1 if the slot spared the task of `p` that ends.
    #[inline(always)]
    pub(super) fn end_sparing(&mut self, p: u32) {
        if self.spared_insns != 0 {
            self.spare_no_longer(p);
        }
    }

    #[cold]
    fn spare_no_longer(&mut self, p: u32) {
        if self.is_of(p) {
            let spared_insns = core::mem::replace(&mut self.spared_insns, 0);
            if let Some(t1_insns) = &mut self.t1_insns {
                *t1_insns = t1_insns.saturating_sub(spared_insns);
            }
        }
    }

    /// Notes that the absence of the owner is reported.  Returns whether it was not yet.
    pub(super) fn report_absence(&mut self) -> bool {
        !core::mem::replace(&mut self.absence_reported, true)
    }

    /// Number of idle slots that were divided as [`Division::Whole`].
    pub(super) fn whole_slots(&self) -> u64 {
        self.whole_slots
    }

    /// Divides the slot, which is idle and has begun.
    pub(super) fn divide(&mut self, division: Division) {
        if let Division::Whole(_) = division {
            self.whole_slots = self.whole_slots.wrapping_add(1);
        }
        self.division = division;
    }

    /// Begins a piece of the slot that lasts until `until_plan_ns`, or to the end of the
    /// slot.
    pub(super) fn begin_piece(&mut self, until_plan_ns: u64, last_ns: u64) {
        self.division = Division::Pieces {
            until_plan_ns: until_plan_ns.min(self.end_plan_ns),
            last_ns,
        };
    }

    /// Forgets the pieces so far, which were computed while some candidates were not known.
    pub(super) fn forget_pieces(&mut self) {
        if let Division::Pieces { .. } = self.division {
            self.division = Division::PIECES;
        }
    }

    /// Continues the round of whole idle slots of the plan before.
    pub(super) fn follow(&mut self, old: &CurrentSlot) {
        self.whole_slots = old.whole_slots;
    }

    /// The slot as it is traced, if it has begun.
    pub(super) fn present<M: Memory>(&self, plan: &Plan<M>) -> Option<PresentSlot> {
        let slot = plan.slot(self.number).filter(|_| self.begun)?;
        let process = plan.process(slot.process);
        Some(PresentSlot {
            number: self.number,
            process: process.map_or(format::IDLE, |process| process.id),
            task: slot.task,
            length_insns: slot.length_insns,
            count_insns: self.count_insns,
            t1_insns: self.t1_insns,
            limit_ns: self.ceiling_ns,
        })
    }
}

saved!([super] CurrentSlot {
    number,
    begun,
    owner,
    position,
    count_insns,
    t1_insns,
    spared_insns,
    kernel_ns,
    kernel_insns,
    given_back_ns,
    away_since_ns,
    away_ns,
    division,
    end_plan_ns,
    ceiling_ns,
    absence_reported,
    whole_slots,
});

#[cfg(test)]
impl CurrentSlot {
    /// Puts the slot beyond every plan.
    pub(super) fn break_number(&mut self) {
        self.number = u32::MAX;
    }

    /// Gives the slot to `owner`, whether or not that exists.
    pub(super) fn break_owner(&mut self, owner: u32) {
        self.owner = owner;
    }
}
