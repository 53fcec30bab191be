// SPDX-License-Identifier: GPL-2.0

//! What always holds of a node, checked after every step of a test.

use std::format;
use std::vec::Vec;

use super::division::Division;
use super::memory::Memory;
use super::node::Node;
use super::run::{Run, NOT_QUEUED};
use super::sums::{Share, Sums};

impl<M: Memory> Node<M> {
    /// Makes the next decision think anew.
    pub fn forget_decision(&mut self) {
        self.stands = false;
    }

    /// The process for which alone the present slot is, where that is one that others
    /// could fill.
    pub fn idle_owner(&self) -> Option<u32> {
        match self.slot.division {
            Division::Whole(p) => Some(p),
            Division::Turns | Division::Pieces { .. } => None,
        }
    }

    /// Does the candidate `a` need the CPU more urgently than `b`?
    pub fn comes_before(&self, a: u32, b: u32) -> bool {
        self.queue.before(&self.runs, a, b)
    }

    /// Panics where the state of the node is not that of `other`, which has the
    /// same plan.
    pub fn check_same(&self, other: &Node<M>) {
        let state = |node: &Node<M>| {
            (
                format!("{:?}", (&node.policy, node.rate, node.plan_id)),
                node.runs
                    .iter()
                    .map(|run| Run {
                        look: run.look.still(node.sums.progress),
                        ..*run
                    })
                    .map(|run| format!("{run:?}"))
                    .collect::<Vec<_>>(),
                format!(
                    "{:?}",
                    (&node.windows, &node.budget, node.cursor, &node.slot)
                ),
                format!("{:?}", (node.grant, node.reason, node.turn, &node.watch)),
                format!("{:?}", node.idle_slots),
                format!("{:?}", (node.told, node.untold)),
                format!(
                    "{:?}",
                    (
                        node.settled,
                        node.installed_ns,
                        node.node_look.still(node.sums.progress)
                    )
                ),
                // How often the sums have changed on the way does not matter.
                format!("{:?}", node.sums.at_progress_of(&other.sums)),
                format!("{:?}", (&node.told_late, &node.told_early, node.dealt_seq)),
                format!(
                    "{:?}",
                    (node.idle_insns, node.waits_since_ns, node.plan_ended)
                ),
                format!("{:?}", (&node.told_memory, node.elsewhere_bytes)),
                format!("{:?}", (node.live, node.unfinished, &node.counts)),
            )
        };
        assert_eq!(state(self), state(other));
        assert_eq!(self.queue.len(), other.queue.len());
    }

    /// Panics where the state of the node contradicts itself.
    pub fn check_invariants(&self) {
        assert_eq!(self.contradiction(0, self.runs.len() as u32), None);
        let mut sums = Sums::ZERO;
        let (mut live, mut unfinished, mut queued) = (0, 0, 0);
        for (run, p) in self.runs.iter().zip(0u32..) {
            sums.replace(&Share::NONE, &Share::of(run));
            let rest_insns = self.plan.rest_insns(p, run.position);
            assert!(run.done || run.rest_insns == rest_insns, "process {p}");
            // Who has changed since it was copied is known.
            assert_eq!(run.noted, self.changed.contains(p), "process {p}");
            live += u32::from(run.is_live());
            unfinished += u32::from(!run.done);
            let candidate = run.is_candidate(self.cursor) && self.grant != Some(p);
            assert_eq!(run.queued != NOT_QUEUED, candidate, "process {p}");
            if candidate {
                queued += 1;
                assert_eq!(self.queue.at(run.queued as usize), Some(p));
            }
            let own_slot = self.plan.own_slot(p, run.position);
            assert!(run.done || own_slot == Some(run.own_slot), "process {p}");
        }
        self.check_order();
        assert_eq!(self.sums, sums.at_progress_of(&self.sums));
        assert_eq!(self.live, live);
        assert_eq!(self.unfinished, unfinished);
        assert_eq!(self.queue.len(), queued);
        for place in 1..self.queue.len() {
            let at = |place| self.queue.at(place).unwrap();
            assert!(!self.comes_before(at(place), at((place - 1) / 2)));
        }
        assert!(self.cursor as usize <= self.plan.slots.len());
    }

    /// Ways to break the state, each with what [`Node::contradiction`] says of it.
    /// They are for a node whose process 0 waits and whose process 1 is granted.
    #[allow(clippy::type_complexity)]
    pub fn breakages() -> [(&'static str, fn(&mut Node<M>)); 10] {
        [
            ("slot is beyond the plan", |node| node.cursor = u32::MAX),
            ("more processes are present", Node::contradict),
            ("more processes are present", |node| node.unfinished += 9),
            ("slot is that of no process", |node| node.slot.owner = 9),
            ("granted the CPU is no process", |node| node.grant = Some(9)),
            ("candidate does not wait", |node| {
                node.runs[0].queued = NOT_QUEUED
            }),
            ("one waits that is none", |node| node.runs[1].queued = 0),
            ("candidate is not where it waits", |node| {
                node.runs[0].queued = 1
            }),
            ("process is not at its slot", |node| {
                node.runs[1].own_slot += 1
            }),
            ("rest of a process is not", |node| {
                node.runs[1].rest_insns += 1
            }),
        ]
    }
}
