// SPDX-License-Identifier: GPL-2.0

//! Begin and end of slots that float.

use super::super::config::{PreemptionWay, Threshold};
use super::super::event::{EventKind, Grant, Sink};
use super::super::memory::Memory;
use super::super::node::Node;
use super::super::plan::Slot;
use super::super::run::Presence;
use super::super::slot::SlotEnd;
use super::super::wire::format;
use super::place::{Came, Level, List, Place, NO_SLOT};

impl<M: Memory> Node<M> {
    /// Gives `p` the slot of its current task, and puts it where that slot comes.
    pub(in super::super) fn place_anew(&mut self, p: u32) {
        let own_slot = self.processes.get(p).map(|run| (run.done, run.own_slot));
        match own_slot {
            Some((false, own_slot)) => self.enter_slot(p, own_slot),
            _ => self.leave_all_slots(p),
        }
        self.requeue(p);
    }

    /// The current task of `p` has ended: `p` goes on to the slot of the next one, unless it
    /// has come beyond that already.
    pub(in super::super) fn move_on(&mut self, p: u32) {
        self.floating.moved = true;
        let (Some(run), Some(place)) = (self.processes.get(p), self.floating.place_mut(p)) else {
            return;
        };
        let (done, own_slot) = (run.done, run.own_slot);
        if done {
            self.leave_all_slots(p);
        } else if place.number != NO_SLOT && own_slot > place.number {
            self.enter_slot(p, own_slot);
        } else {
            // A task that was shorter than planned gives the process another chance.
            place.fresh = true;
            if place.level == Level::Hopeless {
                place.level = Level::Timely;
            }
            place.slot.end_sparing(p);
            self.rank_in_background(p);
        }
        self.requeue(p);
    }

    /// Gives `p` the slot of that number.
    fn enter_slot(&mut self, p: u32, number: u32) {
        let Some(slot) = self.plan.slot(number).copied() else {
            return self.leave_all_slots(p);
        };
        let (level, key) = self.rank_of(p, &slot);
        if let Some(place) = self.floating.place_mut(p) {
            *place = Place {
                level,
                key,
                number,
                list: place.list,
                ..Place::NONE
            };
        }
    }

    /// `p` has no slot any more.
    fn leave_all_slots(&mut self, p: u32) {
        if let Some(place) = self.floating.place_mut(p) {
            *place = Place {
                list: place.list,
                ..Place::NONE
            };
        }
    }

    /// Returns the rank of the slot of `p`: by the deadline, or in the order of the plan if `p` has
    /// none.
    fn rank_of(&self, p: u32, slot: &Slot) -> (Level, u64) {
        let deadline_ns = match self.plan.process(p).map(|process| process.deadline_ns) {
            None | Some(format::NO_DEADLINE) => return (Level::Free, 0),
            Some(deadline_ns) => deadline_ns,
        };
        let after_insns = match self.processes.get(p) {
            Some(run) if run.position == slot.position => {
                run.rest_insns.saturating_sub(run.planned_insns)
            }
            _ => self.plan.rest_insns(p, slot.position.saturating_add(1)),
        };
        let after_ns = self.rates.of(p).to_ns(after_insns);
        (Level::Timely, deadline_ns.saturating_sub(after_ns))
    }

    /// Puts `p` into the list in which it belongs.  The process that is granted is in none.
    #[inline(never)]
    pub(in super::super) fn requeue_floating(&mut self, p: u32) {
        let list = self.list_of(p);
        let run = self.processes.get(p);
        if run.is_some_and(|run| run.presence != Presence::Absent) {
            self.floating.arrived(p);
        }
        if list == List::Ready {
            if let Some(place) = self.floating.place_mut(p) {
                place.came = Came::NotYet;
            }
            self.rank_in_background(p);
        }
        self.floating.put(self.processes.runs_mut(), p, list);
    }

    /// In the background the process with the least lateness comes first.  None falls behind its
    /// rank again: see [`age_in_background`](Self::age_in_background).
    fn rank_in_background(&mut self, p: u32) {
        let (Some(run), Some(place)) = (self.processes.get(p), self.floating.place_mut(p)) else {
            return;
        };
        if place.level == Level::Background {
            let late_insns = run.lateness_insns().max(0).unsigned_abs();
            place.key = place.key.max(late_insns);
        }
    }

    /// Ranks `p`, whose turn in the background has ended.  If it is no later than before, it has
    /// stayed in the kernel, or is early: then the turn counts as if it had retired instructions
    /// all the time.  Otherwise it would have all turns, and the others none.  A turn that nobody
    /// else wanted counts for nothing.
    pub(super) fn age_in_background(&mut self, p: u32) {
        let first = self.floating.first_ready();
        let first = first.and_then(|first| self.floating.place(first));
        let is_wanted = first.is_some_and(|place| place.level == Level::Background);
        let turn_insns = match is_wanted {
            true => self.rates.of(p).to_insns(self.windows.execution_ns()),
            false => 0,
        };
        let (Some(run), Some(place)) = (self.processes.get(p), self.floating.place_mut(p)) else {
            return;
        };
        if place.level == Level::Background {
            let late_insns = run.lateness_insns().max(0).unsigned_abs();
            place.key = if late_insns > place.key {
                late_insns
            } else {
                place.key.saturating_add(turn_insns)
            };
        }
    }

    /// The list in which `p` belongs, if it is not granted.
    pub(super) fn list_of(&self, p: u32) -> List {
        let (Some(run), Some(place)) = (self.processes.get(p), self.floating.place(p)) else {
            return List::None;
        };
        let is_missing = if run.held {
            place.came != Came::Held
        } else {
            run.presence == Presence::Absent && place.came != Came::Absent
        };
        if run.done {
            List::None
        } else if run.can_run() {
            List::Ready
        } else if is_missing {
            List::Missing
        } else {
            List::None
        }
    }

    /// Begins the slot of the granted process `p`, or goes on with it at `plan_ns`.
    pub(super) fn begin_floating(&mut self, p: u32, plan_ns: u64, sink: &mut impl Sink) {
        let Some(place) = self.floating.place(p).copied() else {
            return;
        };
        if place.begun {
            self.slot.resume(&place.slot, plan_ns, place.left_ns);
        } else if let Some(slot) = self.plan.slot(place.number).copied() {
            self.begin_new_floating(p, place.number, &slot, plan_ns);
            if let Some(place) = self.floating.place_mut(p) {
                place.begun = true;
            }
        }
        sink.slot_begin(|| self.slot.present(&self.plan));
    }

    fn begin_new_floating(&mut self, p: u32, number: u32, slot: &Slot, plan_ns: u64) {
        // The budget is for all of the task, also for what was retired under another plan.
        let count_insns = match self.processes.get(p) {
            Some(run) if run.position == slot.position => run.retired_insns,
            _ => 0,
        };
        let t1_insns = self.budget_insns(p, slot, count_insns);
        let mut sparing_insns = 0;
        if self.policy.config.preemption_way == PreemptionWay::Once as u64 {
            sparing_insns = self.sparing_insns(p);
        }
        let left_insns = t1_insns.map(|t1_insns| t1_insns.saturating_sub(count_insns));
        let (paid_insns, paid_ns) = self.pay(p, left_insns.unwrap_or(slot.length_insns));
        let room_insns = self.room_insns(slot).max(sparing_insns);
        let room_insns = room_insns.max(left_insns.unwrap_or(0));
        let ceiling_ns = self.policy.config.ceiling_ns(room_insns, self.rates.of(p));
        let t1_insns = t1_insns.map(|t1_insns| t1_insns.saturating_sub(paid_insns));
        let lasts_ns = ceiling_ns.saturating_sub(paid_ns);
        self.slot
            .begin_at(number, slot, t1_insns, plan_ns, lasts_ns);
        self.slot.retire(count_insns);
        if sparing_insns != 0 {
            let sparing_insns = sparing_insns.saturating_add(count_insns);
            self.slot.spare(sparing_insns.saturating_sub(paid_insns));
        }
    }

    /// Count at which `slot` ends, which the owner begins with `count_insns`.
    fn budget_insns(&self, p: u32, slot: &Slot, count_insns: u64) -> Option<u64> {
        if !self.policy.config.has(Threshold::T1) {
            return None;
        }
        let t1_insns = self.policy.t1_insns(slot.length_insns);
        let is_last = self.plan.process(p).is_some_and(|of| slot.is_last_of(of));
        let run = self.processes.get(p);
        let run = run.filter(|_| is_last && self.policy.config.t1_spares_last_slot != 0);
        let Some(run) = run else {
            return Some(t1_insns);
        };
        if run.position == slot.position && run.preemptions != 0 {
            // The task was preempted under an earlier plan, of which this one is aware.
            return Some(t1_insns);
        }
        let progress = run.progress();
        let most_insns = self.policy.most_insns(progress.planned_insns);
        let left_insns = most_insns
            .saturating_add(1)
            .saturating_sub(progress.retired_insns);
        Some(left_insns.saturating_add(count_insns).max(t1_insns))
    }

    /// The process `p` leaves the CPU: keeps its slot as it stands.
    pub(super) fn suspend_floating(&mut self, p: u32, plan_ns: u64, sink: &mut impl Sink) {
        if !self.slot.has_begun() {
            return;
        }
        self.leave_slot(sink);
        let left_ns = self.slot.end_plan_ns().saturating_sub(plan_ns);
        if let Some(place) = self.floating.place_mut(p).filter(|place| place.begun) {
            place.slot = self.slot;
            place.left_ns = left_ns;
        }
        self.slot.leave();
    }

    /// Ends the slot of the granted process `p`, if it is used up at `plan_ns`: the process
    /// takes the place of its next slot.  Returns whether it is.
    pub(super) fn cut_floating(
        &mut self,
        p: u32,
        now_ns: u64,
        plan_ns: u64,
        sink: &mut impl Sink,
    ) -> bool {
        if self.grant.reason() != Grant::Slot || !self.slot.is_of(p) {
            return false;
        }
        if self.floating.place(p).is_none_or(|place| !place.begun) {
            // Its task has ended, and the slot with it.
            self.leave_slot(sink);
            self.slot.leave();
            return false;
        }
        let (kind, value) = match self.slot.end(plan_ns) {
            None | Some(SlotEnd::Idle) => return false,
            Some(SlotEnd::Count(t1_insns)) => (EventKind::Preempted, t1_insns),
            Some(SlotEnd::Ceiling(ceiling_ns)) => (EventKind::Ceiling, ceiling_ns),
        };
        self.report_pending_grant(sink);
        // A process that waits for others does not lose the CPU by that.
        self.processes.update(p, |run| {
            if run.is_late() && run.can_run() {
                run.preemptions = run.preemptions.saturating_add(1);
            }
        });
        let mut event = self.process_event(kind, p, now_ns);
        event.value = value;
        self.report(event, sink);
        self.check_preemptions(p, now_ns, sink);
        self.leave_slot(sink);
        let level = self.floating.place(p).map(|place| place.level);
        let next = self.slot.position().saturating_add(1);
        self.slot.leave();
        match self.plan.own_slot(p, next) {
            Some(number) => self.enter_slot(p, number),
            None => self.leave_all_slots(p),
        }
        if let Some(place) = self.floating.place_mut(p) {
            if level == Some(Level::Hopeless) && place.number != NO_SLOT {
                place.level = Level::Hopeless;
            }
        }
        self.rank_in_background(p);
        self.floating.moved = true;
        true
    }
}
