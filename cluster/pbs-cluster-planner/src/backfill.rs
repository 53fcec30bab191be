// SPDX-License-Identifier: GPL-2.0
//! Backfilling: who was to start later moves up where somebody left (Keller, 5.4).

use std::ops::Bound;

use crate::planner::Planner;
use crate::request::When;
use crate::sweep::Sweep;
use crate::types::RequestId;

/// So often within a horizon those are looked at that wait behind it.
const LOOKS: u64 = 8;

/// So many of them at once find nothing before the others are not asked.
const MAX_TRIES: usize = 256;

impl Planner {
    /// Whether there are requests to be looked at for a better place.
    pub fn is_backfilling(&self) -> bool {
        self.backfill.from_s.is_some()
    }

    /// How many times a better place was sought so far: Keller's backfills (6).
    pub fn decisions(&self) -> u64 {
        self.decisions
    }

    /// Looks at so many requests, by priority and time of submission, each for an earlier
    /// place; it takes that, or keeps exactly its own. Nobody moves to later. How many
    /// moved.
    ///
    /// With all of them at once an answer would take long; between some of them the next
    /// call can be served.
    pub fn backfill(&mut self, now_s: u64, most: usize) -> usize {
        let mut moved = 0;
        for _ in 0..most {
            let Some(from_s) = self.backfill.from_s else {
                break;
            };
            let after = self.backfill.last.map_or(Bound::Unbounded, Bound::Excluded);
            match self.planned.range((after, Bound::Unbounded)).next() {
                Some(&turn) => {
                    self.backfill.last = Some(turn);
                    moved += usize::from(self.improve(now_s, from_s, turn.2));
                }
                None => {
                    self.backfill = Sweep {
                        from_s: self.backfill.again_s,
                        ..Sweep::default()
                    };
                }
            }
        }
        moved
    }

    /// Seeks an earlier place for a request that has not started.
    fn improve(&mut self, now_s: u64, from_s: u64, id: RequestId) -> bool {
        let Some(entry) = self.entries.get(&id) else {
            return false;
        };
        let stays = matches!(entry.when, When::Fixed { .. }) || entry.when.is_late();
        let Some(over) = entry.over() else {
            return false;
        };
        let (need, who) = (entry.need.clone(), entry.who.clone());
        let Some(entry) = self.entries.get(&id) else {
            return false;
        };
        let Some(window) = self.window(now_s, entry) else {
            return false;
        };
        let is_later = over.start >= from_s && over.start > window.start;
        let told_s = self.policy.told_before_s;
        let is_told = told_s.is_some_and(|told_s| over.start <= now_s.saturating_add(told_s));
        if stays || is_told || !is_later || entry.is_running || entry.inside.is_some() {
            return false;
        }
        self.decisions += 1;
        let placed = entry.place.as_ref().map_or(&[][..], |place| &place.nodes);
        let (machine, nodes) = (&self.machine, &self.nodes);
        if !nodes.may_start_before(machine, &need, placed, over.start) {
            return false;
        }
        let taken = self
            .entries
            .get_mut(&id)
            .and_then(|entry| entry.place.take());
        let Some(old) = taken else {
            return false;
        };
        let asked = (&need.sums[..], need.asked_s());
        self.nodes
            .lift(&self.machine, &need, &old.nodes, over.clone());
        self.system
            .book(&old.sums, asked, &who, over.clone(), false);
        // Only what starts earlier is of interest.
        let window = window.start..window.end.min(over.end - 1);
        let found = self.search(&who).earliest(&need, window);
        match found {
            None => {
                self.nodes
                    .put_back(&self.machine, &need, &old.nodes, over.clone());
                self.system.book(&old.sums, asked, &who, over, true);
                if let Some(entry) = self.entries.get_mut(&id) {
                    entry.place = Some(old);
                }
                false
            }
            Some(place) => {
                self.nodes.settle(&self.machine, &old.nodes);
                self.starts.remove(&(old.start_s, id));
                self.set_place(id, place);
                if self.followers.contains_key(&id) {
                    // They may move up behind it.
                    self.backfill.add(over.end);
                }
                true
            }
        }
    }

    /// Those that wait, and whose time is over: they can't be in time any more.
    pub fn hopeless(&self, now_s: u64) -> Vec<RequestId> {
        let waiting = self.waiting.iter().filter_map(|&(_, _, id)| {
            let entry = self.entries.get(&id)?;
            let window = entry.when.window(now_s, entry.need.duration_s);
            let last_s = window.end.checked_sub(entry.need.duration_s);
            let is_late = last_s.is_none_or(|last_s| last_s < window.start);
            is_late.then_some(id)
        });
        waiting.collect()
    }

    /// Gives those that wait a place, if there is one now, by priority and time of
    /// submission. Who got one.
    pub fn plan_waiting(&mut self, now_s: u64) -> Vec<RequestId> {
        let mut planned = Vec::new();
        // Behind a horizon many may wait; the first that find nothing speak for the others.
        let most = self.policy.horizon_s.map_or(usize::MAX, |_| MAX_TRIES);
        loop {
            let (before, mut in_vain) = (planned.len(), 0);
            for (_, _, id) in self.waiting.clone() {
                match self.seek_place(now_s, id) {
                    true => planned.push(id),
                    false => in_vain += 1,
                }
                if in_vain == most {
                    break;
                }
            }
            // Who follows one that was planned has its turn now.
            if planned.len() == before || self.followers.is_empty() {
                break;
            }
        }
        self.look_s = None;
        self.look_again(now_s);
        planned
    }

    /// Where there is a horizon, those that wait are looked at again before much of it has
    /// passed.
    pub(crate) fn look_again(&mut self, now_s: u64) {
        let horizon_s = self.policy.horizon_s.filter(|_| !self.waiting.is_empty());
        let look_s = horizon_s.map(|horizon_s| now_s.saturating_add((horizon_s / LOOKS).max(1)));
        self.look_s = match (self.look_s, look_s) {
            (Some(before_s), Some(look_s)) => Some(before_s.min(look_s)),
            (_, look_s) => look_s,
        };
    }

    /// When those that wait are to be looked at again by [`Self::plan_waiting`].
    pub fn next_look_s(&self) -> Option<u64> {
        self.look_s
    }
}
