// SPDX-License-Identifier: GPL-2.0

//! Contradictions in the state of a node, as a running kernel can look for them:
//! a bounded piece at a time.

use super::heap::NOT_QUEUED;
use super::input::{Input, InputKind};
use super::memory::Memory;
use super::node::Node;

impl<M: Memory> Node<M> {
    /// A contradiction in the state, if there is one.
    ///
    /// Checks the state of the node as a whole, and `count` processes from index `first` on.  The
    /// sums over all processes are left to tests, because a piece does not show them.
    pub fn contradiction(&self, first: u32, count: u32) -> Option<&'static str> {
        let processes = self.processes.len();
        if self.slot.number() as usize > self.plan.slots.len() {
            return Some("the present slot is beyond the plan");
        }
        let unfinished = self.processes.unfinished();
        if self.processes.live() > unfinished || unfinished as usize > processes {
            return Some("more processes are present than are unfinished");
        }
        if self.floats() {
            if let Some(found) = self.floating_contradiction() {
                return Some(found);
            }
        }
        if self.queue.len() > processes {
            return Some("there are more candidates than processes");
        }
        if self.slot.is_owned() && self.slot.owner() as usize >= processes {
            return Some("the present slot is that of no process");
        }
        if self
            .grant
            .process()
            .is_some_and(|p| p as usize >= processes)
        {
            return Some("what is granted the CPU is no process");
        }
        let last = first.saturating_add(count).min(processes as u32);
        (first..last).find_map(|p| self.process_contradiction(p))
    }

    fn process_contradiction(&self, p: u32) -> Option<&'static str> {
        let run = self.processes.get(p)?;
        if self.floats() {
            if let Some(found) = self.place_contradiction(p) {
                return Some(found);
            }
        }
        let candidate = !self.floats() && run.is_candidate(self.slot.number()) && !self.grant.is(p);
        if !self.floats() && candidate != (run.queued != NOT_QUEUED) {
            return Some("a candidate does not wait, or one waits that is none");
        }
        if candidate {
            let place = run.queued as usize;
            if self.queue.at(place) != Some(p) {
                return Some("a candidate is not where it waits");
            }
            let above = place.checked_sub(1).and_then(|at| self.queue.at(at / 2));
            if above.is_some_and(|above| self.queue.before(self.processes.runs(), p, above)) {
                return Some("a candidate waits behind a less urgent one");
            }
        }
        if run.done {
            return None;
        }
        if self.plan.own_slot(p, run.position) != Some(run.own_slot) {
            return Some("a process is not at its slot");
        }
        (run.rest_insns != self.plan.rest_insns(p, run.position))
            .then_some("the rest of a process is not what its slots add up to")
    }

    /// Makes the state contradict itself, for tests of the reaction.
    pub fn contradict(&mut self) {
        self.processes.contradict();
        self.note(move |_| Input::of(InputKind::Contradict));
    }
}
