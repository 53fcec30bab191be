// SPDX-License-Identifier: GPL-2.0
//! Work that answers a question, and its bound.
//!
//! Work is counted where it is done: a step for each element of a list that is walked, each place
//! that is tried, each piece of a profile that is looked at. No clock is read. The same question
//! on the same store therefore always ends at the same step, on any machine.

use std::cell::Cell;

/// Count of the steps that a question has taken, with the most that it may take.
#[derive(Debug)]
pub struct Budget {
    most: u64,
    done: Cell<u64>,
    /// Whether something was left out to stay within the bound.
    is_cut: Cell<bool>,
}

impl Budget {
    /// Starts to count the steps of a question that may take `most`.
    pub fn new(most: u64) -> Self {
        Self { most, done: Cell::new(0), is_cut: Cell::new(false) }
    }

    /// Counts steps without a bound.
    pub(crate) fn unbounded() -> Self {
        Self::new(u64::MAX)
    }

    /// Adds steps that were done. They may be more than were left: whoever does them asks
    /// [`Budget::is_spent`] now and then, not before every step.
    pub fn add(&self, steps: u64) {
        self.done.set(self.done.get().saturating_add(steps));
    }

    /// Returns the number of steps so far.
    pub fn done(&self) -> u64 {
        self.done.get()
    }

    /// Returns the number of steps that may follow.
    pub fn left(&self) -> u64 {
        self.most.saturating_sub(self.done.get())
    }

    /// Whether no step is left.
    pub fn is_spent(&self) -> bool {
        self.left() == 0
    }

    /// Notes that something was left out to stay within the bound.
    pub(crate) fn cut(&self) {
        self.is_cut.set(true);
    }

    /// Whether something was left out to stay within the bound.
    pub(crate) fn is_cut(&self) -> bool {
        self.is_cut.get()
    }

    /// Does a part of the work that may take `most` of the steps that are left.
    pub fn part<T>(&self, most: u64, does: impl FnOnce(&Self) -> T) -> T {
        let part = Self::new(most.min(self.left()));
        let result = does(&part);
        self.add(part.done());
        self.is_cut.set(self.is_cut() | part.is_cut());
        result
    }
}

/// Count of what is really done, beside the steps: tests compare the two.
pub(crate) mod tally {
    #[cfg(test)]
    std::thread_local! {
        static DONE: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
    }

    /// Adds elements, tasks or changes of profiles that were visited or made.
    #[cfg(test)]
    pub(crate) fn add(number: u64) {
        DONE.set(DONE.get() + number);
    }

    /// Returns the count since the last call, in this thread.
    #[cfg(test)]
    pub(crate) fn take() -> u64 {
        DONE.take()
    }

    /// Counts nothing: only tests count.
    #[cfg(not(test))]
    pub(crate) fn add(_number: u64) {}
}
