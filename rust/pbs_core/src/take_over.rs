// SPDX-License-Identifier: GPL-2.0

//! A new plan takes over from the one before.

use super::run::Run;
use super::signals::Level;
use super::windows::Windows;
use super::{Fault, Memory, Node, Refusal};

impl<M: Memory> Node<M> {
    /// The plan comes into force at `now_ns`.  Call it once, before anything
    /// else, if that is not when the node was made; takes O(processes · log
    /// tasks).
    ///
    /// It takes over from `old` the processes that are in both plans, the
    /// rhythm of the windows, and the counts of events.
    ///
    /// A process keeps its presence, its account of lateness and its peaks.  It
    /// goes on with the first task of the new plan whose id is not less than
    /// that of its current task; if it is the same task, that keeps its counts.
    /// A process that the new plan leaves no task is done.
    ///
    /// If `old` has ended and the plan is no answer (`dealt_seq` is 0), a
    /// process that was done in it begins afresh: the same plan can be run
    /// again and again.
    ///
    /// The plan deals with the prediction failures whose events have a number
    /// less than the greatest `dealt_seq` that there was.  Where t2_process was
    /// told of a process, that process begins a new account; where t2_node or
    /// tm2_node was told, all do.  Where t2_preemptions was told of a task, its
    /// preemptions count from 0; where t2_task was, it is not told again if the
    /// task is beyond that of the new plan, too.  Whatever else was told is told
    /// again if it still is so.  Stress is reset.
    pub fn begin(&mut self, old: Option<&Node<M>>, dealt_seq: u64, now_ns: u64) {
        self.installed_ns = now_ns;
        self.windows = Windows::new(&self.config, now_ns);
        self.dealt_seq = dealt_seq;
        let Some(old) = old else {
            return;
        };
        let again = old.runs_again(dealt_seq);
        let dealt_seq = dealt_seq.max(old.dealt_seq);
        self.dealt_seq = dealt_seq;
        self.windows.take_over(&old.windows);
        self.counts = old.counts;
        let node_dealt = old.told_late.is_dealt(dealt_seq) || old.told_early.is_dealt(dealt_seq);
        let mut idle_insns = 0;
        if !node_dealt && !again {
            self.told_late = old.told_late.reopened();
            self.told_early = old.told_early.reopened();
            if self.config.idle_is_lateness != 0 {
                let mut windows = old.windows;
                windows.advance(now_ns);
                idle_insns = old.idle_insns_at(windows.plan_ns(now_ns));
            }
        }
        for index in 0..self.runs.len() as u32 {
            let same = self.plan.process(index).and_then(|p| old.plan.find(p.id));
            let Some((from, &old_run)) = same.and_then(|p| Some((p, old.runs.get(p as usize)?)))
            else {
                continue;
            };
            let mut run = self.resume(index, old, from, &old_run, again);
            if node_dealt || run.told.process.is_dealt(dealt_seq) {
                run.begin_account();
                run.told.process = Level::NOTHING;
            }
            if run.told.preemptions.is_dealt(dealt_seq) {
                run.preemptions = 0;
                run.told.preemptions = Level::NOTHING;
            }
            if run.told.task.is_dealt(dealt_seq) {
                let late = run.retired_insns > self.config.t2_task_insns(run.planned_insns);
                run.told.task = if late {
                    old_run.told.task.silenced()
                } else {
                    Level::NOTHING
                };
            }
            self.change(index, |place| *place = run);
        }
        self.idle_insns = idle_insns.min(self.early_insns());
    }

    /// Does a plan that deals with the events before `dealt_seq` begin a new
    /// run, in which the processes of this one run again?  One that deals with
    /// anything is an answer to this run, even if it has ended meanwhile.
    fn runs_again(&self, dealt_seq: u64) -> bool {
        self.plan_ended && dealt_seq == 0
    }

    /// The state in which the process `index` goes on that was `from` in `old`.
    fn resume(&self, index: u32, old: &Node<M>, from: u32, old_run: &Run, again: bool) -> Run {
        let mut run = Run {
            presence: old_run.presence,
            ..self.runs.get(index as usize).copied().unwrap_or(Run::NEW)
        };
        if old_run.done && again {
            return run;
        }
        run.begun = old_run.begun;
        run.account = old_run.account;
        run.process_peak = old_run.process_peak;
        let task = old.next_task(from);
        run.move_to(&self.plan, index, self.plan.position_of(index, task));
        if run.position != 0 {
            run.rest_insns = self.plan.rest_insns(index, run.position);
        }
        run.told.process = old_run.told.process.reopened();
        if !run.done && !old_run.done && run.task == task {
            run.task_begun = old_run.task_begun;
            run.retired_insns = old_run.retired_insns;
            run.preemptions = old_run.preemptions;
            run.peak = old_run.peak;
            run.told.task = old_run.told.task.reopened();
            run.told.preemptions = old_run.told.preemptions.reopened();
        } else if !old_run.done {
            run.account = old_run.account_without_task();
        }
        run
    }

    /// The first task of process `p` that has not ended, by its id.
    fn next_task(&self, p: u32) -> u32 {
        let position = self.runs.get(p as usize).map_or(0, |run| run.position);
        let task = |position| {
            let number = self.plan.own_slot(p, position)?;
            self.plan.slot(number).map(|slot| slot.task)
        };
        task(position).unwrap_or_else(|| {
            task(position.saturating_sub(1)).map_or(0, |last| last.saturating_add(1))
        })
    }

    /// Refuses to follow `old` if the plan has a process that has ended and
    /// gives it nothing more to do: whoever made it has not heard of its end.
    pub fn check_over(&self, old: &Node<M>, dealt_seq: u64) -> Result<(), Refusal> {
        if old.runs_again(dealt_seq) {
            return Ok(());
        }
        for (process, index) in self.plan.processes().iter().zip(0..) {
            let Some(from) = old.plan.find(process.id) else {
                continue;
            };
            let ended = old.runs.get(from as usize).is_some_and(|run| run.done);
            let rest = self.plan.position_of(index, old.next_task(from));
            if ended && rest == process.count {
                return Err(Fault::ProcessEnded {
                    process: process.id,
                }
                .nowhere());
            }
        }
        Ok(())
    }
}
