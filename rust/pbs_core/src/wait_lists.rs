// SPDX-License-Identifier: GPL-2.0

//! Lists of the processes that wait for tasks of others.

use super::event::Ended;
use super::memory::{Memory, NoMemory};
use super::plan::Plan;

/// No process and no predecessor.
pub(super) const NOBODY: u32 = u32::MAX;

/// A process that is waited for.
#[derive(Clone, Copy)]
pub(super) struct Awaited {
    /// How far it has come, if it is on another CPU.
    pub(super) ended: Ended,
    /// The first process that waits for it.
    pub(super) first: u32,
    /// It stands among those whose waiting are to be looked at, and who is next
    /// there.
    pub(super) due: bool,
    next_due: u32,
    /// The same for those on other CPUs for which somebody may wait.
    pub(super) elsewhere: bool,
    pub(super) next_elsewhere: u32,
}

/// Who waits for whose tasks.
pub(super) struct Order<M: Memory> {
    /// By predecessor.
    pub(super) awaited: M::Slice<Awaited>,
    /// The first predecessor whose waiting are to be looked at.
    pub(super) due: u32,
    /// The first predecessor on another CPU for which somebody may wait.
    pub(super) elsewhere: u32,
    /// The processes from this one on were not looked at since the plan came
    /// into force.
    pub(super) unseen: u32,
    /// Something is to be looked at.
    pub(super) pending: bool,
    /// Somebody was told that what it waits for is gone, and stands in no list.
    pub(super) forlorn: bool,
}

impl<M: Memory> Order<M> {
    pub(super) fn new(plan: &Plan<M>) -> Result<Order<M>, NoMemory> {
        let nobody = Awaited {
            ended: Ended::NOTHING,
            first: NOBODY,
            due: false,
            next_due: NOBODY,
            elsewhere: false,
            next_elsewhere: NOBODY,
        };
        let mut order = Order {
            awaited: M::alloc(plan.predecessors.len(), nobody)?,
            due: NOBODY,
            elsewhere: NOBODY,
            unseen: 0,
            pending: false,
            forlorn: false,
        };
        order.begin();
        Ok(order)
    }

    /// The plan comes into force: all processes are to be looked at.
    pub(super) fn begin(&mut self) {
        self.unseen = 0;
        self.pending = !self.awaited.is_empty();
    }

    #[inline]
    pub(super) fn is_pending(&self) -> bool {
        self.pending
    }

    pub(super) fn get(&self, predecessor: u32) -> Option<&Awaited> {
        self.awaited.get(predecessor as usize)
    }

    /// Those who wait for the predecessor are to be looked at.
    pub(super) fn make_due(&mut self, predecessor: u32) {
        let Some(awaited) = self.awaited.get_mut(predecessor as usize) else {
            return;
        };
        if !core::mem::replace(&mut awaited.due, true) {
            awaited.next_due = core::mem::replace(&mut self.due, predecessor);
        }
        self.pending = true;
    }

    /// The first predecessor that is due is no more.
    pub(super) fn drop_due(&mut self) {
        if let Some(awaited) = self.awaited.get_mut(self.due as usize) {
            awaited.due = false;
            self.due = awaited.next_due;
        }
    }

    /// Somebody waits for the predecessor, which is on another CPU.
    pub(super) fn watch_elsewhere(&mut self, predecessor: u32) {
        if let Some(awaited) = self.awaited.get_mut(predecessor as usize) {
            if !core::mem::replace(&mut awaited.elsewhere, true) {
                awaited.next_elsewhere = core::mem::replace(&mut self.elsewhere, predecessor);
            }
        }
    }
}
