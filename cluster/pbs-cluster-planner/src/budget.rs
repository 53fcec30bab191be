// SPDX-License-Identifier: GPL-2.0
//! Budgets of the searches for places: work that a call may cause, counted and not timed.
//!
//! A look is one step of a node's plan, or one node, that a search looks at. All searches of a call
//! share the looks of its budget. This way a call is bounded however many searches it needs, and
//! the same calls always find the same places.

use std::cell::Cell;

/// Looks of all searches of a call. 1,000 searches in the plan of an ordinary site of 1,000 nodes
/// and 10,000 requests take fewer.
const CALL_LOOKS: u64 = 1 << 29;

/// Looks of one search.
const SEARCH_LOOKS: u64 = 1 << 26;

/// Looks of one search while choices of nodes are taken back.
const CHOICE_LOOKS: u64 = 2_000_000;

/// Looks that stand for a question to the profiles of the cluster.
pub(crate) const PROFILE_LOOKS: usize = 64;

/// Looks that stand for a copy of what is free on a node.
pub(crate) const COPY_LOOKS: usize = 16;

/// Work that the searches of a call may still do together.
///
/// A search without looks finds a place at the end of the plan, or none.
#[derive(Clone, Debug)]
pub struct SearchBudget {
    looks: u64,
    left: Cell<u64>,
    /// Looks that the present search has left.
    of_search: Cell<u64>,
    /// Looks that the present search has left to take choices back.
    choices: Cell<u64>,
    /// Whether the present search has left times out.
    is_cut: Cell<bool>,
    /// Whether the present search has left mappings out.
    has_skipped: Cell<bool>,
}

impl Default for SearchBudget {
    fn default() -> Self {
        Self::of_looks(CALL_LOOKS)
    }
}

impl SearchBudget {
    /// Creates the budget of a call that has so many looks.
    pub fn of_looks(looks: u64) -> Self {
        let budget = Self {
            looks,
            left: Cell::new(looks),
            of_search: Cell::new(0),
            choices: Cell::new(0),
            is_cut: Cell::new(false),
            has_skipped: Cell::new(false),
        };
        budget.begin_search();
        budget
    }

    /// Whether no look is left.
    pub fn is_empty(&self) -> bool {
        self.left.get() == 0
    }

    /// Returns the looks that were taken.
    pub fn used(&self) -> u64 {
        self.looks - self.left.get()
    }

    /// Whether the last search has left times out because it had no looks any more.
    pub fn is_cut(&self) -> bool {
        self.is_cut.get()
    }

    /// Whether the last search has left nothing out: where it found no place, there is none.
    pub(crate) fn is_exact(&self) -> bool {
        !self.is_cut.get() && !self.has_skipped.get()
    }

    /// Begins the next search of the call.
    pub(crate) fn begin_search(&self) {
        self.of_search.set(self.left.get().min(SEARCH_LOOKS));
        self.choices.set(CHOICE_LOOKS);
        self.is_cut.set(false);
        self.has_skipped.set(false);
    }

    /// Lets the present search take as many choices back as at its beginning.
    pub(crate) fn renew_choices(&self) {
        self.choices.set(CHOICE_LOOKS);
    }

    /// Takes looks of the present search and of its call.
    pub(crate) fn take(&self, looks: usize) {
        let looks = looks as u64;
        self.left.set(self.left.get().saturating_sub(looks));
        self.of_search.set(self.of_search.get().saturating_sub(looks));
    }

    /// Takes looks to take a choice back. Whether there were as many.
    pub(crate) fn take_choice(&self, looks: usize) -> bool {
        self.take(looks);
        let left = self.choices.get().checked_sub(looks as u64);
        self.choices.set(left.unwrap_or(0));
        left.is_some() && self.left.get() > 0
    }

    /// Records that the present search leaves times out.
    pub(crate) fn cut(&self) {
        self.is_cut.set(true);
    }

    /// Records that the present search leaves mappings out.
    pub(crate) fn skip(&self) {
        self.has_skipped.set(true);
    }

    /// Whether the present search may not look any further.
    pub(crate) fn is_spent(&self) -> bool {
        self.of_search.get() == 0
    }

    /// Sets the looks of the present search to take choices back.
    #[cfg(test)]
    pub(crate) fn with_choices(looks: u64) -> Self {
        let budget = Self::default();
        budget.choices.set(looks);
        budget
    }

    /// Looks of the present search to take choices back that it has used.
    #[cfg(test)]
    pub(crate) fn choices_used(&self) -> u64 {
        CHOICE_LOOKS - self.choices.get()
    }
}
