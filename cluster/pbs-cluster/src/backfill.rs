// SPDX-License-Identifier: GPL-2.0
//! Backfilling: who was to start later moves up where somebody left (Keller, 5.4).

use crate::planner::Planner;
use crate::request::{RequestId, When};

impl Planner {
    /// How many requests are to be looked at.
    pub fn turns(&self) -> usize {
        self.turns.len()
    }

    /// How many times a better place was sought so far: Keller's backfills (6).
    pub fn decisions(&self) -> u64 {
        self.decisions
    }

    /// Looks at so many requests, by priority and time of submission, each for an earlier
    /// place; it takes that, or keeps exactly its own. Nobody moves to later. How many
    /// moved.
    ///
    /// With all turns at once an answer would take long; between some of them the next
    /// call can be served.
    pub fn backfill(&mut self, now_s: u64, most: usize) -> usize {
        let mut moved = 0;
        for _ in 0..most {
            let Some((_, _, id)) = self.turns.pop_first() else {
                break;
            };
            moved += usize::from(self.improve(now_s, id));
        }
        moved
    }

    /// Seeks an earlier place for a request that has not started.
    fn improve(&mut self, now_s: u64, id: RequestId) -> bool {
        let Some(entry) = self.entries.get_mut(&id) else {
            return false;
        };
        let stays = matches!(entry.when, When::Fixed { .. }) || entry.when.is_late();
        let Some(over) = entry.over() else {
            return false;
        };
        let (need, who) = (entry.need.clone(), entry.who.clone());
        let window = entry.when.window(now_s, need.duration_s);
        if stays || entry.is_running || entry.inside.is_some() || window.start >= over.start {
            return false;
        }
        let Some(old) = entry.place.take() else {
            return false;
        };
        self.decisions += 1;
        let asked = (&need.sums[..], need.duration_s);
        self.nodes
            .lift(&self.machine, &need, &old.nodes, over.clone());
        self.system.book(&old.sums, asked, &who, over.clone(), false);
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
                true
            }
        }
    }

    /// Gives those that wait a place, if there is one now, by priority and time of
    /// submission. Who got one.
    pub(crate) fn plan_waiting(&mut self, now_s: u64) -> Vec<RequestId> {
        let mut planned = Vec::new();
        for (_, _, id) in self.waiting.clone() {
            let Some(entry) = self.entries.get(&id) else {
                continue;
            };
            if let Some(place) = self.seek(now_s, entry) {
                self.set_place(id, place);
                planned.push(id);
            }
        }
        planned
    }
}
