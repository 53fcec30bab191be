// SPDX-License-Identifier: GPL-2.0

//! A new plan takes over from the one before.

use super::run::Run;
use super::{Memory, Node};

impl<M: Memory> Node<M> {
    /// Takes over from `old` the processes that are in both plans, the rhythm
    /// of the windows, and the counts of events.  Call it once, before anything
    /// else, on a new node; takes O(processes · log tasks).
    ///
    /// A process keeps its presence, its lateness and its peaks.  It goes on
    /// with the first task of the new plan whose id is not less than that of
    /// its current task; if it is the same task, that keeps its counts.  A
    /// process that the new plan leaves no task is done.
    ///
    /// If `old` has ended, a process that was done in it begins afresh: the
    /// same plan can be run again and again.
    pub fn take_over(&mut self, old: &Node<M>) {
        self.windows.take_over(&old.windows);
        self.counts = old.counts;
        for index in 0..self.runs.len() as u32 {
            let same = self.plan.process(index).and_then(|p| old.plan.find(p.id));
            let Some((from, &old_run)) = same.and_then(|p| Some((p, old.runs.get(p as usize)?)))
            else {
                continue;
            };
            let run = self.resume(index, old, from, &old_run);
            self.change(index, |place| *place = run);
        }
    }

    /// The state in which the process `index` goes on that was `from` in `old`.
    fn resume(&self, index: u32, old: &Node<M>, from: u32, old_run: &Run) -> Run {
        let mut run = Run {
            presence: old_run.presence,
            ..Run::NEW
        };
        if old_run.done && old.plan_ended {
            run.move_to(&self.plan, index, 0);
            return run;
        }
        run.begun = old_run.begun;
        run.finished_insns = old_run.finished_insns;
        run.process_peak = old_run.process_peak;
        // The first task that has not ended, by its id.
        let task = match old.plan.own_slot(from, old_run.position) {
            Some(number) => old.plan.slot(number).map_or(0, |slot| slot.task),
            None => {
                let last = old.plan.own_slot(from, old_run.position.saturating_sub(1));
                let last = last.and_then(|number| old.plan.slot(number));
                last.map_or(0, |slot| slot.task.saturating_add(1))
            }
        };
        run.move_to(&self.plan, index, self.plan.position_of(index, task));
        if !run.done && !old_run.done && run.task == task {
            run.task_begun = old_run.task_begun;
            run.retired_insns = old_run.retired_insns;
            run.preemptions = old_run.preemptions;
            run.peak = old_run.peak;
        }
        run
    }
}
