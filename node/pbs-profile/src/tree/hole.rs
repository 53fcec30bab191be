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
//!   Of several such nodes side by side only the last is looked into.
//!
//! The last keeps long holes cheap however finely the time before them is cut. Of
//! two nodes that the search goes into, one after the other at the same height, the
//! second ends later than the hole's duration after the first begins: else the hole
//! could not end in it. So of each height it goes into no more than two for each
//! time that the duration fits into the time before the hole, and two.

use std::ops::Range;

use super::{Inner, Tree};
use crate::FOREVER;

struct Search {
    need: u64,
    duration: u64,
    until: u64,
    candidate: u64,
    /// End of the hole that begins at the candidate.
    goal: u64,
    /// Steps and nodes that were looked at.
    looked_at: u64,
}

enum Outcome {
    Found,
    /// No hole exists before `until`.
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
            looked_at: 0,
        }
    }

    /// Notes that there is enough up to `end`.
    fn enough_until(&self, end: u64) -> Outcome {
        if self.goal <= end {
            Outcome::Found
        } else {
            Outcome::GoOn
        }
    }

    /// Notes that there is too little just before `end`.
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

    /// In the child `at` there is too little somewhere, and the hole can't end there.
    /// Of the children from there on that this is so of, the last: the hole begins
    /// in it at the earliest, wherever in those before it there is too little.
    fn last_in_the_way(&mut self, inner: &Inner, at: usize, (pending, end): (u64, u64)) -> usize {
        let (mut last, mut goal) = (at, self.goal);
        for next in at + 1..inner.len() {
            self.looked_at += 1;
            if goal <= inner.end(next, end) {
                break;
            }
            if inner.items()[next].extremes.raised(pending).least < self.need {
                last = next;
                goal = inner.times()[next].saturating_add(self.duration).max(goal);
            }
        }
        last
    }

    /// The hole would end too late, or begin at the end of time, which is nowhere.
    fn is_hopeless(&self) -> bool {
        self.goal > self.until || self.candidate == FOREVER
    }
}

impl Tree {
    /// The first time at or after `window.start` from which on the value is at
    /// least `need` for `duration`, which is not 0, and which ends by `window.end`.
    /// Returns also the number of steps and nodes that were looked at.
    pub(crate) fn first_hole(
        &self,
        need: u64,
        duration: u64,
        window: &Range<u64>,
    ) -> (Option<u64>, u64) {
        let mut search = Search::new(need, duration, window);
        if search.is_hopeless() {
            return (None, 0);
        }
        let found = match self.search(self.root, self.height, (0, FOREVER), &mut search) {
            Outcome::Found => Some(search.candidate),
            Outcome::Never | Outcome::GoOn => None,
        };
        (found, search.looked_at)
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
        let mut at = inner.find(search.candidate);
        while at < inner.len() {
            search.looked_at += 1;
            let child = &inner.items()[at];
            let end_of_child = inner.end(at, end);
            let extremes = child.extremes.raised(pending);
            let outcome = if extremes.least >= search.need {
                search.enough_until(end_of_child)
            } else if extremes.greatest < search.need {
                search.too_little_until(end_of_child)
            } else if search.goal > end_of_child {
                at = search.last_in_the_way(inner, at, (pending, end));
                let child = &inner.items()[at];
                let below = (pending.wrapping_add(child.pending), inner.end(at, end));
                let end = self.last_too_little(child.id, height - 1, below, search.need);
                search.too_little_until(end)
            } else {
                let below = (pending.wrapping_add(child.pending), end_of_child);
                self.search(child.id, height - 1, below, search)
            };
            if !matches!(outcome, Outcome::GoOn) {
                return outcome;
            }
            at += 1;
        }
        Outcome::GoOn
    }

    fn search_leaf(&self, id: u32, (pending, end): (u64, u64), search: &mut Search) -> Outcome {
        let leaf = &self.leaves[id];
        let first = leaf.find(search.candidate);
        for (at, value) in leaf.items().iter().enumerate().skip(first) {
            search.looked_at += 1;
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

    /// Returns the end of the last step that has too little, in a node with such a step.
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
