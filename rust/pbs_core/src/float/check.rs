// SPDX-License-Identifier: GPL-2.0

//! Contradictions in the state of a node whose slots float.

use super::super::memory::Memory;
use super::super::node::Node;
use super::place::{Level, List, NO_SLOT};

impl<M: Memory> Node<M> {
    /// A contradiction in the lists of processes, if there is one.
    pub(in super::super) fn floating_contradiction(&self) -> Option<&'static str> {
        let processes = self.processes.len();
        if self.floating.front() as usize > self.plan.slots.len() {
            return Some("the first slot that is not over is beyond the plan");
        }
        (self.floating.ready_len() + self.floating.missing_len() > processes)
            .then_some("more processes stand in lists than there are")
    }

    /// A contradiction in the place of `p`, if there is one.
    pub(in super::super) fn place_contradiction(&self, p: u32) -> Option<&'static str> {
        let (run, place) = (self.processes.get(p)?, self.floating.place(p)?);
        let list = match self.grant.is(p) {
            true => List::None,
            false => self.list_of(p),
        };
        if list != place.list {
            return Some("a process that can run does not wait, or one waits that can't");
        }
        if !self.floating.is_placed(p, run.queued) {
            return Some("a process is not where its deadline puts it");
        }
        let is_last = place.number == NO_SLOT;
        if is_last != (place.level == Level::Background) {
            return Some("a process without a slot is not in the background");
        }
        if is_last || run.done {
            return None;
        }
        let slot = self.plan.slot(place.number);
        let is_own = slot.is_some_and(|slot| slot.process == p && slot.position >= run.position);
        (!is_own).then_some("the slot of a process is that of another, or over")
    }
}
