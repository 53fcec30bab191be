// SPDX-License-Identifier: GPL-2.0

//! Invariants of a node, checked after every step of a test.

use std::format;
use std::vec::Vec;

use super::division::Division;
use super::event::Grant;
use super::float::List;
use super::heap::NOT_QUEUED;
use super::memory::Memory;
use super::node::Node;
use super::run::Run;
use super::sums::{Share, Sums};

impl<M: Memory> Node<M> {
    /// Requires a new decision.
    pub fn forget_decision(&mut self) {
        self.standing.revoke();
    }

    /// The only process that may use the present slot, if it is one that others could fill.
    pub fn idle_owner(&self) -> Option<u32> {
        match *self.slot.division() {
            Division::Whole(p) => Some(p),
            Division::Nobody => Some(u32::MAX),
            Division::Admitted => match (self.grant.process(), self.queue.first()) {
                (None, Some(first)) if !self.may_fill(first) => Some(u32::MAX),
                _ => None,
            },
            Division::Turns | Division::Pieces { .. } => None,
        }
    }

    /// Whether the candidate `a` needs the CPU more urgently than `b`.  Where slots float: whether
    /// `a` comes before `b`.
    pub fn comes_before(&self, a: u32, b: u32) -> bool {
        if self.floats() {
            return self.floating.before(a, b);
        }
        self.queue.before(self.processes.runs(), a, b)
    }

    /// Panics where the state of the node is not that of `other`, which has the
    /// same plan.
    pub fn check_same(&self, other: &Node<M>) {
        let state = |node: &Node<M>| {
            let progress = node.processes.sums().progress();
            let runs = node.processes.runs().iter().map(|run| Run {
                check: run.check.still(progress),
                // The way into a queue does not matter, only the order, which the runs determine.
                // Where slots float, the list is that of the place.
                queued: if node.floats() || run.queued == NOT_QUEUED {
                    NOT_QUEUED
                } else {
                    0
                },
                ..*run
            });
            (
                runs.map(|run| format!("{run:?}")).collect::<Vec<_>>(),
                format!("{:?}", (&node.policy, node.rates.cpu(), &node.status)),
                // The number of changes of the sums on the way does not matter.
                format!("{:?}", node.processes.sums().at_progress(1)),
                format!("{:?}", node.processes.idle()),
                format!("{:?}", (node.processes.live(), node.processes.unfinished())),
                format!("{:?}", (&node.windows, &node.budget, &node.slot)),
                format!("{:?}", (&node.lengths, &node.responses)),
                node.timetable.words(),
                format!("{:?}", (&node.grant, &node.grant_reports, &node.standing)),
                format!("{:?}", (node.signals.still(progress), &node.counts)),
                (0..node.processes.len() as u32)
                    .map(|p| format!("{:?}", node.floating.place(p)))
                    .collect::<Vec<_>>(),
            )
        };
        assert_eq!(state(self), state(other));
        assert_eq!(self.queue.len(), other.queue.len());
    }

    /// Panics where the state of the node contradicts itself.
    pub fn check_invariants(&self) {
        assert_eq!(self.contradiction(0, self.processes.len() as u32), None);
        let mut sums = Sums::ZERO;
        let (mut live, mut unfinished, mut queued) = (0, 0, 0);
        for (run, p) in self.processes.runs().iter().zip(0u32..) {
            sums.replace(&Share::NONE, &Share::of(run));
            let rest_insns = self.plan.rest_insns(p, run.position);
            assert!(run.done || run.rest_insns == rest_insns, "process {p}");
            // Each process that changed since it was copied is known.
            assert_eq!(run.noted, self.processes.has_changed(p), "process {p}");
            live += u32::from(run.is_live());
            unfinished += u32::from(!run.done);
            let candidate =
                !self.floats() && run.is_candidate(self.slot.number()) && !self.grant.is(p);
            assert!(
                self.floats() || candidate == (run.queued != NOT_QUEUED),
                "process {p}"
            );
            if candidate {
                queued += 1;
                assert_eq!(self.queue.at(run.queued as usize), Some(p));
            }
            let is_kept = run.held && run.queued == NOT_QUEUED;
            assert!(!run.keeps_turn || is_kept, "process {p}");
            let own_slot = self.plan.own_slot(p, run.position);
            assert!(run.done || own_slot == Some(run.own_slot), "process {p}");
        }
        self.check_order();
        self.check_lists();
        assert_eq!(
            *self.processes.sums(),
            sums.at_progress(self.processes.sums().progress())
        );
        assert_eq!(self.processes.live(), live);
        assert_eq!(self.processes.unfinished(), unfinished);
        assert_eq!(self.queue.len(), queued);
        for place in 1..self.queue.len() {
            let at = |place| self.queue.at(place).unwrap();
            assert!(!self.comes_before(at(place), at((place - 1) / 2)));
        }
        assert!(self.slot.number() as usize <= self.plan.slots.len());
    }

    /// Panics where the lists of processes whose slots float are not complete.
    fn check_lists(&self) {
        if !self.floats() {
            return;
        }
        let in_list = |list| {
            let places = (0..self.processes.len() as u32).filter_map(|p| self.floating.place(p));
            places.filter(|place| place.list == list).count()
        };
        assert_eq!(self.floating.ready_len(), in_list(List::Ready));
        assert_eq!(self.floating.missing_len(), in_list(List::Missing));
    }

    /// Ways to break the state, each with the message of [`Node::contradiction`] about it.  They
    /// apply to a node whose process 0 waits and whose process 1 is granted.
    #[allow(clippy::type_complexity)]
    pub fn breakages() -> [(&'static str, fn(&mut Node<M>)); 10] {
        [
            ("slot is beyond the plan", |node| node.slot.break_number()),
            ("more processes are present", Node::contradict),
            ("more processes are present", |node| {
                node.processes.break_counts()
            }),
            ("slot is that of no process", |node| {
                node.slot.break_owner(9)
            }),
            ("granted the CPU is no process", |node| {
                node.grant.set(Some(9), Grant::Slot);
            }),
            ("candidate does not wait", |node| {
                node.processes.runs_mut()[0].queued = NOT_QUEUED
            }),
            ("one waits that is none", |node| {
                node.processes.runs_mut()[1].queued = 0
            }),
            ("candidate is not where it waits", |node| {
                node.processes.runs_mut()[0].queued = 1
            }),
            ("process is not at its slot", |node| {
                node.processes.runs_mut()[1].own_slot += 1
            }),
            ("rest of a process is not", |node| {
                node.processes.runs_mut()[1].rest_insns += 1
            }),
        ]
    }
}
