// SPDX-License-Identifier: GPL-2.0

//! Timeliness: the starts and ends of tasks on the clock, compared with the plan (Leppert 2021,
//! 3.3.2).
//!
//! A plan contains no times, but a timetable follows from it.  A slot is planned to begin when all
//! slots before it are over, if each of them takes its planned length at the rate of its process,
//! or of the CPU where it is idle.  A task is planned to start with its own slot, and to end with
//! it.  The thesis finds no clock for such times where the rest of the system runs, too.  Plan time
//! is that clock: it stands still in unallocated time.
//!
//! The timetable is computed once, when the node is made, and only if the configuration wants it.
//! It has one sum for every [`SUM_EVERY`] slots; the time of a slot is found by adding up the few
//! slots after a sum.  A rate that changes later does not move what was planned.
//!
//! A task that had begun under the plan before has a part of its length behind it, and a task that
//! had ended has all of it.  The timetable is advanced by that part when the slot of the task
//! passes.  Only a task that still waits then, although its own slot has passed before, has a
//! planned time that is too early by the part.
//!
//! A deviation is information and no failure: it raises no stress, and no plan is expected.  Where
//! slots float, their order is not that of the plan, and nothing is planned to begin at a time.

use super::event::{Cause, Event, EventKind, Sink};
use super::memory::{pause, Memory, NoMemory};
use super::node::Node;
use super::plan::{Plan, Slot, SUM_EVERY};
use super::rate::Rate;
use super::rates::Rates;
use super::run::Run;
use super::words::Saved;

/// The planned times of the slots of a plan.
pub(super) struct Timetable<M: Memory> {
    /// Planned begin of every [`SUM_EVERY`]th slot, from the begin of the plan.  Empty if nothing
    /// is compared.
    begins_ns: M::Slice<u64>,
    /// Rate of the CPU when the plan came into force.  A node is made on the stack, where a
    /// [`Rate`] takes more room.
    insns_per_ms: u64,
    /// Plan time at which the plan came into force, less the planned time of the passed slots for
    /// which the plan before had done the work.  Modulo 2^64.
    begin_ns: u64,
}

impl<M: Memory> Timetable<M> {
    /// The timetable of `plan`, if it is `wanted`.
    pub(super) fn new(
        plan: &Plan<M>,
        rates: &Rates<M>,
        wanted: bool,
    ) -> Result<Timetable<M>, NoMemory> {
        let sums = if wanted {
            plan.slots.len() / SUM_EVERY + 1
        } else {
            0
        };
        let mut timetable = Timetable {
            begins_ns: M::alloc(sums, 0)?,
            insns_per_ms: rates.cpu().insns_per_ms(),
            begin_ns: 0,
        };
        timetable.compute(plan, rates);
        Ok(timetable)
    }

    fn compute(&mut self, plan: &Plan<M>, rates: &Rates<M>) {
        let rate = self.rate();
        let mut begin_ns = 0_u64;
        let parts = plan.slots.chunks(SUM_EVERY).map(Some).chain([None]);
        for ((sum_ns, part), number) in self.begins_ns.iter_mut().zip(parts).zip(0..) {
            // The caller pauses again, and is aborted then.
            let _ = pause::<M>(number);
            *sum_ns = begin_ns;
            begin_ns = end_ns(begin_ns, part.unwrap_or(&[]), rates, rate);
        }
    }

    /// Rate of the CPU by which the times were computed.
    fn rate(&self) -> Rate {
        Rate::new(self.insns_per_ms)
    }

    /// Whether nothing is compared.
    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.begins_ns.is_empty()
    }

    /// Brings the plan into force at that plan time.
    pub(super) fn begin(&mut self, plan_ns: u64) {
        self.begin_ns = plan_ns;
    }

    /// Advances the timetable by work that was done before the plan came into force.
    fn advance(&mut self, ns: u64) {
        self.begin_ns = self.begin_ns.wrapping_sub(ns);
    }

    /// Planned begin of a slot in plan time; of the slot after the last one, the planned end of the
    /// plan.
    fn begin_ns(&self, plan: &Plan<M>, rates: &Rates<M>, number: u32) -> u64 {
        let number = number as usize;
        let sum_ns = self.begins_ns.get(number / SUM_EVERY).copied();
        let rest = plan.slots.get(number / SUM_EVERY * SUM_EVERY..number);
        let since_begin_ns = end_ns(sum_ns.unwrap_or(0), rest.unwrap_or(&[]), rates, self.rate());
        since_begin_ns.saturating_add_signed(self.begin_ns.cast_signed())
    }
}

/// Planned end of slots that follow one another from a time on, on a CPU of that rate.
fn end_ns<M: Memory>(begin_ns: u64, slots: &[Slot], rates: &Rates<M>, cpu: Rate) -> u64 {
    slots.iter().fold(begin_ns, |sum_ns, slot| {
        sum_ns.saturating_add(length_ns(slot, rates, cpu))
    })
}

/// Planned time of a slot, on a CPU of that rate.
fn length_ns<M: Memory>(slot: &Slot, rates: &Rates<M>, cpu: Rate) -> u64 {
    rates
        .own(slot.process)
        .unwrap_or(cpu)
        .to_ns(slot.length_insns)
}

impl<M: Memory> Node<M> {
    /// Whether `p`, which is granted the CPU, begins a task whose start is compared with the plan.
    #[inline(always)]
    pub(super) fn starts_by_timetable(&self, p: Option<u32>) -> Option<u32> {
        if self.policy.config.timeliness_ns == 0 {
            return None;
        }
        p.filter(|&p| self.processes.get(p).is_some_and(|run| !run.task_begun))
    }

    /// Compares the start or the end of the current task of `p` with the plan, as `cause` names it.
    /// The task has retired `retired_insns`.
    #[inline(never)]
    pub(super) fn check_timeliness(
        &mut self,
        cause: Cause,
        p: u32,
        retired_insns: u64,
        now_ns: u64,
        sink: &mut impl Sink,
    ) {
        let run = self.processes.get(p).filter(|run| !run.reported.untimely);
        let Some(run) = run.filter(|_| !self.timetable.is_empty()) else {
            return;
        };
        let number = match cause {
            Cause::Start => run.own_slot,
            _ => run.own_slot.saturating_add(1),
        };
        let begin_ns = self.timetable.begin_ns(&self.plan, &self.rates, number);
        // Of a task that was taken over, and whose slot has not passed.
        let planned_ns = begin_ns.saturating_sub(self.carried_ns(p, run));
        let plan_ns = self.windows.later_plan_ns(now_ns);
        if plan_ns.abs_diff(planned_ns) <= self.policy.config.timeliness_ns {
            return;
        }
        self.processes
            .update_task(p, |run| run.reported.untimely = true);
        let event = Event {
            retired_insns,
            // Two's complement: it is negative when the task is early.
            value: plan_ns.wrapping_sub(planned_ns),
            ..self.signal(EventKind::Info, cause, p, now_ns)
        };
        self.report(event, sink);
    }

    /// Time that the task which `p` had begun under the plan before had behind it, as long as the
    /// slot of that task has not passed.
    fn carried_ns(&self, p: u32, run: &Run) -> u64 {
        let rate = self.rates.own(p).unwrap_or(self.timetable.rate());
        rate.to_ns(run.carried_insns)
    }

    /// Advances the timetable as a slot passes of whose task a part was done before this plan.
    #[inline(never)]
    pub(super) fn pass_by_timetable(&mut self, slot: &Slot) {
        let run = self.processes.get(slot.process);
        let Some(run) = run.filter(|run| slot.position < run.begun_before) else {
            return;
        };
        let is_last = slot.position.saturating_add(1) == run.begun_before;
        let carried_ns = if is_last && run.carried_insns != 0 {
            self.carried_ns(slot.process, run)
        } else {
            length_ns(slot, &self.rates, self.timetable.rate())
        };
        self.timetable.advance(carried_ns);
        if let Some(run) = self.processes.get_mut(slot.process).filter(|_| is_last) {
            run.carried_insns = 0;
        }
    }
}

#[cfg(test)]
impl<M: Memory> Timetable<M> {
    /// The state of the timetable, for comparisons.
    pub(super) fn words(&self) -> std::vec::Vec<u64> {
        let mut words = self.begins_ns.to_vec();
        self.save(&mut |word| words.push(word));
        words
    }
}

impl<M: Memory> Timetable<M> {
    pub(super) fn save(&self, to: &mut impl FnMut(u64)) {
        (!self.is_empty()).save(to);
        self.insns_per_ms.save(to);
        self.begin_ns.save(to);
    }
}

#[cfg(any(test, feature = "std"))]
impl<M: Memory> Timetable<M> {
    pub(super) fn load(
        from: &mut super::restored::Words<'_>,
        plan: &Plan<M>,
        rates: &Rates<M>,
    ) -> Result<Timetable<M>, super::restored::SnapshotError> {
        use super::restored::Restored;
        let wanted = bool::load(from)?;
        let mut timetable = Timetable::new(plan, rates, wanted)?;
        timetable.insns_per_ms = Restored::load(from)?;
        timetable.compute(plan, rates);
        timetable.begin_ns = Restored::load(from)?;
        Ok(timetable)
    }
}
