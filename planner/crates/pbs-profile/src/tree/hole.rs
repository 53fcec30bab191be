// SPDX-License-Identifier: GPL-2.0
//! The first hole: where enough is there for long enough.
//!
//! The search goes through the tree from left to right with a candidate, the time
//! at which the hole would begin; from there to where the search is, enough is
//! there. A node is passed over
//!
//! - that has enough everywhere: the hole grows by it;
//! - that has enough nowhere: the hole begins after it at the earliest;
//! - in which the hole can't end, as it would reach beyond the node: of all that
//!   is too little there only the last counts, and that is found from the right.
//!
//! The last keeps long holes cheap however finely the time before them is cut. A
//! hole of a given length is looked for in at most twice as many stretches as that
//! length fits into the time before the hole, each found in a way down the tree.

use std::ops::Range;

use super::Tree;
use crate::FOREVER;

struct Search {
    need: u64,
    duration: u64,
    until: u64,
    candidate: u64,
    /// Where the hole ends that begins at the candidate.
    goal: u64,
}

enum Outcome {
    Found,
    /// There is none before `until`.
    Never,
    GoOn,
}

impl Search {
    fn new(need: u64, duration: u64, window: &Range<u64>) -> Self {
        Self {
            need,
            duration,
            until: window.end,
            candidate: window.start,
            goal: window.start.saturating_add(duration),
        }
    }

    /// There is enough up to `end`.
    fn enough_until(&self, end: u64) -> Outcome {
        if self.goal <= end {
            Outcome::Found
        } else {
            Outcome::GoOn
        }
    }

    /// There is too little just before `end`.
    fn too_little_until(&mut self, end: u64) -> Outcome {
        if end > self.candidate {
            self.candidate = end;
            self.goal = end.saturating_add(self.duration);
        }
        if self.is_hopeless() {
            Outcome::Never
        } else {
            Outcome::GoOn
        }
    }

    /// The hole would end too late, or begin at the end of time, which is nowhere.
    fn is_hopeless(&self) -> bool {
        self.goal > self.until || self.candidate == FOREVER
    }
}

impl Tree {
    /// The first time at or after `window.start` from which on the value is at
    /// least `need` for `duration`, which is not 0, and which ends by `window.end`.
    pub(crate) fn first_hole(&self, need: u64, duration: u64, window: &Range<u64>) -> Option<u64> {
        let mut search = Search::new(need, duration, window);
        if search.is_hopeless() {
            return None;
        }
        match self.search(self.root, self.height, (0, FOREVER), &mut search) {
            Outcome::Found => Some(search.candidate),
            Outcome::Never | Outcome::GoOn => None,
        }
    }

    /// In a node with what is pending for it and where it ends.
    fn search(
        &self,
        id: u32,
        height: u32,
        (pending, end): (u64, u64),
        search: &mut Search,
    ) -> Outcome {
        if height == 0 {
            return self.search_leaf(id, (pending, end), search);
        }
        let inner = &self.inners[id];
        for at in inner.find(search.candidate)..inner.len() {
            let child = &inner.items()[at];
            let end_of_child = inner.end(at, end);
            let extremes = child.extremes.raised(pending);
            let pending = pending.wrapping_add(child.pending);
            let outcome = if extremes.least >= search.need {
                search.enough_until(end_of_child)
            } else if extremes.greatest < search.need {
                search.too_little_until(end_of_child)
            } else if search.goal > end_of_child {
                let below = (pending, end_of_child);
                let end = self.last_too_little(child.id, height - 1, below, search.need);
                search.too_little_until(end)
            } else {
                self.search(child.id, height - 1, (pending, end_of_child), search)
            };
            if !matches!(outcome, Outcome::GoOn) {
                return outcome;
            }
        }
        Outcome::GoOn
    }

    fn search_leaf(&self, id: u32, (pending, end): (u64, u64), search: &mut Search) -> Outcome {
        let leaf = &self.leaves[id];
        let first = leaf.find(search.candidate);
        for (at, value) in leaf.items().iter().enumerate().skip(first) {
            let end_of_step = leaf.end(at, end);
            let outcome = if value.wrapping_add(pending) >= search.need {
                search.enough_until(end_of_step)
            } else {
                search.too_little_until(end_of_step)
            };
            if !matches!(outcome, Outcome::GoOn) {
                return outcome;
            }
        }
        Outcome::GoOn
    }

    /// Where the last step ends that has too little, in a node with one.
    fn last_too_little(
        &self,
        mut id: u32,
        height: u32,
        (mut pending, mut end): (u64, u64),
        need: u64,
    ) -> u64 {
        for _ in 0..height {
            let inner = &self.inners[id];
            let too_little = |at: &usize| {
                let extremes = inner.items()[*at].extremes;
                extremes.raised(pending).least < need
            };
            // There is one; but nothing goes wrong if there is none.
            let at = (0..inner.len()).rev().find(too_little).unwrap_or(0);
            let child = &inner.items()[at];
            end = inner.end(at, end);
            pending = pending.wrapping_add(child.pending);
            id = child.id;
        }
        let leaf = &self.leaves[id];
        let too_little = |at: &usize| leaf.items()[*at].wrapping_add(pending) < need;
        let at = (0..leaf.len()).rev().find(too_little).unwrap_or(0);
        leaf.end(at, end)
    }
}
