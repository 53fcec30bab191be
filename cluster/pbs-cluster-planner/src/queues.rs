// SPDX-License-Identifier: GPL-2.0
//! Requests that have not started, in the orders in which they are asked for.

use std::collections::BTreeSet;
use std::ops::Bound;

use crate::types::{RequestId, Turn};

/// Checks of requests that wait behind the horizon, in the time of one horizon.
const CHECKS: u64 = 8;

/// Orders of requests that have not started.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queues {
    /// Planned requests by their start.
    starts: BTreeSet<(u64, RequestId)>,
    /// Accepted requests without a place.
    waiting: BTreeSet<Turn>,
    /// Planned requests in the order in which a better place is sought.
    planned: BTreeSet<Turn>,
    /// Provisional requests by the time at which they are dropped.
    unconfirmed: BTreeSet<(u64, RequestId)>,
    /// Time of the next check of requests that wait behind the horizon.
    next_check_s: Option<u64>,
}

impl Queues {
    /// Adds a request that has no place.
    pub(crate) fn wait(&mut self, turn: Turn) {
        self.waiting.insert(turn);
    }

    /// Removes a request that has no place. Whether it was there.
    pub(crate) fn stop_waiting(&mut self, turn: &Turn) -> bool {
        self.waiting.remove(turn)
    }

    /// Adds a request that starts at that time.
    pub(crate) fn plan(&mut self, start_s: u64, turn: Turn) {
        self.starts.insert((start_s, turn.2));
        self.planned.insert(turn);
    }

    /// Removes a request that had a place.
    pub(crate) fn unplan(&mut self, start_s: u64, turn: &Turn) {
        self.move_start(start_s, turn.2);
        self.planned.remove(turn);
    }

    /// Removes the start of a request that gets another one, and keeps its turn.
    pub(crate) fn move_start(&mut self, start_s: u64, id: RequestId) {
        self.starts.remove(&(start_s, id));
    }

    /// Removes the first request that starts by now.
    pub(crate) fn pop_start(&mut self, now_s: u64) -> Option<RequestId> {
        let &(start_s, id) = self.starts.first()?;
        if start_s > now_s {
            return None;
        }
        self.starts.pop_first();
        Some(id)
    }

    /// Removes a request that has started from those for which a better place is sought.
    pub(crate) fn started(&mut self, turn: &Turn) {
        self.planned.remove(turn);
    }

    /// Planned requests with their starts, the earliest first.
    pub(crate) fn starts(&self) -> impl Iterator<Item = (u64, RequestId)> + '_ {
        self.starts.iter().copied()
    }

    /// Start of the next request.
    pub(crate) fn next_start_s(&self) -> Option<u64> {
        self.starts.first().map(|&(start_s, _)| start_s)
    }

    /// Requests whose start is before that time, the earliest first.
    pub(crate) fn passed(&self, before_s: u64) -> Vec<RequestId> {
        let passed = self.starts.iter();
        let passed = passed.take_while(|&&(start_s, _)| start_s < before_s);
        passed.map(|&(_, id)| id).collect()
    }

    /// Gives a request another turn, in the queue in which it is.
    pub(crate) fn change_turn(&mut self, from: &Turn, to: Turn) {
        for queue in [&mut self.waiting, &mut self.planned] {
            if queue.remove(from) {
                queue.insert(to);
            }
        }
    }

    /// Planned request whose turn is next.
    pub(crate) fn next_planned(&self, after: Option<Turn>) -> Option<Turn> {
        let after = after.map_or(Bound::Unbounded, Bound::Excluded);
        self.planned.range((after, Bound::Unbounded)).next().copied()
    }

    /// Planned request that starts next after another one, with its start.
    pub(crate) fn next_start_after(
        &self,
        after: Option<(u64, RequestId)>,
    ) -> Option<(u64, RequestId)> {
        let after = after.map_or(Bound::Unbounded, Bound::Excluded);
        self.starts.range((after, Bound::Unbounded)).next().copied()
    }

    /// Requests without a place, by turn.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = RequestId> + '_ {
        self.waiting.iter().map(|&(_, _, id)| id)
    }

    /// Request without a place whose turn is next.
    pub(crate) fn next_waiting(&self, after: Option<Turn>) -> Option<Turn> {
        let after = after.map_or(Bound::Unbounded, Bound::Excluded);
        self.waiting.range((after, Bound::Unbounded)).next().copied()
    }

    /// Adds a provisional request, which is dropped at that time.
    pub(crate) fn drop_at(&mut self, until_s: u64, id: RequestId) {
        self.unconfirmed.insert((until_s, id));
    }

    /// Removes a provisional request: it is confirmed or has ended.
    pub(crate) fn drop_no_more(&mut self, until_s: u64, id: RequestId) {
        self.unconfirmed.remove(&(until_s, id));
    }

    /// Time at which the next provisional request is dropped.
    pub(crate) fn next_drop_s(&self) -> Option<u64> {
        self.unconfirmed.first().map(|&(until_s, _)| until_s)
    }

    /// Provisional requests that are to be dropped by now.
    pub(crate) fn unconfirmed(&self, now_s: u64) -> Vec<RequestId> {
        let over = self.unconfirmed.range(..=(now_s, RequestId::MAX));
        over.map(|&(_, id)| id).collect()
    }

    /// Time of the next check of waiting requests.
    pub(crate) fn next_check_s(&self) -> Option<u64> {
        self.next_check_s
    }

    /// All waiting requests were checked.
    pub(crate) fn checked(&mut self) {
        self.next_check_s = None;
    }

    /// Schedules the next check of waiting requests: with a horizon, well before it has passed.
    pub(crate) fn check_again(&mut self, now_s: u64, horizon_s: Option<u64>) {
        let horizon_s = horizon_s.filter(|_| !self.waiting.is_empty());
        let check_s = horizon_s.map(|horizon_s| now_s.saturating_add((horizon_s / CHECKS).max(1)));
        self.next_check_s = match (self.next_check_s, check_s) {
            (Some(before_s), Some(check_s)) => Some(before_s.min(check_s)),
            (_, check_s) => check_s,
        };
    }
}
