// SPDX-License-Identifier: GPL-2.0

//! Messages: edges of the plan that have a planned arrival (Leppert 2021, 1.4, 6.2.1).
//!
//! The sender is the task that an edge awaits, and the receiver is the task that waits.  The order
//! of tasks holds the receiver back ([`order`](super::order)); this file compares the moment at
//! which the message arrives with the planned one.  Both are moments on the clock, counted from
//! the moment at which the plan comes into force: a link takes time, and retires no instructions.
//!
//! A message is late if a process misses it: it waits for the message in its slot after the planned
//! arrival.  A message that nobody misses yet is not late, however late its sender is.  A message
//! is early if it ends a wait before the planned arrival.
//!
//! The planned arrivals belong to the plan and never change.  The receiving process has the level
//! that was reported, with the edge of the message and its planned arrival.  Each message and each
//! plan begin a new level: a plan that deals with a late message declares when the message arrives
//! now.  A plan in which the arrival is 0 declares no new one: the planned arrival and the level of
//! a message that was missed remain.  Plans that follow each other closely therefore do not hide a
//! message that never arrives.
//!
//! Everything here runs under the lock of the node and takes constant time.  The lateness is
//! checked at five moments: when the slot of the receiver begins, when the lateness reaches a level
//! in the slot, when the slot ends, when the wait is over, and, where slots float, when the turn of
//! the receiver comes.  Other decisions find nothing new.  A plan without messages costs one
//! comparison at each of these moments, and a process that does not wait costs nothing.

use super::config::Threshold;
use super::event::{Cause, Event, EventKind, Sink, Wait};
use super::fraction::fraction;
use super::level::FAILURE;
use super::memory::Memory;
use super::node::Node;
use super::wire::format;

impl<M: Memory> Node<M> {
    /// Checks t2_message of the message for which `p` waits, if its slot has come.
    #[inline]
    pub(super) fn check_awaited_message(&mut self, p: u32, now_ns: u64, sink: &mut impl Sink) {
        if self.plan.has_arrivals() {
            self.check_late_message(p, now_ns, sink);
        }
    }

    /// Checks t2_message and tm2_message of the message for which `p` has waited, and which has
    /// arrived.
    #[inline]
    pub(super) fn end_wait_for_message(&mut self, p: u32, now_ns: u64, sink: &mut impl Sink) {
        if self.plan.has_arrivals() {
            self.check_late_message(p, now_ns, sink);
            self.check_early_message(p, now_ns, sink);
        }
    }

    /// Sender, as process and task, of the message that the current task of `p` misses.  The edge
    /// may be one that `p` has not reached again since a plan took over.
    pub(super) fn missed_message_of(&self, p: u32) -> Option<(u32, u32)> {
        let run = self.processes.get(p).filter(|run| run.held)?;
        let is_ahead = (run.edge..self.plan.end_of_edges(p)).contains(&run.missed_edge);
        let edge = self.plan.edges.get(run.missed_edge as usize)?;
        if !is_ahead || edge.position != run.position {
            return None;
        }
        let sender = self.plan.predecessors.get(edge.predecessor as usize)?;
        Some((sender.id, edge.task))
    }

    /// Time until the planned arrival of the message for which `p` waits: a gap of the plan, and no
    /// idle time.
    pub(super) fn planned_gap_ns(&self, p: u32, now_ns: u64) -> u64 {
        let arrival_ns = self.awaited_arrival_ns(p);
        arrival_ns.map_or(0, |arrival_ns| arrival_ns.saturating_sub(now_ns))
    }

    /// Monotonic time at which the message that the owner of the present slot misses may reach the
    /// level that is reported next.  If only stress holds it back, that may be at the next nominal
    /// tick, when stress falls.
    #[inline]
    pub(super) fn next_message_check_ns(&self, now_ns: u64) -> u64 {
        if !self.plan.has_arrivals() {
            return u64::MAX;
        }
        let Some((arrival_ns, reported)) = self.missed_message(self.slot.owner()) else {
            return u64::MAX;
        };
        let Some(percent) = self.levels().find(|&percent| percent > reported) else {
            return u64::MAX;
        };
        let reached_ns = |stress| {
            let level_ns = self.message_level_ns(stress, percent);
            arrival_ns.saturating_add(level_ns).saturating_add(1)
        };
        let calm_ns = reached_ns(0);
        if calm_ns > now_ns {
            return calm_ns;
        }
        reached_ns(self.stress(now_ns)).min(self.next_tick_ns(now_ns))
    }

    /// Monotonic time at which the message for which `p` waits is planned to arrive.
    fn awaited_arrival_ns(&self, p: u32) -> Option<u64> {
        let run = self.processes.get(p).filter(|run| run.held)?;
        let installed_ns = self.status.installed_ns();
        match self.plan.arrival_ns(run.edge)? {
            0 if run.missed_edge == run.edge => Some(installed_ns.min(run.missed_arrival_ns)),
            arrival_ns => Some(installed_ns.saturating_add(arrival_ns)),
        }
    }

    /// Planned arrival of the message that `p` misses, and the level that was reported of it.
    fn missed_message(&self, p: u32) -> Option<(u64, u32)> {
        let arrival_ns = self.awaited_arrival_ns(p)?;
        let run = self.processes.get(p)?;
        // A postponed message is there.
        let misses = run.reported_wait == Wait::Task as u16
            && !run.postponed
            && self.policy.config.has(Threshold::T2Message);
        let reported = if run.missed_edge == run.edge {
            run.reported_message.into()
        } else {
            0
        };
        misses.then_some((arrival_ns, reported))
    }

    /// `percent` of t2_message, rounded down.
    fn message_level_ns(&self, stress: u64, percent: u32) -> u64 {
        let limit_ns = self.policy.config.t2_message_limit_ns(stress);
        fraction(limit_ns, percent.into(), FAILURE.into())
    }

    /// t2_message
    #[inline(never)]
    fn check_late_message(&mut self, p: u32, now_ns: u64, sink: &mut impl Sink) {
        let Some((arrival_ns, reported)) = self.missed_message(p) else {
            return;
        };
        self.note_missed(p, arrival_ns);
        let late_ns = now_ns.saturating_sub(arrival_ns);
        let stress = self.stress(now_ns);
        let exceeds = |&percent: &u32| late_ns > self.message_level_ns(stress, percent);
        let reached = self.levels().rev().find(exceeds);
        let Some(percent) = reached.filter(|&percent| percent > reported) else {
            return;
        };
        let kind = match percent {
            FAILURE => EventKind::Late,
            _ => EventKind::Info,
        };
        let event = Event {
            level_percent: percent,
            ..self.message_event(kind, p, late_ns, now_ns)
        };
        self.report(event, sink);
        if let Some(run) = self.processes.get_mut(p) {
            // At most `FAILURE`.
            run.reported_message = percent as u16;
            if run.copied {
                self.processes.note_change(p);
            }
        }
    }

    /// Notes the message that `p` misses, for the plan that follows.
    fn note_missed(&mut self, p: u32, arrival_ns: u64) {
        let Some(run) = self.processes.get_mut(p) else {
            return;
        };
        if run.missed_edge != run.edge {
            run.missed_edge = run.edge;
            run.missed_arrival_ns = arrival_ns;
            run.reported_message = 0;
            if run.copied {
                self.processes.note_change(p);
            }
        }
    }

    /// tm2_message
    #[inline(never)]
    fn check_early_message(&mut self, p: u32, now_ns: u64, sink: &mut impl Sink) {
        let early_ns = self.planned_gap_ns(p, now_ns);
        if self.policy.config.has(Threshold::Tm2Message)
            && early_ns > self.policy.config.tm2_message_ns
            && self.stress(now_ns) == 0
        {
            let event = self.message_event(EventKind::Early, p, early_ns, now_ns);
            self.report(event, sink);
        }
    }

    /// A signal about the message for which `p` waits, which deviates from its planned arrival by
    /// `ns`.  The signal names both ends.
    fn message_event(&self, kind: EventKind, p: u32, ns: u64, now_ns: u64) -> Event {
        let none = (format::IDLE, format::NO_TASK);
        let (sender, task) = self.waits_for(p).unwrap_or(none);
        Event {
            retired_insns: self.rates.cpu().to_insns(ns),
            value: u64::from(sender) << 32 | u64::from(task),
            ..self.signal(kind, Cause::Message, p, now_ns)
        }
    }
}
