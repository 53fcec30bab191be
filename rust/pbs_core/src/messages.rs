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
//! A task with several messages waits for one of them at a time.  It misses the messages of the
//! [`EDGES_BEHIND`] edges behind that one, too: each is signalled once, when it is late by
//! t2_message, and without information on the way there.
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
//! the receiver comes.  Other decisions find nothing new.  Where slots float, a process that waits
//! has no slot whose clock could be watched: a message that is not late yet when the turn of its
//! receiver comes is signalled when it arrives, and a message that never arrives is not.  A plan
//! without messages costs one comparison at each of these moments, and a process that does not
//! wait costs nothing.

use super::config::Threshold;
use super::event::{Cause, Event, EventKind, Sink, Wait};
use super::fraction::fraction;
use super::level::FAILURE;
use super::memory::Memory;
use super::node::Node;
use super::run::Run;
use super::wire::format;

/// Number of edges behind the awaited one whose messages a task misses, too.
const EDGES_BEHIND: u32 = 8;

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
        let receiver = self.slot.owner();
        let awaited = self
            .missed_message(receiver)
            .and_then(|(arrival_ns, reported)| {
                let percent = self.levels().find(|&percent| percent > reported)?;
                Some(self.next_level_ns(arrival_ns, percent, now_ns))
            });
        let behind = self
            .missed_behind(receiver)
            .map(|(_, arrival_ns)| self.next_level_ns(arrival_ns, FAILURE, now_ns));
        awaited.into_iter().chain(behind).min().unwrap_or(u64::MAX)
    }

    /// Monotonic time at which a message that was planned to arrive at `arrival_ns` may reach that
    /// level of lateness.
    fn next_level_ns(&self, arrival_ns: u64, percent: u32, now_ns: u64) -> u64 {
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
        self.planned_arrival_ns(run, run.edge)
    }

    /// Monotonic time at which the message of an edge of the current task is planned to arrive.
    fn planned_arrival_ns(&self, run: &Run, edge: u32) -> Option<u64> {
        let installed_ns = self.status.installed_ns();
        match self.plan.arrival_ns(edge)? {
            0 if run.missed_edge == edge => Some(installed_ns.min(run.missed_arrival_ns)),
            arrival_ns => Some(installed_ns.saturating_add(arrival_ns)),
        }
    }

    /// Whether the process misses messages: it waits, and its slot has come.
    fn misses(&self, run: &Run) -> bool {
        // A postponed message is there.
        run.held
            && run.reported_wait == Wait::Task as u16
            && !run.postponed
            && self.policy.config.has(Threshold::T2Message)
    }

    /// Planned arrival of the message that `p` misses, and the level that was reported of it.
    fn missed_message(&self, p: u32) -> Option<(u64, u32)> {
        let arrival_ns = self.awaited_arrival_ns(p)?;
        let run = self.processes.get(p).filter(|run| self.misses(run))?;
        let reported = if run.missed_edge == run.edge {
            run.reported_message.into()
        } else {
            run.reported_behind()
        };
        Some((arrival_ns, reported))
    }

    /// Edges behind the one at which `p` waits, whose messages it may miss, with their planned
    /// arrivals.  Each is returned until it was checked.
    fn missed_behind(&self, p: u32) -> impl Iterator<Item = (u32, u64)> + '_ {
        let run = self.processes.get(p).filter(|run| self.misses(run));
        let first = run.map_or(u32::MAX, |run| run.edge.saturating_add(1));
        let end = self.plan.end_of_edges(p);
        let edges = first..end.min(first.saturating_add(EDGES_BEHIND));
        edges.filter_map(move |number| {
            let edge = self.plan.edges.get(number as usize)?;
            let run = run.filter(|run| edge.position == run.position)?;
            if self.plan.arrival_ns(number) == Some(0) && run.missed_edge != number {
                // The plan knows that it is late.
                return None;
            }
            let arrival_ns = self.planned_arrival_ns(run, number)?;
            (!run.is_checked(number)).then_some((number, arrival_ns))
        })
    }

    /// `percent` of t2_message, rounded down.
    fn message_level_ns(&self, stress: u64, percent: u32) -> u64 {
        let limit_ns = self.policy.config.t2_message_limit_ns(stress);
        fraction(limit_ns, percent.into(), FAILURE.into())
    }

    /// t2_message
    #[inline(never)]
    fn check_late_message(&mut self, p: u32, now_ns: u64, sink: &mut impl Sink) {
        self.check_late_behind(p, now_ns, sink);
        self.check_late_awaited(p, now_ns, sink);
    }

    /// t2_message of the messages behind the one for which `p` waits.
    fn check_late_behind(&mut self, p: u32, now_ns: u64, sink: &mut impl Sink) {
        let limit_ns = self.message_level_ns(self.stress(now_ns), FAILURE);
        let is_late = |&(_, arrival_ns): &(u32, u64)| now_ns.saturating_sub(arrival_ns) > limit_ns;
        for _ in 0..EDGES_BEHIND {
            let late = self.missed_behind(p).find(is_late);
            let Some((number, arrival_ns)) = late else {
                return;
            };
            let late_ns = now_ns.saturating_sub(arrival_ns);
            self.check_message_behind(p, number, late_ns, now_ns, sink);
        }
    }

    /// Reports the message of an edge behind the awaited one as late, unless it is there.
    fn check_message_behind(
        &mut self,
        p: u32,
        number: u32,
        late_ns: u64,
        now_ns: u64,
        sink: &mut impl Sink,
    ) {
        let Some(edge) = self.plan.edges.get(number as usize).copied() else {
            return;
        };
        let mut ended = self.progress_of(edge.predecessor);
        if !ended.has(edge.task) && self.is_elsewhere(edge.predecessor) {
            ended = self.ask_elsewhere(edge.predecessor, edge.task, sink);
        }
        if let Some(run) = self.processes.get_mut(p) {
            run.check_edge(number);
        }
        let sender = self.plan.predecessors.get(edge.predecessor as usize);
        let Some(sender) = sender.filter(|_| !ended.has(edge.task)) else {
            return;
        };
        let ends = (sender.id, edge.task);
        let event = self.message_event(EventKind::Late, p, ends, late_ns, now_ns);
        self.report(event, sink);
    }

    /// t2_message of the message for which `p` waits.
    fn check_late_awaited(&mut self, p: u32, now_ns: u64, sink: &mut impl Sink) {
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
            ..self.message_event(kind, p, self.sender_of(p), late_ns, now_ns)
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
            if run.reported_message == FAILURE as u16 {
                // A message behind this one, which was missed under the plan before.
                run.check_edge(run.missed_edge);
            }
            run.missed_edge = run.edge;
            run.missed_arrival_ns = arrival_ns;
            run.reported_message = run.reported_behind() as u16;
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
            let ends = self.sender_of(p);
            let event = self.message_event(EventKind::Early, p, ends, early_ns, now_ns);
            self.report(event, sink);
        }
    }

    /// Sender, as process and task, of the message for which `p` waits.
    fn sender_of(&self, p: u32) -> (u32, u32) {
        let none = (format::IDLE, format::NO_TASK);
        self.waits_for(p).unwrap_or(none)
    }

    /// A signal about a message from `sender` to `p`, which deviates from its planned arrival by
    /// `ns`.  The signal names both ends.
    fn message_event(
        &self,
        kind: EventKind,
        p: u32,
        (sender, task): (u32, u32),
        ns: u64,
        now_ns: u64,
    ) -> Event {
        Event {
            retired_insns: self.rates.cpu().to_insns(ns),
            value: u64::from(sender) << 32 | u64::from(task),
            ..self.signal(kind, Cause::Message, p, now_ns)
        }
    }
}
