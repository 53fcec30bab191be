// SPDX-License-Identifier: GPL-2.0

//! What always holds of a node, checked after every step of a test.

use super::run::NOT_QUEUED;
use super::{Memory, Node};

impl<M: Memory> Node<M> {
    /// Makes the next decision think anew.
    pub fn forget_decision(&mut self) {
        self.settled = None;
    }

    /// Panics where the state of the node contradicts itself.
    pub fn check_invariants(&self) {
        let (mut live, mut unfinished, mut queued) = (0, 0, 0);
        for (run, p) in self.runs.iter().zip(0u32..) {
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
        assert_eq!(self.live, live);
        assert_eq!(self.unfinished, unfinished);
        assert_eq!(self.queue.len(), queued);
        for place in 1..self.queue.len() {
            let lateness = |place| self.process_lateness_insns(self.queue.at(place).unwrap());
            assert!(lateness((place - 1) / 2) >= lateness(place));
        }
        assert!(self.cursor as usize <= self.plan.slots.len());
    }
}
