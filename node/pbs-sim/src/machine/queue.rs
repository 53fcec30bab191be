// SPDX-License-Identifier: GPL-2.0
//! Nodes that wait for the same job scheduler.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// CPUs that wait for the job scheduler, in the order of their arrival.
#[derive(Clone, Default)]
pub(crate) struct Waiting(Rc<RefCell<Queue>>);

#[derive(Default)]
struct Queue {
    cpus: VecDeque<u32>,
    /// Until when it works on the question before.
    busy_until_ns: u64,
}

impl Waiting {
    /// `cpu` has something to ask. Whether it is its turn: then the job scheduler is busy
    /// with it for `takes_ns`, if it has an answer (`take`).
    pub(super) fn is_turn(&self, cpu: u32, now_ns: u64) -> bool {
        let mut queue = self.0.borrow_mut();
        if !queue.cpus.contains(&cpu) {
            queue.cpus.push_back(cpu);
        }
        queue.cpus.front() == Some(&cpu) && queue.busy_until_ns <= now_ns
    }

    /// The job scheduler works until then.
    pub(super) fn take(&self, until_ns: u64) {
        self.0.borrow_mut().busy_until_ns = until_ns;
    }

    /// `cpu` has asked, or has nothing to ask any more.
    pub(super) fn leave(&self, cpu: u32) {
        self.0.borrow_mut().cpus.retain(|&waits| waits != cpu);
    }

    /// Returns the time at which a waiting CPU must check again whether it is its turn.
    pub(super) fn turn_ns(&self, cpu: u32, now_ns: u64) -> Option<u64> {
        let queue = self.0.borrow();
        let waits = queue.cpus.contains(&cpu) && queue.busy_until_ns > now_ns;
        waits.then_some(queue.busy_until_ns)
    }
}
