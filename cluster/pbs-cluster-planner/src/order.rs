// SPDX-License-Identifier: GPL-2.0
//! Requests that follow others: a workflow's steps, what is to be done if something fails
//! (Keller, 2).
//!
//! Who follows is planned behind the planned end of what it follows, and moves with it. Who
//! is held has no place until it is released: what it waits for may never come.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::budget::SearchBudget;
use crate::planner::{Entry, Planner};
use crate::types::RequestId;

impl Planner {
    /// Returns the interval in which a request may be planned (Keller, 5.1), at points with the
    /// policy's minimum distance. Returns `None` while a request that it follows has no end.
    pub(crate) fn window(&self, now_s: u64, entry: &Entry) -> Option<Range<u64>> {
        let mut window = entry.when.window(now_s, entry.need.duration_s);
        if entry.is_held {
            return None;
        }
        for before in &entry.after {
            if let Some(before) = self.entries.get(before) {
                window.start = window.start.max(before.over()?.end);
            }
        }
        window.start = self.policy.point_s(window.start);
        Some(window)
    }

    /// Returns the requests that follow a request.
    pub fn followers(&self, id: RequestId) -> impl Iterator<Item = RequestId> + '_ {
        self.followers.of(id)
    }

    /// A request is over or wanted no more: it follows nobody, and nobody follows it.
    pub(crate) fn unfollow(&mut self, id: RequestId, after: &[RequestId]) {
        for follower in self.followers.remove(id, after) {
            if let Some(entry) = self.entries.get_mut(&follower) {
                entry.after.retain(|before| *before != id);
            }
            self.changed(follower);
        }
    }

    /// Restores the followers of a request that was taken out and put back.
    pub(crate) fn follow_again(&mut self, id: RequestId, followers: &[RequestId]) {
        for &follower in followers {
            if let Some(entry) = self.entries.get_mut(&follower) {
                entry.after.push(id);
                self.followers.add(follower, &[id]);
            }
        }
    }

    /// A request is held no more, or is: [`Self::plan_waiting`] gives it a place.
    pub fn set_held(&mut self, now_s: u64, id: RequestId, is_held: bool) {
        let known = self.entries.get(&id);
        if known.is_none_or(|entry| entry.is_held == is_held || entry.is_running) {
            return;
        }
        if is_held {
            self.take_place(now_s, id);
        }
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.is_held = is_held;
            self.queues.wait(entry.turn(id));
        }
        self.changed(id);
    }

    /// Moves the followers of changed requests that would start before what they follow is over,
    /// and their followers. Returns those that moved.
    pub(crate) fn keep_order(
        &mut self,
        now_s: u64,
        changed: &[RequestId],
        budget: &SearchBudget,
    ) -> Vec<RequestId> {
        let of_changed = changed.iter().flat_map(|&id| self.followers.of(id));
        let mut followers: BTreeSet<RequestId> = of_changed.collect();
        let mut moved = Vec::new();
        // A followed request has a smaller number: when a request is checked, those before it
        // stand.
        while let Some(id) = followers.pop_first() {
            let Some(entry) = self.entries.get(&id) else {
                continue;
            };
            let Some(start_s) = entry.over().map(|over| over.start) else {
                continue;
            };
            self.order_checks += 1;
            budget.take(1 + entry.after.len());
            let window = self.window(now_s.min(start_s), entry);
            let is_in_order = window.is_some_and(|window| window.start <= start_s);
            if is_in_order || entry.is_running {
                continue;
            }
            self.take_place(now_s, id);
            self.seek_place(now_s, id, budget);
            // Others may move up into its old place, and leave a better one to this request.
            self.backfill.add_twice(start_s);
            followers.extend(self.followers.of(id));
            moved.push(id);
        }
        if budget.is_empty() && !moved.is_empty() {
            self.plan_waiting_later();
        }
        moved
    }

    /// Moves the followers of requests that have lost their places: they have none before these.
    pub fn keep_order_behind(&mut self, now_s: u64, lost: &[RequestId]) {
        self.keep_order(now_s, lost, &SearchBudget::default());
    }

    /// Returns the number of followers that were checked up to now because a request changed that
    /// they follow.
    pub fn order_checks(&self) -> u64 {
        self.order_checks
    }

    /// Gives a request that has no place the best one, or lets it wait. Whether it has one.
    pub(crate) fn seek_place(&mut self, now_s: u64, id: RequestId, budget: &SearchBudget) -> bool {
        let Some(entry) = self.entries.get(&id) else {
            return false;
        };
        let turn = entry.turn(id);
        self.nodes.renew_gaps(&self.machine, budget);
        match self.seek(now_s, entry, budget) {
            Some(place) => {
                let is_reservation = entry.inside.is_some();
                self.set_place(id, place);
                if is_reservation {
                    // It holds other nodes than before.
                    self.hold(id);
                }
                true
            }
            None => {
                self.queues.wait(turn);
                false
            }
        }
    }
}
