// SPDX-License-Identifier: GPL-2.0
//! Backfilling: who was to start later moves up where somebody left (Keller, 5.4).

use crate::budget::SearchBudget;
use crate::planner::Planner;
use crate::request::When;
use crate::sweep::Sweep;
use crate::types::{RequestId, Turn};

impl Planner {
    /// Whether there are requests to be looked at for a better place.
    pub fn is_backfilling(&self) -> bool {
        self.backfill.from_s.is_some()
    }

    /// Looks for better places of all requests that start later, though nothing became free.
    pub fn look_again(&mut self, now_s: u64) {
        self.backfill.add(now_s);
    }

    /// From now on, requests are offered earlier places in the order of their starts.
    pub fn move_up_by_start(&mut self) {
        self.policy.moves_up_by_start = true;
    }

    /// Returns the number of passes over all planned requests that have ended.
    pub fn passes(&self) -> u64 {
        self.backfill.passes
    }

    /// Returns the number of searches for a better place up to now: Keller's backfills (6).
    pub fn decisions(&self) -> u64 {
        self.backfill.decisions
    }

    /// Looks at so many requests, by priority and time of submission, each for an earlier
    /// place; it takes that, or keeps exactly its own. Nobody moves to later. How many
    /// moved.
    ///
    /// With all of them at once an answer would take long; between some of them the next
    /// call can be served.
    pub fn backfill(&mut self, now_s: u64, most: usize) -> usize {
        self.backfill_within(now_s, most, &SearchBudget::default())
    }

    /// Looks at so many requests as [`Self::backfill`] does, as long as the budget has looks left.
    pub fn backfill_within(&mut self, now_s: u64, most: usize, budget: &SearchBudget) -> usize {
        let mut moved = 0;
        for _ in 0..most {
            let Some(from_s) = self.backfill.from_s.filter(|_| !budget.is_empty()) else {
                break;
            };
            match self.next_to_move_up() {
                Some((start_s, turn)) => {
                    self.backfill.last = Some((start_s, turn));
                    moved += usize::from(self.improve(now_s, from_s, turn.2, budget));
                }
                None => {
                    self.backfill = Sweep {
                        from_s: self.backfill.again_s,
                        decisions: self.backfill.decisions,
                        passes: self.backfill.passes + 1,
                        ..Sweep::default()
                    };
                }
            }
        }
        moved
    }

    /// Returns the start and the turn of the next request of the pass.
    fn next_to_move_up(&self) -> Option<(u64, Turn)> {
        let last = self.backfill.last;
        if self.policy.moves_up_by_start {
            let after = last.map(|(start_s, (_, _, id))| (start_s, id));
            let (start_s, id) = self.queues.next_start_after(after)?;
            return Some((start_s, self.entries.get(&id)?.turn(id)));
        }
        let turn = self.queues.next_planned(last.map(|(_, turn)| turn))?;
        Some((0, turn))
    }

    /// Seeks an earlier place for a request that has not started. A request whose place was told
    /// keeps its nodes, and may only start earlier there: nothing else has to be free for that.
    fn improve(&mut self, now_s: u64, from_s: u64, id: RequestId, budget: &SearchBudget) -> bool {
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
        let is_fixed = self.is_told(now_s, id, over.start);
        if stays || !is_later || entry.is_running || entry.inside.is_some() {
            return false;
        }
        let placed = entry.place.as_ref().map_or(&[][..], |place| &place.nodes);
        let before = over.start.saturating_sub(1)..over.start;
        if is_fixed && !self.has_room(&need, placed, &before) {
            return false;
        }
        self.backfill.decisions += 1;
        self.nodes.renew_gaps(&self.machine, budget);
        let (machine, nodes) = (&self.machine, &self.nodes);
        budget.take(machine.node_count());
        if !nodes.may_start_before(machine, &need, placed, over.start) {
            return false;
        }
        let own = is_fixed.then(|| need.only_on(machine, placed));
        let sought = own.as_ref().unwrap_or(&need);
        let taken = self.entries.get_mut(&id).and_then(|entry| entry.place.take());
        let Some(old) = taken else {
            return false;
        };
        let asked = (&need.sums[..], need.asked_s());
        self.nodes.lift(&self.machine, &need, &old.nodes, over.clone());
        self.system.book(&old.sums, asked, &who, over.clone(), false);
        self.system.throttles.book(&who, over.clone(), false);
        // Only what starts earlier is of interest.
        let window = window.start..window.end.min(over.end - 1);
        let found = self.search(&who, budget).earliest(sought, window);
        let found = found.filter(|place| !is_fixed || place.nodes == old.nodes);
        match found {
            None => {
                self.nodes.put_back(&self.machine, &need, &old.nodes, over.clone());
                self.system.book(&old.sums, asked, &who, over.clone(), true);
                self.system.throttles.book(&who, over, true);
                if let Some(entry) = self.entries.get_mut(&id) {
                    entry.place = Some(old);
                }
                false
            }
            Some(place) => {
                self.nodes.settle(&self.machine, &old.nodes);
                self.queues.move_start(old.start_s, id);
                self.set_place(id, place);
                if self.followers.has(id) {
                    // They may move up behind it.
                    self.backfill.add(over.end);
                }
                true
            }
        }
    }

    /// Returns the waiting requests that can no longer end in time.
    pub fn hopeless(&self, now_s: u64) -> Vec<RequestId> {
        let waiting = self.queues.waiting().filter_map(|id| {
            let entry = self.entries.get(&id)?;
            let window = entry.when.window(now_s, entry.need.duration_s);
            let last_s = window.end.checked_sub(entry.need.duration_s);
            let is_late = last_s.is_none_or(|last_s| last_s < window.start);
            is_late.then_some(id)
        });
        waiting.collect()
    }
}
