// SPDX-License-Identifier: GPL-2.0
//! Orders that wait.

use pbs_history::RunId;

use crate::orders::Waiting;

/// Orders that wait, in the order in which they came.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    waiting: Vec<Waiting>,
    /// Whether admission is stopped until the node is told to admit again.
    drained: bool,
    /// An order may not have to wait any more.
    is_due: bool,
}

impl Backlog {
    /// All orders.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Waiting> {
        self.waiting.iter()
    }

    /// The order of a run.
    pub(crate) fn find(&self, id: RunId) -> Option<&Waiting> {
        self.waiting.iter().find(|waiting| waiting.id == id)
    }

    /// Adds an order.
    pub(crate) fn push(&mut self, waiting: Waiting) {
        self.waiting.push(waiting);
    }

    /// Replaces the order of the same run, which is checked again.
    pub(crate) fn replace(&mut self, waiting: Waiting) {
        let mut all = self.waiting.iter_mut();
        if let Some(before) = all.find(|before| before.id == waiting.id) {
            *before = waiting;
        }
        self.check_again();
    }

    /// Removes the order of a run.
    pub(crate) fn remove(&mut self, id: RunId) -> Option<Waiting> {
        let place = self.waiting.iter().position(|waiting| waiting.id == id)?;
        Some(self.waiting.remove(place))
    }

    /// Whether nothing new is admitted.
    pub(crate) fn is_drained(&self) -> bool {
        self.drained
    }

    /// Stops admitting, or admits again.
    pub(crate) fn drain(&mut self, drained: bool) {
        self.drained = drained;
        self.check_again();
    }

    /// An order may not have to wait any more.
    pub(crate) fn check_again(&mut self) {
        self.is_due = true;
    }

    /// Whether orders are to be checked.
    pub(crate) fn is_due(&self) -> bool {
        self.is_due
    }

    /// Removes all orders if they are to be checked.
    pub(crate) fn take_due(&mut self) -> Option<Vec<Waiting>> {
        let is_due = std::mem::take(&mut self.is_due);
        let is_due = is_due && !self.waiting.is_empty();
        is_due.then(|| std::mem::take(&mut self.waiting))
    }

    /// Puts those back that still wait.
    pub(crate) fn put_back(&mut self, mut left: Vec<Waiting>) {
        left.append(&mut self.waiting);
        left.sort_by_key(|waiting| waiting.id);
        self.waiting = left;
    }
}
