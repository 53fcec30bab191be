// SPDX-License-Identifier: GPL-2.0
//! Waiting requests: those that were accepted and have no place yet get one in passes by priority
//! and time of submission, a few requests at a time.

use std::ops::Range;
use std::sync::Arc;

use crate::budget::SearchBudget;
use crate::need::Need;
use crate::planner::{Entry, Planner};
use crate::types::{RequestId, Turn, Who};

/// Number of fruitless tries of a pass after which, behind a horizon, the remaining requests are
/// skipped: the first that find nothing speak for the others.
const MAX_TRIES: usize = 256;

/// Largest number of searches in vain that are remembered.
const MOST_FAILED: usize = 64;

/// A search that found no place.
#[derive(Clone, Debug)]
struct Failed {
    need: Arc<Need>,
    who: Arc<Who>,
    window: Range<u64>,
    is_late: bool,
    /// Time behind which nothing was to start; `None`: no such time.
    horizon_s: Option<u64>,
}

impl Failed {
    /// Whether a request can't have a place either, in the same version of the plan.
    fn excludes(&self, horizon_s: Option<u64>, entry: &Entry, window: &Range<u64>) -> bool {
        self.horizon_s == horizon_s
            && self.window.start <= window.start
            && window.end <= self.window.end
            && self.is_late == entry.when.is_late()
            && (Arc::ptr_eq(&self.who, &entry.who) || self.who == entry.who)
            && (Arc::ptr_eq(&self.need, &entry.need) || self.need == entry.need)
    }
}

/// Progress of a pass over the waiting requests.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waiting {
    is_due: bool,
    /// Whether another pass follows the present one.
    is_due_again: bool,
    /// Turn of the last request that was tried.
    last: Option<Turn>,
    /// Place at which the pass goes on after those before it have had another turn.
    resume: Option<Turn>,
    /// Number of fruitless tries since the pass went back.
    in_vain_again: usize,
    /// Whether a request has got a place in this pass.
    has_planned: bool,
    /// Number of fruitless tries in this pass.
    in_vain: usize,
    /// Number of searches for waiting requests up to now.
    searches: u64,
    /// Searches that found nothing in this version of the plan.
    failed: Vec<Failed>,
    version: u64,
}

impl Planner {
    /// Whether waiting requests are to be tried.
    pub fn is_planning_waiting(&self) -> bool {
        self.waiting.is_due
    }

    /// Whether the present pass has tried so many requests in vain that other work goes before the
    /// rest of them.
    pub fn is_waiting_in_vain(&self) -> bool {
        self.waiting.in_vain >= MAX_TRIES
    }

    /// Returns the number of searches for waiting requests up to now. A request that equals one
    /// that has just found nothing is not searched for.
    pub fn waiting_searches(&self) -> u64 {
        self.waiting.searches
    }

    /// Makes a pass over all waiting requests due: see [`Self::plan_some_waiting`].
    pub fn plan_waiting_later(&mut self) {
        self.queues.checked();
        if self.queues.waiting().next().is_none() {
            return;
        }
        if self.waiting.resume.is_some() {
            self.waiting.is_due_again = true;
        } else {
            // What is free now is first for those that have had their turn.
            self.waiting.resume = self.waiting.last.take();
            self.waiting.in_vain_again = 0;
        }
        self.waiting.is_due = true;
    }

    /// Gives those that wait a place, if there is one now, by priority and time of submission.
    /// Returns those that got one. The rest of a pass for which the budget of one call does not
    /// suffice stays due.
    pub fn plan_waiting(&mut self, now_s: u64) -> Vec<RequestId> {
        self.plan_waiting_within(now_s, &SearchBudget::default())
    }

    pub(crate) fn plan_waiting_within(
        &mut self,
        now_s: u64,
        budget: &SearchBudget,
    ) -> Vec<RequestId> {
        // What became free may be for requests whose turn is over.
        self.waiting = Waiting { searches: self.waiting.searches, ..Waiting::default() };
        self.plan_waiting_later();
        let planned = self.plan_some_waiting(now_s, usize::MAX, budget);
        if !self.waiting.is_due {
            self.queues.check_again(now_s, self.policy.horizon_s);
        }
        planned
    }

    /// Tries so many requests of the pass that is due, as long as the budget has looks left.
    /// Returns those that got a place.
    pub fn plan_some_waiting(
        &mut self,
        now_s: u64,
        most: usize,
        budget: &SearchBudget,
    ) -> Vec<RequestId> {
        let mut planned = Vec::new();
        for _ in 0..most {
            if !self.waiting.is_due || budget.is_empty() {
                break;
            }
            let is_over = self.policy.horizon_s.is_some() && self.waiting.in_vain >= MAX_TRIES;
            self.go_on_behind_resumed();
            let next = self.queues.next_waiting(self.waiting.last).filter(|_| !is_over);
            let Some(turn) = next else {
                self.end_pass_of_waiting(now_s);
                continue;
            };
            self.waiting.last = Some(turn);
            if self.try_waiting(now_s, turn.2, budget) {
                self.waiting.has_planned = true;
                planned.push(turn.2);
            } else {
                self.waiting.in_vain += 1;
                self.waiting.in_vain_again += 1;
            }
        }
        planned
    }

    /// Lets a pass that went back go on where it was: when all before that place have had their
    /// turn, or the first of them have found nothing. Otherwise who frees something again and again
    /// would keep all others from their turn.
    fn go_on_behind_resumed(&mut self) {
        let Some(resume) = self.waiting.resume else {
            return;
        };
        let is_there = self.waiting.last.is_some_and(|last| last >= resume);
        if !is_there && self.waiting.in_vain_again < MAX_TRIES {
            return;
        }
        self.waiting.resume = None;
        if !is_there {
            self.waiting.last = Some(resume);
            self.waiting.is_due_again = true;
        }
    }

    fn end_pass_of_waiting(&mut self, now_s: u64) {
        // A request that follows one that was planned has its turn now.
        // A pass that went back may end before it is where it was: with a horizon.
        let is_due = self.waiting.is_due_again
            || self.waiting.resume.is_some()
            || self.waiting.has_planned && !self.followers.is_empty();
        self.waiting = Waiting { is_due, searches: self.waiting.searches, ..Waiting::default() };
        if !is_due {
            self.queues.check_again(now_s, self.policy.horizon_s);
        }
    }

    fn try_waiting(&mut self, now_s: u64, id: RequestId, budget: &SearchBudget) -> bool {
        if self.waiting.version != self.version {
            self.waiting.failed.clear();
            self.waiting.version = self.version;
        }
        let Some(entry) = self.entries.get(&id) else {
            return false;
        };
        budget.take(1 + entry.after.len());
        let Some(window) = self.window(now_s, entry) else {
            return false;
        };
        // Only requests without a time of their own stay before the horizon.
        let horizon_s = self.policy.horizon_s.filter(|_| !entry.when.is_bound());
        let horizon_s = horizon_s.map(|horizon_s| now_s.saturating_add(horizon_s));
        let mut failed = self.waiting.failed.iter();
        if failed.any(|failed| failed.excludes(horizon_s, entry, &window)) {
            return false;
        }
        let (need, who) = (entry.need.clone(), entry.who.clone());
        let is_late = entry.when.is_late();
        self.waiting.searches += 1;
        if self.seek_place(now_s, id, budget) {
            // Followers may have kept a place from before this request lost its own.
            self.keep_order(now_s, &[id], budget);
            // A place that was taken leaves none to those that found none before.
            self.waiting.version = self.version;
            return true;
        }
        if budget.is_exact() && self.waiting.failed.len() < MOST_FAILED {
            self.waiting.failed.push(Failed { need, who, window, is_late, horizon_s });
        }
        false
    }

    /// Returns the time at which [`Self::plan_waiting`] must run again.
    pub fn next_look_s(&self) -> Option<u64> {
        self.queues.next_check_s()
    }
}
