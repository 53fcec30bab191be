// SPDX-License-Identifier: GPL-2.0
//! Orders that wait.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use pbs_history::RunId;

use crate::admitting::Decision;
use crate::orders::{Ended, Retries, Waiting};

/// Interval at which orders are checked that lack something which others may give back unseen.
const AGAIN: Duration = Duration::from_secs(1);
/// Ends of runs that are remembered.
const MOST_ENDS: usize = 65_536;

/// Orders that wait, in the order in which they came.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    waiting: Vec<Waiting>,
    /// Runs of these orders, and of those that are being checked.
    ids: BTreeSet<RunId>,
    /// Whether admission is stopped until the node is told to admit again.
    drained: bool,
    /// An order may not have to wait any more.
    is_due: bool,
    /// Time at which orders are checked again that lack something of the system.
    again: Option<Instant>,
    /// Ends of runs that others wait for: the history is asked for each once.
    ends: RefCell<BTreeMap<RunId, Ended>>,
    /// Runs whose programs were not ready in time.
    pub(crate) retries: Retries,
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

    /// Whether the order of a run waits, or is being checked.
    pub(crate) fn has(&self, id: RunId) -> bool {
        self.ids.contains(&id)
    }

    /// Adds an order.
    pub(crate) fn push(&mut self, waiting: Waiting) {
        self.ids.insert(waiting.id);
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

    /// Notes the decision about an order, which is checked again.
    pub(crate) fn decide(&mut self, id: RunId, decision: Decision) {
        let mut all = self.waiting.iter_mut();
        if let Some(waiting) = all.find(|waiting| waiting.id == id) {
            waiting.decision = Some(decision);
        }
        self.check_again();
    }

    /// Forgets the decisions about all orders, which are checked again.
    pub(crate) fn undecide_all(&mut self) {
        self.waiting.iter_mut().for_each(|waiting| waiting.decision = None);
        self.check_again();
    }

    /// Forgets the decisions about some orders, which are checked again. Returns the runs of these
    /// orders.
    pub(crate) fn undecide(&mut self, is_void: impl Fn(&Waiting) -> bool) -> Vec<RunId> {
        let void = self.waiting.iter_mut().filter(|waiting| is_void(waiting)).map(|waiting| {
            waiting.decision = None;
            waiting.id
        });
        let void = void.collect();
        self.check_again();
        void
    }

    /// Removes the order of a run.
    pub(crate) fn remove(&mut self, id: RunId) -> Option<Waiting> {
        let place = self.waiting.iter().position(|waiting| waiting.id == id)?;
        self.ids.remove(&id);
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

    /// Checks the orders in a while: one lacks something of the system.
    pub(crate) fn check_in_a_while(&mut self) {
        self.again.get_or_insert_with(|| Instant::now() + AGAIN);
    }

    /// Checks the orders at that time, or before.
    pub(crate) fn check_at(&mut self, at: Instant) {
        self.again = Some(self.again.map_or(at, |again| again.min(at)));
    }

    /// Checks the orders again in the next round: not all of them were tried in this one.
    pub(crate) fn check_in_next_round(&mut self) {
        self.again = Some(Instant::now());
    }

    /// Returns the end of a run that has ended, which `ask` looks up if it is not remembered.
    pub(crate) fn end_of(&self, id: RunId, ask: impl FnOnce() -> Option<Ended>) -> Option<Ended> {
        if let Some(&ended) = self.ends.borrow().get(&id) {
            return Some(ended);
        }
        let ended = ask()?;
        let mut ends = self.ends.borrow_mut();
        if ends.len() >= MOST_ENDS {
            ends.clear();
        }
        ends.insert(id, ended);
        Some(ended)
    }

    /// Time until orders are checked again, in milliseconds; negative: when something happens.
    pub(crate) fn again_ms(&self, now: Instant) -> i32 {
        let left = self.again.map(|again| again.saturating_duration_since(now));
        left.map_or(-1, |left| left.as_millis() as i32 + 1)
    }

    /// Whether orders are to be checked.
    pub(crate) fn is_due(&self) -> bool {
        self.is_due || self.again.is_some_and(|again| again <= Instant::now())
    }

    /// Removes all orders if they are to be checked. They count as waiting until those that still
    /// wait are put back, or one is settled.
    pub(crate) fn take_due(&mut self) -> Option<Vec<Waiting>> {
        let is_due = self.is_due();
        if is_due {
            (self.is_due, self.again) = (false, None);
        }
        (is_due && !self.waiting.is_empty()).then(|| std::mem::take(&mut self.waiting))
    }

    /// Notes that an order does not wait any more.
    pub(crate) fn settled(&mut self, id: RunId) {
        self.ids.remove(&id);
    }

    /// Puts those back that still wait.
    pub(crate) fn put_back(&mut self, mut left: Vec<Waiting>) {
        left.append(&mut self.waiting);
        left.sort_by_key(|waiting| waiting.id);
        self.ids = left.iter().map(|waiting| waiting.id).collect();
        self.waiting = left;
    }
}

#[cfg(test)]
mod tests {
    use pbs_history::Outcome;

    use super::*;

    /// Hundreds of orders may wait for the same runs, and are checked each time that one of them
    /// is shown.
    #[test]
    fn the_end_of_a_run_is_looked_up_once() {
        let backlog = Backlog::default();
        let mut asked = 0;
        let mut ask = |ended: Option<Ended>| {
            backlog.end_of(RunId(7), || {
                asked += 1;
                ended
            })
        };
        assert_eq!(ask(None), None);
        let ended = Ended { outcome: Outcome::Complete, well: true };
        assert_eq!(ask(Some(ended)), Some(ended));
        assert_eq!(ask(None), Some(ended));
        assert_eq!(asked, 2);
    }
}
