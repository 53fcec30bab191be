// SPDX-License-Identifier: GPL-2.0

//! Run states of the processes of a node, and what is derived from them.

use super::changed::Changed;
use super::heap::NOT_QUEUED;
use super::idle_time::IdleTime;
use super::memory::{Memory, NoMemory};
use super::plan::Plan;
use super::rate::Rate;
#[cfg(any(test, feature = "std"))]
use super::restored::{Restored, SnapshotError, Words};
use super::run::{Presence, Run};
use super::sums::{Share, Sums};
use super::words::Saved;

/// The processes of a node, by their index in the plan.
pub(super) struct Processes<M: Memory> {
    runs: M::Slice<Run>,
    /// Sums over the active processes.
    sums: Sums,
    /// Idle time that lessens their earliness.
    idle: IdleTime,
    /// Number of processes that are present and not done.
    live: u32,
    /// Number of processes that are not done.
    unfinished: u32,
    /// Processes that changed since they were copied for the next plan.
    changed: Changed<M>,
}

impl<M: Memory> Processes<M> {
    /// The processes of `plan`, all absent and before their first task.
    pub(super) fn new(plan: &Plan<M>) -> Result<Processes<M>, NoMemory> {
        let count = plan.processes.len();
        let mut runs = M::alloc(count, Run::NEW)?;
        for (run, index) in runs.iter_mut().zip(0..) {
            *run = Run::at(plan, index, 0);
        }
        Ok(Processes {
            runs,
            sums: Sums::ZERO,
            idle: IdleTime::NONE,
            live: 0,
            unfinished: count as u32,
            changed: Changed::new(count)?,
        })
    }

    pub(super) fn get(&self, p: u32) -> Option<&Run> {
        self.runs.get(p as usize)
    }

    /// The state of `p`, for a change from which nothing else is derived.
    pub(super) fn get_mut(&mut self, p: u32) -> Option<&mut Run> {
        self.runs.get_mut(p as usize)
    }

    pub(super) fn runs(&self) -> &[Run] {
        &self.runs
    }

    pub(super) fn runs_mut(&mut self) -> &mut [Run] {
        &mut self.runs
    }

    pub(super) fn len(&self) -> usize {
        self.runs.len()
    }

    pub(super) fn sums(&self) -> &Sums {
        &self.sums
    }

    pub(super) fn idle(&self) -> &IdleTime {
        &self.idle
    }

    pub(super) fn live(&self) -> u32 {
        self.live
    }

    pub(super) fn unfinished(&self) -> u32 {
        self.unfinished
    }

    /// Changes the state of `p`, and updates what is derived from it.
    pub(super) fn update(&mut self, p: u32, change: impl FnOnce(&mut Run)) {
        let Some(run) = self.get(p) else {
            return;
        };
        let (live, unfinished) = (run.is_live(), !run.done);
        self.update_task(p, change);
        if let Some(run) = self.runs.get(p as usize) {
            self.live = recount(self.live, live, run.is_live());
            self.unfinished = recount(self.unfinished, unfinished, !run.done);
        }
    }

    /// Like [`update`](Processes::update), for a change that leaves `p` as present
    /// and as done as it was.
    #[inline(always)]
    pub(super) fn update_task(&mut self, p: u32, change: impl FnOnce(&mut Run)) {
        let Some(run) = self.runs.get_mut(p as usize) else {
            return;
        };
        let share = Share::of(run);
        change(run);
        let copied = run.copied;
        self.sums.replace(&share, &Share::of(run));
        self.idle.limit(|| self.sums.early_insns());
        if copied {
            self.note_change(p);
        }
    }

    /// Begins the current task of `p`, if it has not begun.
    #[inline(always)]
    pub(super) fn begin_task(&mut self, p: u32) {
        if self.get(p).is_some_and(|run| !run.task_begun) {
            self.begin_next_task(p);
        }
    }

    #[inline(never)]
    fn begin_next_task(&mut self, p: u32) {
        match self.runs.get_mut(p as usize) {
            Some(run) if run.is_active() => {
                // Nothing else of its share in the sums changes.
                let before_insns = run.begun_insns();
                run.task_begun = true;
                self.sums.begin_task(run.begun_insns() - before_insns);
                if run.copied {
                    self.note_change(p);
                }
            }
            _ => self.update_task(p, |run| {
                run.begun = true;
                run.task_begun = true;
            }),
        }
    }

    /// Adds `insns` to the current task of `p`.  Returns whether `p` is in the queue
    /// of candidates, where its place may change; `None` if nothing was added.
    #[inline(always)]
    pub(super) fn retire(&mut self, p: u32, insns: u64) -> Option<bool> {
        let run = self.runs.get_mut(p as usize)?;
        if run.done || insns == 0 {
            return None;
        }
        if !run.task_begun {
            self.begin_next_task(p);
        }
        let run = self.runs.get_mut(p as usize)?;
        let (queued, copied) = (run.queued != NOT_QUEUED, run.copied);
        let before_insns = run.retired_insns;
        run.retired_insns = before_insns.saturating_add(insns);
        if run.is_late() {
            // Only the lateness of the sums changes: see `update`.
            let before_insns = run.lateness_at_insns(before_insns);
            let later_insns = run.lateness_insns().saturating_sub(before_insns);
            self.sums.add_lateness(later_insns);
            self.idle.limit(|| self.sums.early_insns());
        }
        if copied {
            self.note_change(p);
        }
        Some(queued)
    }

    /// Sets the presence of `p`.  Returns whether it is another one than before.
    #[inline(always)]
    pub(super) fn set_presence(&mut self, p: u32, presence: Presence) -> bool {
        let Some(run) = self.runs.get_mut(p as usize) else {
            return false;
        };
        if run.presence == presence {
            return false;
        }
        let live = run.is_live();
        let before = core::mem::replace(&mut run.presence, presence);
        if [before, presence].contains(&Presence::Absent) {
            self.live = recount(self.live, live, run.is_live());
        }
        if run.copied {
            self.note_change(p);
        }
        true
    }

    /// Raises the peaks of `p` to a sample of its memory.  Returns whether the sample changes the
    /// memory with which `p` counts; `None` if there is no such process.
    pub(super) fn sample_memory(&mut self, p: u32, vm_bytes: u64, rss_bytes: u64) -> Option<bool> {
        let run = self.runs.get_mut(p as usize)?;
        let mut is_new = false;
        let before_bytes = run.process_peak.rss_bytes;
        run.process_peak.raise(vm_bytes, rss_bytes);
        if !run.done {
            run.peak.raise(vm_bytes, rss_bytes);
        }
        let more_bytes = run.process_peak.rss_bytes - before_bytes;
        if run.is_active() {
            // The first sample under a plan may exceed what the plan has for the process.
            is_new = !core::mem::replace(&mut run.sampled, true) || more_bytes != 0;
            if more_bytes != 0 {
                self.sums.add_memory(more_bytes);
            }
        }
        if run.copied {
            self.note_change(p);
        }
        Some(is_new)
    }

    /// Makes all cached checks of thresholds invalid.
    pub(super) fn invalidate_checks(&mut self) {
        self.sums.advance();
    }

    /// Idle instructions at `plan_ns`, on a CPU of that rate.
    pub(super) fn idle_insns_at(&self, plan_ns: u64, rate: Rate) -> u64 {
        self.idle.insns_at(plan_ns, rate, self.sums.early_insns())
    }

    /// Counts as idle the time up to `plan_ns` in which the plan waited for its
    /// processes.
    pub(super) fn count_idle(&mut self, plan_ns: u64, rate: Rate) {
        self.idle.set(self.idle_insns_at(plan_ns, rate));
    }

    /// Takes over the idle instructions of the plan before.
    pub(super) fn set_idle(&mut self, insns: u64) {
        self.idle.set(insns.min(self.sums.early_insns()));
    }

    /// Notes that the plan has been waiting for its processes since that plan time; `None`: it is
    /// not waiting.
    pub(super) fn wait_since(&mut self, plan_ns: Option<u64>) {
        self.idle.wait_since(plan_ns);
    }

    /// Notes that `p` was copied for the next plan.
    pub(super) fn note_copy(&mut self, p: u32) {
        if let Some(run) = self.get_mut(p) {
            run.copied = true;
        }
    }

    /// Notes that `p`, which was copied for the next plan, changes.
    #[cold]
    pub(super) fn note_change(&mut self, p: u32) {
        let Some(run) = self.runs.get_mut(p as usize) else {
            return;
        };
        run.copied = false;
        if !core::mem::replace(&mut run.noted, true) {
            self.changed.push(p);
        }
    }

    /// Number of processes that changed since they were copied.
    pub(super) fn changes(&self) -> usize {
        self.changed.len()
    }

    /// Takes one of the processes that changed since they were copied.
    pub(super) fn take_changed(&mut self) -> Option<u32> {
        let p = self.changed.pop()?;
        if let Some(run) = self.get_mut(p) {
            run.noted = false;
        }
        Some(p)
    }

    #[cfg(test)]
    pub(super) fn has_changed(&self, p: u32) -> bool {
        self.changed.contains(p)
    }

    /// Counts more processes as unfinished than there are.
    #[cfg(test)]
    pub(super) fn break_counts(&mut self) {
        self.unfinished += 9;
    }

    /// Makes the counts contradict each other, for tests.
    pub(super) fn contradict(&mut self) {
        self.live = self.unfinished.saturating_add(1);
    }
}

/// A number of processes after one of them changed from `before` to `after`.
fn recount(count: u32, before: bool, after: bool) -> u32 {
    count
        .saturating_add(after.into())
        .saturating_sub(before.into())
}

impl<M: Memory> Processes<M> {
    /// Saves what is neither about one process nor a sum.
    pub(super) fn save_derived(&self, to: &mut impl FnMut(u64)) {
        self.sums.progress().save(to);
        self.idle.save(to);
    }
}

#[cfg(any(test, feature = "std"))]
impl<M: Memory> Processes<M> {
    pub(super) fn load_derived(&mut self, from: &mut Words<'_>) -> Result<(), SnapshotError> {
        self.sums = Sums::ZERO.at_progress(Restored::load(from)?);
        self.idle = Restored::load(from)?;
        Ok(())
    }

    /// Computes the sums and counts of all processes.
    pub(super) fn derive(&mut self) {
        let mut sums = Sums::ZERO;
        let runs = self.runs.iter();
        runs.for_each(|run| sums.replace(&Share::NONE, &Share::of(run)));
        self.sums = sums.at_progress(self.sums.progress());
        let count = |is: fn(&Run) -> bool| self.runs.iter().filter(|run| is(run)).count() as u32;
        self.live = count(Run::is_live);
        self.unfinished = count(|run| !run.done);
    }
}
