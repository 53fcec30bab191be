// SPDX-License-Identifier: GPL-2.0

//! The order of tasks: a task whose edges say so is held back until the tasks of
//! other processes have ended that they name.
//!
//! A process that is held waits at one edge at a time, the first whose task has
//! not ended; so no more processes wait than there are, however many edges.  They
//! stand in lists, one for each process that is waited for, by the task that
//! they wait for.  When a task ends, only the first of the list is looked at; who
//! can go on is found in the decisions that follow, [`LOOKS_A_DECISION`] at a
//! time.
//!
//! A process on another CPU is told by the [`Sink`], which is asked when
//! somebody begins to wait for it, and again when [`Node::look_elsewhere`] is
//! called.

use super::event::{Ended, EventKind, Sink, Wait};
use super::input::{Input, InputKind};
use super::memory::Memory;
use super::node::Node;
use super::plan::{Edge, Predecessor};
use super::run::Run;
use super::wait_lists::NOBODY;
use super::wire::format;

/// How many edges and processes one decision looks at to let processes go on.
const LOOKS_A_DECISION: u32 = 64;

/// How many edges are looked at as a task ends.
const LOOKS_AT_ONCE: u32 = 8;

impl<M: Memory> Node<M> {
    /// Processes on other CPUs have ended tasks, or are gone: looks at those that
    /// somebody waits for here, and lets them go on in the decisions that follow.
    ///
    /// Takes time in proportion to the processes that wait for another CPU's.
    pub fn look_elsewhere(&mut self, sink: &mut impl Sink) {
        if self.order.forlorn {
            // What was gone may have come back with a plan of another CPU.
            self.order.forlorn = false;
            self.order.unseen = 0;
            self.order.pending = true;
            self.stands = false;
        }
        let mut next = core::mem::replace(&mut self.order.elsewhere, NOBODY);
        while let Some(awaited) = self.order.awaited.get_mut(next as usize) {
            let predecessor = core::mem::replace(&mut next, awaited.next_elsewhere);
            awaited.elsewhere = false;
            let first = awaited.first;
            let Some(edge) = self.edge_of(first) else {
                // Nobody waits for it any more.
                continue;
            };
            self.order.watch_elsewhere(predecessor);
            let ended = self.ask_elsewhere(predecessor, edge.task, sink);
            if ended.has(edge.task) || ended.is_last {
                self.order.make_due(predecessor);
                self.stands = false;
            }
        }
        self.note(move |node| Input {
            value: node.order.is_pending().into(),
            ..Input::of(InputKind::LookElsewhere)
        });
    }

    /// How far the process `p` has come.
    pub fn come_to(&self, p: u32) -> Option<Ended> {
        self.runs.get(p as usize).map(Run::ended)
    }

    /// A CPU that keeps its plan waits for tasks of the process `p`, whose end is
    /// to be told from now on.
    pub fn share(&mut self, p: u32) {
        self.plan.share(p);
        if let Some(run) = self.runs.get_mut(p as usize) {
            run.in_net = true;
        }
        self.note(move |_| Input {
            process: p,
            ..Input::of(InputKind::Share)
        });
    }

    /// For which task of which process the current task of `p` waits, if it is
    /// held: their ids.
    pub fn waits_for(&self, p: u32) -> Option<(u32, u32)> {
        let edge = self.edge_of(p).filter(|_| self.is_held(p))?;
        let predecessor = self.plan.predecessors.get(edge.predecessor as usize)?;
        Some((predecessor.id, edge.task))
    }

    fn is_held(&self, p: u32) -> bool {
        self.runs.get(p as usize).is_some_and(|run| run.held)
    }

    /// The edge that `p` waits at, or comes to next.
    fn edge_of(&self, p: u32) -> Option<Edge> {
        let run = self.runs.get(p as usize)?;
        let edge = self.plan.edges.get(run.edge as usize)?;
        (run.edge < self.plan.end_of_edges(p)).then_some(*edge)
    }

    /// How far a predecessor has come, as is known here.
    fn progress_of(&self, predecessor: u32) -> Ended {
        let process = self
            .plan
            .predecessors
            .get(predecessor as usize)
            .map_or(Predecessor::NONE, |predecessor| predecessor.process);
        match self.runs.get(process as usize) {
            Some(run) => run.ended(),
            None => self
                .order
                .get(predecessor)
                .map_or(Ended::NOTHING, |awaited| awaited.ended),
        }
    }

    fn is_elsewhere(&self, predecessor: u32) -> bool {
        let predecessor = self.plan.predecessors.get(predecessor as usize);
        predecessor.is_some_and(Predecessor::is_elsewhere)
    }

    /// Asks how far a predecessor on another CPU has come; `task` of it is waited
    /// for.
    fn ask_elsewhere(&mut self, predecessor: u32, task: u32, sink: &mut impl Sink) -> Ended {
        let known = self.progress_of(predecessor);
        let told = sink.await_elsewhere(predecessor, task);
        self.note(move |_| Input::answer(predecessor, task, told));
        // What has ended stays so, also if its process runs again under another plan.
        let ended = Ended {
            before_task: known.before_task.max(told.before_task),
            is_last: told.is_last,
        };
        if let Some(awaited) = self.order.awaited.get_mut(predecessor as usize) {
            awaited.ended = ended;
        }
        ended
    }

    /// A task of `p` has ended, which waits for others, or others for it; the next
    /// one is the current one now.
    #[inline(never)]
    pub(super) fn end_in_net(&mut self, p: u32, now_ns: u64, sink: &mut impl Sink) {
        let was_held = self.is_held(p);
        if was_held {
            // It has ended all the same, on the way to where its thread was to wait.
            self.stop_waiting(p);
        }
        if let Some(run) = self.runs.get_mut(p as usize) {
            if was_held {
                (run.edge, run.gate) = self.plan.edge_from(p, run.position);
            }
            run.move_in_net();
        }
        if was_held || self.is_held(p) {
            self.requeue(p);
        }
        if self.is_held(p) {
            let mut budget = LOOKS_AT_ONCE;
            self.look_at(p, &mut budget, now_ns, sink);
        }
        self.tell_successors(p, sink);
    }

    /// A task of `p` has ended, or `p` has: those who wait for it are told.
    pub(super) fn tell_successors(&mut self, p: u32, sink: &mut impl Sink) {
        let (Some(process), Some(run)) = (self.plan.process(p), self.runs.get(p as usize)) else {
            return;
        };
        if process.shared {
            sink.tell_elsewhere(p, run.ended());
        }
        if process.predecessor != Predecessor::NONE {
            let awaited = self.order.get(process.predecessor);
            if awaited.is_some_and(|awaited| awaited.first != NOBODY) {
                self.order.make_due(process.predecessor);
            }
        }
    }

    /// Looks at some of those who may go on.
    #[inline(never)]
    pub(super) fn release(&mut self, now_ns: u64, sink: &mut impl Sink) {
        let mut budget = LOOKS_A_DECISION;
        while (self.order.unseen as usize) < self.runs.len() {
            let Some(rest) = budget.checked_sub(1) else {
                return;
            };
            budget = rest;
            let p = self.order.unseen;
            self.order.unseen += 1;
            // It may wait already, or again.
            if self.is_held(p) && !self.waits(p) {
                self.look_at(p, &mut budget, now_ns, sink);
            }
        }
        while self.order.due != NOBODY {
            let Some(rest) = budget.checked_sub(1) else {
                return;
            };
            budget = rest;
            match self.take_first_waiting(self.order.due) {
                Some(p) => self.look_at(p, &mut budget, now_ns, sink),
                None => self.order.drop_due(),
            }
        }
        self.order.pending = false;
    }

    /// The current task of `p` is held: goes along its edges, as far as `budget`
    /// allows, until it waits at one or there is none left.
    pub(super) fn look_at(&mut self, p: u32, budget: &mut u32, now_ns: u64, sink: &mut impl Sink) {
        loop {
            let position = self.runs.get(p as usize).map_or(0, |run| run.position);
            let edge = self.edge_of(p);
            let Some(edge) = edge.filter(|edge| edge.position <= position) else {
                return self.let_go(p, edge);
            };
            let mut ended = self.progress_of(edge.predecessor);
            if !ended.has(edge.task) && self.is_elsewhere(edge.predecessor) {
                ended = self.ask_elsewhere(edge.predecessor, edge.task, sink);
            }
            let Some(rest) = budget.checked_sub(1) else {
                // Goes on from here soon.
                self.wait_at(p, &edge);
                return self.order.make_due(edge.predecessor);
            };
            *budget = rest;
            if ended.has(edge.task) {
                if let Some(run) = self.runs.get_mut(p as usize) {
                    run.edge += 1;
                }
            } else if ended.is_last {
                // It stays held until another plan comes, here or there.
                self.order.forlorn = true;
                return self.tell_wait_once(Wait::Gone, p, &edge, now_ns, sink);
            } else {
                return self.wait_at(p, &edge);
            }
        }
    }

    /// The current task of `p` can begin; `next` is its first edge of a later one.
    fn let_go(&mut self, p: u32, next: Option<Edge>) {
        if let Some(run) = self.runs.get_mut(p as usize) {
            run.held = false;
            run.gate = next.map_or(u32::MAX, |edge| edge.position);
            if run.copied {
                self.note_change(p);
            }
        }
        self.stands = false;
        self.requeue(p);
    }

    fn waits(&self, p: u32) -> bool {
        let run = self.runs.get(p as usize);
        run.is_some_and(|run| run.waits_at != Predecessor::NONE)
    }

    /// `p` waits at an edge: takes its place by the task that it waits for.
    fn wait_at(&mut self, p: u32, edge: &Edge) {
        let mut before = None;
        let awaited = self.order.get(edge.predecessor);
        let mut next = awaited.map_or(NOBODY, |awaited| awaited.first);
        // No more than there are processes.
        while self
            .edge_of(next)
            .is_some_and(|other| other.task < edge.task)
        {
            before = Some(next);
            next = self.next_waiting(next);
        }
        if let Some(run) = self.runs.get_mut(p as usize) {
            run.waits_at = edge.predecessor;
            run.next_waiting = next;
        }
        self.set_next_waiting(edge.predecessor, before, p);
        if self.is_elsewhere(edge.predecessor) {
            self.order.watch_elsewhere(edge.predecessor);
        }
    }

    fn next_waiting(&self, p: u32) -> u32 {
        let run = self.runs.get(p as usize);
        run.map_or(NOBODY, |run| run.next_waiting)
    }

    /// After `before`, or first of all, comes `next`.
    fn set_next_waiting(&mut self, predecessor: u32, before: Option<u32>, next: u32) {
        if let Some(before) = before {
            if let Some(run) = self.runs.get_mut(before as usize) {
                run.next_waiting = next;
            }
        } else if let Some(awaited) = self.order.awaited.get_mut(predecessor as usize) {
            awaited.first = next;
        }
    }

    /// The first of those who wait for a predecessor, if it need not wait any
    /// longer.
    fn take_first_waiting(&mut self, predecessor: u32) -> Option<u32> {
        let first = self.order.get(predecessor)?.first;
        let ended = self.progress_of(predecessor);
        let run = self.runs.get_mut(first as usize)?;
        // Who waits does so at an edge of its own.
        let edge = self.plan.edges.get(run.edge as usize)?;
        let passes = ended.has(edge.task);
        if !passes && !ended.is_last {
            return None;
        }
        run.edge += u32::from(passes);
        run.waits_at = Predecessor::NONE;
        let next = run.next_waiting;
        self.set_next_waiting(predecessor, None, next);
        Some(first)
    }

    /// `p` waits no more, though what it waited for has not ended: its own task
    /// has, or it is gone.
    #[cold]
    pub(super) fn stop_waiting(&mut self, p: u32) {
        let Some(run) = self.runs.get_mut(p as usize) else {
            return;
        };
        run.held = false;
        let next_after = run.next_waiting;
        let at = core::mem::replace(&mut run.waits_at, Predecessor::NONE);
        let Some(awaited) = self.order.get(at) else {
            return;
        };
        let (mut before, mut next) = (None, awaited.first);
        // No more than there are processes.
        while next != p && next != NOBODY {
            before = Some(next);
            next = self.next_waiting(next);
        }
        if next == p {
            self.set_next_waiting(at, before, next_after);
        }
    }

    /// The slot of `p` has come, and `p` is held: tells so, unless it was told.
    pub(super) fn tell_wait(&mut self, p: u32, now_ns: u64, sink: &mut impl Sink) {
        if let Some(edge) = self.edge_of(p).filter(|_| self.waits(p)) {
            self.tell_wait_once(Wait::Task, p, &edge, now_ns, sink);
        }
    }

    fn tell_wait_once(
        &mut self,
        wait: Wait,
        p: u32,
        edge: &Edge,
        now_ns: u64,
        sink: &mut impl Sink,
    ) {
        let Some(run) = self.runs.get_mut(p as usize) else {
            return;
        };
        if core::mem::replace(&mut run.wait_told, wait as u16) == wait as u16 {
            return;
        }
        let after = self.plan.predecessors.get(edge.predecessor as usize);
        let after = after.map_or(format::IDLE, |after| after.id);
        let mut event = self.process_event(EventKind::Waits, p, now_ns);
        event.reason = wait as u16;
        event.value = u64::from(after) << 32 | u64::from(edge.task);
        self.tell(event, sink);
    }
}

#[cfg(test)]
impl<M: Memory> Node<M> {
    /// Panics where those who wait do not stand where they should.
    pub(super) fn check_order(&self) {
        let mut standing = 0;
        for (awaited, predecessor) in self.order.awaited.iter().zip(0..) {
            let mut next = awaited.first;
            let mut least = 0;
            while next != NOBODY {
                let run = &self.runs[next as usize];
                assert_eq!(run.waits_at, predecessor);
                assert!(run.held && !run.done);
                let edge = self.edge_of(next).unwrap();
                assert!(edge.predecessor == predecessor && edge.task >= least);
                least = edge.task;
                standing += 1;
                next = run.next_waiting;
            }
            let first = self.edge_of(awaited.first);
            let ended = self.progress_of(predecessor);
            let may_go = first.is_some_and(|edge| ended.has(edge.task) || ended.is_last);
            assert!(!may_go || awaited.due);
        }
        assert_eq!(
            self.order.due == NOBODY,
            !self.order.awaited.iter().any(|a| a.due)
        );
        assert!(self.order.pending || self.order.due == NOBODY);
        for (run, p) in self.runs.iter().zip(0..) {
            let stands = run.waits_at != Predecessor::NONE;
            standing -= usize::from(stands);
            assert!(!run.held || run.position == run.gate, "process {p}");
            let unseen = self.order.pending && self.order.unseen <= p;
            let gone = run.wait_told == Wait::Gone as u16;
            assert!(
                !run.held || run.done || stands || unseen || gone,
                "process {p}"
            );
        }
        assert_eq!(standing, 0);
    }
}
