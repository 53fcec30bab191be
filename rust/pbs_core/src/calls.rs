// SPDX-License-Identifier: GPL-2.0

//! Calls that report to a node what happened on its CPU.

use super::event::{EventKind, Grant, Sink};
use super::input::{Input, InputKind};
use super::memory::Memory;
use super::node::{recount, Node};
use super::policy::Policy;
use super::rate::Rate;
use super::run::{Presence, NOT_QUEUED};
use super::wire::format;

impl<M: Memory> Node<M> {
    /// `p` retired `insns` more instructions since it was last charged.
    ///
    /// They go to its current task, and to the present slot if `p` runs in it
    /// as its owner.  Charge before telling that a task ended.
    pub fn charge(&mut self, p: u32, insns: u64) {
        let Some(run) = self.runs.get_mut(p as usize) else {
            return;
        };
        if run.done || insns == 0 {
            return;
        }
        if !run.task_begun {
            self.begin_next_task(p);
            return self.charge(p, insns);
        }
        let (queued, copied) = (run.queued != NOT_QUEUED, run.copied);
        let before_insns = run.retired_insns;
        run.retired_insns = before_insns.saturating_add(insns);
        if run.is_late() {
            // Of what is kept of the processes together only the lateness changes: see `update`.
            let before_insns = run.lateness_at_insns(before_insns);
            let later_insns = run.lateness_insns().saturating_sub(before_insns);
            self.sums.add_lateness(later_insns);
            self.limit_idle();
        }
        if self.grant == Some(p) {
            let left_insns = &mut self.settled.left_insns;
            if *left_insns != u64::MAX {
                *left_insns = left_insns.saturating_sub(insns);
            }
            if self.reason == Grant::Slot {
                self.slot.count_insns = self.slot.count_insns.saturating_add(insns);
            }
        } else {
            // The lateness of the node may be another one.
            self.stands = false;
        }
        // Its lateness may have risen.
        if queued {
            self.requeue(p);
        }
        if copied {
            self.note_change(p);
        }
        self.note(move |node| Input {
            process: p,
            value: insns,
            more: node.runs.get(p as usize).map_or(0, |run| run.retired_insns),
            ..Input::of(InputKind::Charge)
        });
    }

    /// The threads of `p` came, went, blocked or woke.  Returns whether that may
    /// lead to another decision.
    pub fn set_presence(&mut self, p: u32, presence: Presence) -> bool {
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
        self.requeue(p);
        let granted = self.grant == Some(p);
        // Who has the CPU keeps it, unless it is `p` or fills the slot of `p`.
        let owns_slot = self.slot.begun && self.slot.owner == p;
        let matters = granted || self.grant.is_none() || owns_slot;
        self.stale |= matters;
        self.note(move |node| Input {
            process: p,
            reason: presence as u16,
            value: matters.into(),
            more: node.live.into(),
            ..Input::of(InputKind::Presence)
        });
        matters
    }

    /// The current task of `p` ended.  Returns the id of its next task, or
    /// `None` if that was the last.
    ///
    /// `p` need not be the one that is granted: a task may end on its way to
    /// the place where it waits.
    pub fn end_task(&mut self, p: u32, now_ns: u64, sink: &mut impl Sink) -> Option<u32> {
        if self.runs.get(p as usize)?.done {
            return None;
        }
        self.finish_task(p, true, now_ns, sink);
        let run = self.runs.get(p as usize)?;
        let next = (!run.done).then_some(run.task);
        if next.is_none() {
            let event = self.process_event(EventKind::ProcessEnded, p, now_ns);
            self.tell(event, sink);
        }
        self.note(move |node| Input {
            time_ns: now_ns,
            process: p,
            value: next.unwrap_or(format::NO_TASK).into(),
            more: node.sums.lateness_insns() as u64,
            ..Input::of(InputKind::EndTask)
        });
        next
    }

    /// A thread of `p` dies in its current task.  That ends by it, but not for
    /// those who wait for it, or for one after it: they are told that it is gone.
    /// Call it before telling that the task, or the process, ended.
    pub fn die(&mut self, p: u32) {
        if let Some(run) = self.runs.get_mut(p as usize) {
            run.died_in = run.died_in.min(run.task);
            let died_in = run.died_in;
            if run.copied {
                self.note_change(p);
            }
            self.note(move |_| Input {
                process: p,
                value: died_in.into(),
                ..Input::of(InputKind::Die)
            });
        }
    }

    /// The threads of `p` are gone for good: its current task ends if it has
    /// begun, and those after it never will.
    pub fn end_process(&mut self, p: u32, now_ns: u64, sink: &mut impl Sink) {
        let Some(&run) = self.runs.get(p as usize) else {
            return;
        };
        let count = self.plan.process(p).map_or(0, |process| process.count);
        if !run.done && run.task_begun {
            let is_last = run.position.saturating_add(1) == count;
            self.finish_task(p, is_last, now_ns, sink);
        }
        self.change(p, |run| {
            run.presence = Presence::Absent;
            run.done = true;
        });
        self.stop_waiting(p);
        self.tell_successors(p, sink);
        // Otherwise its end was told with that of its last task.
        if !run.done {
            let position = self.runs.get(p as usize).map_or(0, |run| run.position);
            let mut event = self.process_event(EventKind::ProcessEnded, p, now_ns);
            event.value = u64::from(count.saturating_sub(position));
            self.tell(event, sink);
        }
        self.note(move |node| Input {
            time_ns: now_ns,
            process: p,
            value: node.unfinished.into(),
            more: node.sums.lateness_insns() as u64,
            ..Input::of(InputKind::EndProcess)
        });
    }

    /// The CPU has another rate, unless the plan says one; the present slot keeps
    /// the bounds it has.
    pub fn set_rate(&mut self, rate: Rate) {
        self.rate = self.plan.rate(rate);
        self.policy = Policy::new(self.policy.config, self.rate);
        // What was looked at was compared with other thresholds.
        self.sums.advance();
        self.stands = false;
        self.note(move |node| Input {
            value: rate.insns_per_ms(),
            more: node.rate.insns_per_ms(),
            ..Input::of(InputKind::Rate)
        });
    }

    /// Counts an event that the user of the node emitted itself; before it,
    /// call [`Node::tell_untold`].
    pub fn count(&mut self, kind: EventKind) {
        self.counts.count(kind);
        self.note(move |node| Input {
            reason: kind as u16,
            value: node.counts.get(kind),
            ..Input::of(InputKind::Count)
        });
    }

    /// The current task of `p` ends; `complete`: by itself, not because its
    /// process was cut short, which is no earliness.
    fn finish_task(&mut self, p: u32, complete: bool, now_ns: u64, sink: &mut impl Sink) {
        self.tell_untold_before(sink);
        // A task that nobody has looked at since it turned late.
        self.watch(p, now_ns, sink);
        let Some(run) = self.runs.get(p as usize) else {
            return;
        };
        let (retired_insns, planned_insns) = (run.retired_insns, run.planned_insns);
        let in_net = run.in_net;
        let next = run.position.saturating_add(1);
        self.update_task(p, |run| {
            run.begun = true;
            run.finish_task();
        });
        let mut event = self.process_event(EventKind::TaskEnded, p, now_ns);
        event.retired_insns = retired_insns;
        self.tell(event, sink);
        if complete && retired_insns < planned_insns {
            self.watch_early(p, planned_insns, retired_insns, now_ns, sink);
        }
        if self.slot.spared_insns != 0 {
            self.spare_no_longer(p);
        }
        let place = self.plan.place(p, next);
        if place.is_none() {
            self.change(p, |run| run.move_to(next, place));
        } else {
            // What it adds to the sums is the same before the next task as after the one that
            // ended.
            self.stands = false;
            if let Some(run) = self.runs.get_mut(p as usize) {
                run.move_to(next, place);
            }
            self.requeue(p);
        }
        if in_net {
            self.end_in_net(p, now_ns, sink);
        }
    }
}
