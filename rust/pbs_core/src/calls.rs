// SPDX-License-Identifier: GPL-2.0

//! Calls that report to a node what happened on its CPU.

use super::event::{Cause, EventKind, Grant, Sink};
use super::input::{Input, InputKind};
use super::memory::Memory;
use super::node::Node;
use super::policy::Policy;
use super::rate::Rate;
use super::run::Presence;
use super::wire::format;

impl<M: Memory> Node<M> {
    /// `p` retired `insns` more instructions since it was last charged.
    ///
    /// They go to its current task, and to the present slot if `p` runs in it
    /// as its owner.  Charge before reporting the end of a task.
    pub fn charge(&mut self, p: u32, insns: u64) {
        let Some(queued) = self.processes.retire(p, insns) else {
            return;
        };
        if self.grant.is(p) {
            self.standing.retire(insns);
            if self.grant.reason() == Grant::Slot {
                self.slot.retire(insns);
            }
        } else {
            // The lateness of the node may have changed.
            self.standing.revoke();
        }
        // The lateness of the process may have risen.
        if queued {
            self.requeue(p);
        }
        self.note(move |node| Input {
            process: p,
            value: insns,
            more: node.processes.get(p).map_or(0, |run| run.retired_insns),
            ..Input::of(InputKind::Charge)
        });
    }

    /// Reports that threads of `p` arrived, left, blocked or woke.  Returns whether that may lead
    /// to another decision.
    pub fn set_presence(&mut self, p: u32, presence: Presence) -> bool {
        if !self.processes.set_presence(p, presence) {
            return false;
        }
        self.requeue(p);
        // The granted process keeps the CPU, unless it is `p` or fills the slot of `p`.
        let granted = self.grant.process();
        let comes_first = |granted| self.floats() && self.floating.before(p, granted);
        let matters = granted.is_none_or(|granted| granted == p || comes_first(granted))
            || self.slot.is_of(p);
        self.standing.set_stale(matters);
        self.note(move |node| Input {
            process: p,
            reason: presence as u16,
            value: matters.into(),
            more: node.processes.live().into(),
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
        if self.processes.get(p)?.done {
            return None;
        }
        self.finish_task(p, true, now_ns, sink);
        let run = self.processes.get(p)?;
        let next = (!run.done).then_some(run.task);
        if next.is_none() {
            let event = self.process_event(EventKind::ProcessEnded, p, now_ns);
            self.report(event, sink);
        }
        self.note(move |node| Input {
            time_ns: now_ns,
            process: p,
            value: next.unwrap_or(format::NO_TASK).into(),
            more: node.processes.sums().lateness_insns() as u64,
            ..Input::of(InputKind::EndTask)
        });
        next
    }

    /// A thread of `p` dies in its current task.  The task ends by that, but not for the
    /// processes that wait for it or for a later one: to them the process is gone.
    /// Call this before reporting the end of the task or the process.
    pub fn die(&mut self, p: u32) {
        if let Some(run) = self.processes.get_mut(p) {
            run.died_in = run.died_in.min(run.task);
            let died_in = run.died_in;
            if run.copied {
                self.processes.note_change(p);
            }
            self.note(move |_| Input {
                process: p,
                value: died_in.into(),
                ..Input::of(InputKind::Die)
            });
        }
    }

    /// Whether a thread of `p` was killed in a task.
    fn has_died(&self, p: u32) -> bool {
        let run = self.processes.get(p);
        run.is_some_and(|run| run.died_in != format::NO_TASK)
    }

    /// The threads of `p` are gone for good: its current task ends if it has
    /// begun, and those after it never will.
    pub fn end_process(&mut self, p: u32, now_ns: u64, sink: &mut impl Sink) {
        let Some(&run) = self.processes.get(p) else {
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
        if self.floats() {
            self.move_on(p);
        }
        self.notify_successors(p, sink);
        // Otherwise the end of its last task reported its end.
        if !run.done {
            let position = self.processes.get(p).map_or(0, |run| run.position);
            let mut event = self.process_event(EventKind::ProcessEnded, p, now_ns);
            event.value = u64::from(count.saturating_sub(position));
            self.report(event, sink);
        }
        self.note(move |node| Input {
            time_ns: now_ns,
            process: p,
            value: node.processes.unfinished().into(),
            more: node.processes.sums().lateness_insns() as u64,
            ..Input::of(InputKind::EndProcess)
        });
    }

    /// The CPU has another rate, unless the plan declares one; the present slot keeps
    /// the bounds it has.
    pub fn set_rate(&mut self, rate: Rate) {
        self.rates.set_cpu(&self.plan, rate);
        self.policy = Policy::new(self.policy.config, self.rates.cpu());
        self.use_measured_reschedule_time();
        // The cached checks compared with other thresholds.
        self.processes.invalidate_checks();
        self.standing.revoke();
        self.note(move |node| Input {
            value: rate.insns_per_ms(),
            more: node.rates.cpu().insns_per_ms(),
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

    /// Ends the current task of `p`.  `complete`: the task ended by itself.  A task that ended
    /// because its process was cut short is not early.
    fn finish_task(&mut self, p: u32, complete: bool, now_ns: u64, sink: &mut impl Sink) {
        self.report_pending_grant(sink);
        // The task may not have been checked since it turned late.
        self.check_lateness(p, now_ns, sink);
        let Some(run) = self.processes.get(p) else {
            return;
        };
        let (retired_insns, planned_insns) = (run.retired_insns, run.planned_insns);
        let in_net = run.in_net;
        let next = run.position.saturating_add(1);
        self.processes.update_task(p, |run| {
            run.begun = true;
            run.finish_task();
        });
        let mut event = self.process_event(EventKind::TaskEnded, p, now_ns);
        event.retired_insns = retired_insns;
        self.report(event, sink);
        if complete && retired_insns < planned_insns {
            self.check_earliness(p, planned_insns, retired_insns, now_ns, sink);
        }
        if complete && self.policy.config.timeliness_ns != 0 && !self.has_died(p) {
            self.check_timeliness(Cause::End, p, retired_insns, now_ns, sink);
        }
        self.slot.end_sparing(p);
        let place = self.plan.place(p, next);
        if place.is_none() {
            self.change(p, |run| run.move_to(next, place));
        } else {
            // Its share in the sums is the same before the next task as after the one that
            // ended.
            self.standing.revoke();
            if let Some(run) = self.processes.get_mut(p) {
                run.move_to(next, place);
            }
            self.requeue(p);
        }
        if self.floats() {
            self.move_on(p);
        }
        if in_net {
            self.end_in_net(p, now_ns, sink);
        }
    }
}
