// SPDX-License-Identifier: GPL-2.0

//! The order of tasks: a task with edges is held back until the tasks of other processes that the
//! edges name have ended.
//!
//! A process that is held waits at one edge at a time, the first whose task has not ended;
//! therefore each process stands in one list at most, however many edges there are.  There is a
//! list for each process that others wait for, ordered by the task for which they wait.  When a
//! task ends, only the first process of the list is checked; the decisions that follow find the
//! others that can continue, [`LOOKS_A_DECISION`] at a time.
//!
//! The [`Sink`] provides the progress of a process on another CPU.  It is asked when a process
//! begins to wait for that one, and again when [`Node::look_elsewhere`] is called.

use super::event::{Ended, EventKind, Sink, Wait};
use super::input::{Input, InputKind};
use super::memory::Memory;
use super::node::Node;
use super::plan::{Edge, Predecessor};
use super::run::Run;
use super::wait_lists::{FirstCheck, NOBODY};
use super::wire::format;

/// Number of edges and processes that one decision checks to let processes continue.
const LOOKS_A_DECISION: u32 = 64;

/// Number of edges that are checked when a task ends.
const LOOKS_AT_ONCE: u32 = 8;

impl<M: Memory> Node<M> {
    /// Checks the processes that wait for another CPU, whose processes have ended tasks or are
    /// gone; lets those that can continue do so in the decisions that follow.
    ///
    /// Takes time in proportion to the processes that wait for another CPU's.
    pub fn look_elsewhere(&mut self, sink: &mut impl Sink) {
        // A predecessor that was gone may be in a plan of another CPU again.
        if self.wait_lists.revive_forlorn() {
            self.standing.revoke();
        }
        let mut next = self.wait_lists.take_elsewhere();
        while let Some(predecessor) = self.wait_lists.next_elsewhere(&mut next) {
            let Some(edge) = self.edge_of(self.wait_lists.first(predecessor)) else {
                // No process waits for it any more.
                continue;
            };
            self.wait_lists.watch_elsewhere(predecessor);
            let ended = self.ask_elsewhere(predecessor, edge.task, sink);
            if ended.has(edge.task) || ended.is_last {
                self.wait_lists.make_due(predecessor);
                self.standing.revoke();
            }
        }
        self.note(move |node| Input {
            value: node.wait_lists.is_pending().into(),
            ..Input::of(InputKind::LookElsewhere)
        });
    }

    /// Progress of the process `p`.
    pub fn come_to(&self, p: u32) -> Option<Ended> {
        self.processes.get(p).map(Run::ended)
    }

    /// A CPU that keeps its plan waits for tasks of the process `p`, whose end must be
    /// reported from now on.
    pub fn share(&mut self, p: u32) {
        self.plan.share(p);
        if let Some(run) = self.processes.get_mut(p) {
            run.in_net = true;
        }
        self.note(move |_| Input {
            process: p,
            ..Input::of(InputKind::Share)
        });
    }

    /// Ids of the process and the task for which the current task of `p` waits, if it is
    /// held.
    pub fn waits_for(&self, p: u32) -> Option<(u32, u32)> {
        let edge = self.edge_of(p).filter(|_| self.is_held(p))?;
        let predecessor = self.plan.predecessors.get(edge.predecessor as usize)?;
        Some((predecessor.id, edge.task))
    }

    fn is_held(&self, p: u32) -> bool {
        self.processes.get(p).is_some_and(|run| run.held)
    }

    /// The edge that `p` waits at, or comes to next.
    fn edge_of(&self, p: u32) -> Option<Edge> {
        let run = self.processes.get(p)?;
        let edge = self.plan.edges.get(run.edge as usize)?;
        (run.edge < self.plan.end_of_edges(p)).then_some(*edge)
    }

    /// Progress of a predecessor, as far as it is known here.
    pub(super) fn progress_of(&self, predecessor: u32) -> Ended {
        let process = self
            .plan
            .predecessors
            .get(predecessor as usize)
            .map_or(Predecessor::NONE, |predecessor| predecessor.process);
        match self.processes.get(process) {
            Some(run) => run.ended(),
            None => self.wait_lists.ended(predecessor),
        }
    }

    pub(super) fn is_elsewhere(&self, predecessor: u32) -> bool {
        let predecessor = self.plan.predecessors.get(predecessor as usize);
        predecessor.is_some_and(Predecessor::is_elsewhere)
    }

    /// Asks for the progress of a predecessor on another CPU; a process waits for its
    /// `task`.
    pub(super) fn ask_elsewhere(
        &mut self,
        predecessor: u32,
        task: u32,
        sink: &mut impl Sink,
    ) -> Ended {
        let known = self.progress_of(predecessor);
        let answer = sink.await_elsewhere(predecessor, task);
        self.note(move |_| Input::answer(predecessor, task, answer));
        // A task that has ended stays so, also if its process runs again under another plan.
        let ended = Ended {
            before_task: known.before_task.max(answer.before_task),
            is_last: answer.is_last,
        };
        self.wait_lists.set_ended(predecessor, ended);
        ended
    }

    /// Handles the end of a task of `p`, which waits for others or is awaited by others; the next
    /// task is now the current one.
    #[inline(never)]
    pub(super) fn end_in_net(&mut self, p: u32, now_ns: u64, sink: &mut impl Sink) {
        let was_held = self.is_held(p);
        if was_held {
            // The task has ended anyway, before its thread arrived where it was to wait.
            self.stop_waiting(p);
        }
        if let Some(run) = self.processes.get_mut(p) {
            if was_held {
                (run.edge, run.gate) = self.plan.edge_from(p, run.position);
                run.checked_edges = 0;
            }
            run.move_in_net();
        }
        if was_held || self.is_held(p) {
            self.requeue(p);
        }
        if self.is_held(p) {
            let mut budget = LOOKS_AT_ONCE;
            self.go_along_edges(p, &mut budget, now_ns, sink);
        }
        self.notify_successors(p, sink);
    }

    /// Notifies the processes that wait for `p` of the end of a task of `p`, or of `p`.
    pub(super) fn notify_successors(&mut self, p: u32, sink: &mut impl Sink) {
        let (Some(process), Some(run)) = (self.plan.process(p), self.processes.get(p)) else {
            return;
        };
        if process.shared {
            sink.tell_elsewhere(p, run.ended());
        }
        // No process waits for `Predecessor::NONE`.
        if self.wait_lists.first(process.predecessor) != NOBODY {
            self.wait_lists.make_due(process.predecessor);
        }
    }

    /// Checks some of the processes that may continue.
    #[inline(never)]
    pub(super) fn release(&mut self, now_ns: u64, sink: &mut impl Sink) -> FirstCheck {
        let was_first = self.wait_lists.is_first_check();
        self.check_some(now_ns, sink);
        match (was_first, self.wait_lists.is_first_check()) {
            (false, _) => FirstCheck::Past,
            (true, true) => FirstCheck::Runs,
            (true, false) => FirstCheck::Ends,
        }
    }

    fn check_some(&mut self, now_ns: u64, sink: &mut impl Sink) {
        let mut budget = LOOKS_A_DECISION;
        while self.wait_lists.has_unseen(self.processes.len()) {
            let Some(rest) = budget.checked_sub(1) else {
                return;
            };
            budget = rest;
            let p = self.wait_lists.take_unseen();
            self.enter(p);
            // It may wait already, or again.
            if self.is_held(p) && !self.waits(p) {
                self.go_along_edges(p, &mut budget, now_ns, sink);
            }
        }
        while let Some(predecessor) = self.wait_lists.due() {
            let Some(rest) = budget.checked_sub(1) else {
                return;
            };
            budget = rest;
            match self.take_first_waiting(predecessor, now_ns, sink) {
                Some(p) => self.go_along_edges(p, &mut budget, now_ns, sink),
                None => self.wait_lists.drop_due(),
            }
        }
        self.wait_lists.finish();
    }

    /// The current task of `p` is held: goes along its edges, as far as `budget`
    /// allows, until it waits at one or there is none left.
    pub(super) fn go_along_edges(
        &mut self,
        p: u32,
        budget: &mut u32,
        now_ns: u64,
        sink: &mut impl Sink,
    ) {
        loop {
            let position = self.processes.get(p).map_or(0, |run| run.position);
            let edge = self.edge_of(p);
            let Some(edge) = edge.filter(|edge| edge.position <= position) else {
                return self.let_go(p, edge);
            };
            let mut ended = self.progress_of(edge.predecessor);
            if !ended.has(edge.task) && self.is_elsewhere(edge.predecessor) {
                ended = self.ask_elsewhere(edge.predecessor, edge.task, sink);
            }
            if !ended.has(edge.task) {
                self.lose_turn(p);
            }
            let Some(rest) = budget.checked_sub(1) else {
                // A later decision continues from here.
                self.wait_at(p, &edge);
                if let Some(run) = self.processes.get_mut(p) {
                    run.postponed = ended.has(edge.task);
                }
                return self.wait_lists.make_due(edge.predecessor);
            };
            *budget = rest;
            if ended.has(edge.task) {
                if let Some(run) = self.processes.get_mut(p) {
                    run.pass_edge();
                }
            } else if ended.is_last {
                // The task stays held until another plan arrives, here or there.
                self.wait_lists.note_forlorn();
                return self.report_wait_once(Wait::Gone, p, &edge, now_ns, sink);
            } else {
                return self.wait_at(p, &edge);
            }
        }
    }

    /// Lets the current task of `p` begin; `next` is its first edge of a later one.
    fn let_go(&mut self, p: u32, next: Option<Edge>) {
        let mut turn = None;
        if let Some(run) = self.processes.get_mut(p) {
            if core::mem::take(&mut run.keeps_turn) {
                turn = Some((run.round, run.ticket));
            }
            run.held = false;
            run.gate = next.map_or(u32::MAX, |edge| edge.position);
            if run.copied {
                self.processes.note_change(p);
            }
        }
        self.standing.revoke();
        self.requeue(p);
        if let Some((round, ticket)) = turn {
            self.queue
                .keep_turn(self.processes.runs_mut(), p, round, ticket);
        }
    }

    /// Takes from `p` the turn that it had under the plan before.
    pub(super) fn lose_turn(&mut self, p: u32) {
        let Some(run) = self.processes.get_mut(p).filter(|run| run.keeps_turn) else {
            return;
        };
        (run.keeps_turn, run.round, run.ticket) = (false, 0, 0);
        if run.copied {
            self.processes.note_change(p);
        }
    }

    fn waits(&self, p: u32) -> bool {
        let run = self.processes.get(p);
        run.is_some_and(|run| run.waits_at != Predecessor::NONE)
    }

    /// Makes `p` wait at an edge, in the list at the place of the awaited task.
    fn wait_at(&mut self, p: u32, edge: &Edge) {
        let mut before = None;
        let mut next = self.wait_lists.first(edge.predecessor);
        // At most one step for each process.
        while self
            .edge_of(next)
            .is_some_and(|other| other.task < edge.task)
        {
            before = Some(next);
            next = self.next_waiting(next);
        }
        if let Some(run) = self.processes.get_mut(p) {
            run.waits_at = edge.predecessor;
            run.next_waiting = next;
            run.postponed = false;
        }
        self.set_next_waiting(edge.predecessor, before, p);
        if self.is_elsewhere(edge.predecessor) {
            self.wait_lists.watch_elsewhere(edge.predecessor);
        }
    }

    fn next_waiting(&self, p: u32) -> u32 {
        let run = self.processes.get(p);
        run.map_or(NOBODY, |run| run.next_waiting)
    }

    /// Makes `next` follow `before` in the list, or the first of the list.
    fn set_next_waiting(&mut self, predecessor: u32, before: Option<u32>, next: u32) {
        if let Some(before) = before {
            if let Some(run) = self.processes.get_mut(before) {
                run.next_waiting = next;
            }
        } else {
            self.wait_lists.set_first(predecessor, next);
        }
    }

    /// Takes the first process that waits for a predecessor, if it need not wait any longer.
    fn take_first_waiting(
        &mut self,
        predecessor: u32,
        now_ns: u64,
        sink: &mut impl Sink,
    ) -> Option<u32> {
        let first = self.wait_lists.first(predecessor);
        let ended = self.progress_of(predecessor);
        // A process waits at an edge of its own.
        let run = self.processes.get(first)?;
        let (edge, postponed) = (run.edge, run.postponed);
        let passes = ended.has(self.plan.edges.get(edge as usize)?.task);
        if !passes && !ended.is_last {
            return None;
        }
        if passes && !postponed {
            self.end_wait_for_message(first, now_ns, sink);
        }
        let run = self.processes.get_mut(first)?;
        // The next plan has no use for what is known of this message.
        let changes = run.copied && run.missed_edge == run.edge;
        if passes {
            run.pass_edge();
        }
        run.postponed = false;
        run.waits_at = Predecessor::NONE;
        let next = run.next_waiting;
        if changes {
            self.processes.note_change(first);
        }
        self.set_next_waiting(predecessor, None, next);
        Some(first)
    }

    /// Ends the wait of `p`, though the awaited task has not ended: the task of `p` has ended, or
    /// `p` is gone.
    #[cold]
    pub(super) fn stop_waiting(&mut self, p: u32) {
        self.lose_turn(p);
        let Some(run) = self.processes.get_mut(p) else {
            return;
        };
        run.held = false;
        let next_after = run.next_waiting;
        let at = core::mem::replace(&mut run.waits_at, Predecessor::NONE);
        let (mut before, mut next) = (None, self.wait_lists.first(at));
        // At most one step for each process.
        while next != p && next != NOBODY {
            before = Some(next);
            next = self.next_waiting(next);
        }
        if next == p {
            self.set_next_waiting(at, before, next_after);
        }
    }

    /// Reports that the slot of `p` has begun and `p` is held, unless that was reported.  A process
    /// whose wait was postponed need not wait for this edge.
    pub(super) fn report_wait(&mut self, p: u32, now_ns: u64, sink: &mut impl Sink) {
        let postponed = self.processes.get(p).is_some_and(|run| run.postponed);
        if let Some(edge) = self.edge_of(p).filter(|_| self.waits(p) && !postponed) {
            self.report_wait_once(Wait::Task, p, &edge, now_ns, sink);
            self.check_awaited_message(p, now_ns, sink);
        }
    }

    fn report_wait_once(
        &mut self,
        wait: Wait,
        p: u32,
        edge: &Edge,
        now_ns: u64,
        sink: &mut impl Sink,
    ) {
        let Some(run) = self.processes.get_mut(p) else {
            return;
        };
        if core::mem::replace(&mut run.reported_wait, wait as u16) == wait as u16 {
            return;
        }
        let after = self.plan.predecessors.get(edge.predecessor as usize);
        let after = after.map_or(format::IDLE, |after| after.id);
        let mut event = self.process_event(EventKind::Waits, p, now_ns);
        event.reason = wait as u16;
        event.value = u64::from(after) << 32 | u64::from(edge.task);
        self.report(event, sink);
    }
}

#[cfg(test)]
impl<M: Memory> Node<M> {
    /// Panics if a waiting process is not in the list in which it should be.
    pub(super) fn check_order(&self) {
        let mut standing = 0;
        let mut any_due = false;
        for ((first, due), predecessor) in self.wait_lists.lists().zip(0..) {
            let mut next = first;
            let mut least = 0;
            while next != NOBODY {
                let run = &self.processes.runs()[next as usize];
                assert_eq!(run.waits_at, predecessor);
                assert!(run.held && !run.done);
                let edge = self.edge_of(next).unwrap();
                assert!(edge.predecessor == predecessor && edge.task >= least);
                least = edge.task;
                standing += 1;
                next = run.next_waiting;
            }
            let first = self.edge_of(first);
            let ended = self.progress_of(predecessor);
            let may_go = first.is_some_and(|edge| ended.has(edge.task) || ended.is_last);
            assert!(!may_go || due);
            any_due |= due;
        }
        assert_eq!(self.wait_lists.due().is_some(), any_due);
        assert!(self.wait_lists.is_pending() || !any_due);
        for (run, p) in self.processes.runs().iter().zip(0..) {
            let stands = run.waits_at != Predecessor::NONE;
            standing -= usize::from(stands);
            assert!(!run.held || run.position == run.gate, "process {p}");
            let unseen = self.wait_lists.is_unseen(p);
            let gone = run.reported_wait == Wait::Gone as u16;
            assert!(
                !run.held || run.done || stands || unseen || gone,
                "process {p}"
            );
        }
        assert_eq!(standing, 0);
    }
}
