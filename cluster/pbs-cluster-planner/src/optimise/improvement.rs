// SPDX-License-Identifier: GPL-2.0
//! A better plan on the nodes of a planner, under all of its rules: sought in pieces beside the
//! present plan, and taken as a whole or not at all.
//!
//! The search plans on a copy of the profiles. Between two orders it gives back only the requests
//! behind the first place at which they differ.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use pbs_site::{Promise, User};

use super::score::{Cost, Objective, WaitingJob};
use super::search::{Board, Budget, Search};
use crate::budget::SearchBudget;
use crate::machine::NCPUS;
use crate::need::amount_of;
use crate::planner::{Entry, Planner};
use crate::request::When;
use crate::rules::Rules;
use crate::search::Place;
use crate::types::RequestId;

/// Number of requests that a search moves at most: those with the earliest starts.
pub const MOST_IMPROVED: usize = 512;
/// Number of unfinished requests above which no search begins, since it copies the plan.
const MOST_COPIED: usize = 8_192;
/// Orders after which the best order of an earlier search is scored: the current one, and itself.
pub const EARLIER_ORDERS: u64 = 2;
/// Part of its cost by which a plan must be better to be taken.
const LEAST_GAIN: f64 = 1e-9;

/// Parameters of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Improving {
    /// Cost of a plan.
    pub objective: Objective,
    /// Work after which the search ends.
    pub budget: Budget,
    /// Seed of the search.
    pub seed: u64,
}

/// A search for a better plan of a [`Planner`], which goes on beside it.
#[derive(Debug)]
pub struct Improvement {
    search: Search<Copied>,
    jobs: Vec<WaitingJob>,
    /// Numbers of the requests, in the order of the jobs.
    ids: Vec<RequestId>,
    /// Best order of an earlier search, which is tried again.
    earlier: Vec<RequestId>,
    objective: Objective,
    /// Time at which the search began.
    now_s: u64,
    /// Cost of the plan as it stands.
    standing: Cost,
    /// Version of the plan that is improved.
    version: u64,
}

/// A copy of a plan, in which requests are moved.
#[derive(Debug)]
struct Copied {
    /// Planner of the requests that move, on the profiles of all.
    planner: Planner,
    requests: Vec<Movable>,
    /// Requests that have a place, in the order in which they were placed.
    placed: Vec<u32>,
    /// Requests whose places are not part of the order that is scored.
    returned: Vec<u32>,
}

#[derive(Clone, Debug)]
struct Movable {
    id: RequestId,
    /// Interval in which it may be placed.
    window: Range<u64>,
}

impl Copied {
    fn id(&self, place: u32) -> RequestId {
        self.requests[place as usize].id
    }
}

/// A request can hold hundreds of nodes. Therefore a call changes the place of one request only,
/// and no plan is stored beside the copy: at the end, the copy has the best one.
impl Board for Copied {
    const ENDS_WITH_BEST: bool = true;

    fn begin(&mut self, order: &[u32]) -> usize {
        let same = self.placed.iter().zip(order).take_while(|(one, other)| one == other).count();
        self.returned.extend(self.placed.drain(same..));
        same
    }

    fn give_back(&mut self) -> bool {
        let Some(place) = self.returned.pop() else {
            return false;
        };
        // None of it has passed: it only was an attempt.
        self.planner.take_place(0, self.id(place));
        true
    }

    fn place(&mut self, job: u32) -> Option<u64> {
        let Movable { id, window } = self.requests[job as usize].clone();
        let Planner { nodes, machine, .. } = &mut self.planner;
        nodes.renew_gaps(machine, &SearchBudget::default());
        let place = self.planner.place_in(id, window)?;
        let start_s = place.start_s;
        self.planner.set_place(id, place);
        self.placed.push(job);
        Some(start_s)
    }
}

impl Improvement {
    /// Places up to so many requests. Returns whether the search goes on.
    pub fn run(&mut self, placements: u64) -> bool {
        self.search.run(placements)
    }

    /// Whether the search improves this version of the plan.
    pub fn is_of(&self, version: u64) -> bool {
        self.version == version
    }

    /// Returns the number of orders that were scored.
    pub fn orders(&self) -> u64 {
        self.search.orders()
    }

    /// Returns the number of requests that were placed, over all orders.
    pub fn placements(&self) -> u64 {
        self.search.placements()
    }

    /// Returns the number of requests that the search moves.
    pub fn requests(&self) -> usize {
        self.jobs.len()
    }

    /// Returns the cost of the plan as it stands, by part.
    pub fn standing_cost(&self) -> Cost {
        self.standing
    }

    /// Returns the requests in the best order up to now; none: no order keeps all promises. An
    /// order of an earlier search that is not scored yet counts as the best one.
    pub fn best_order(&self) -> Vec<RequestId> {
        if !self.earlier.is_empty() && self.orders() <= EARLIER_ORDERS {
            return self.earlier.clone();
        }
        let order = self.search.best_cost().map(|_| self.search.best().0);
        order.into_iter().flatten().map(|&place| self.ids[place as usize]).collect()
    }

    /// Tries the best order of an earlier search after the order of the current plan. Requests
    /// that are new since follow in the order of the current plan.
    pub fn try_order(&mut self, order: &[RequestId]) {
        let places: HashMap<RequestId, u32> = self.ids.iter().copied().zip(0..).collect();
        let mut earlier: Vec<u32> = order.iter().filter_map(|id| places.get(id).copied()).collect();
        let known: HashSet<u32> = earlier.iter().copied().collect();
        let current = self.search.best().0.iter().copied();
        earlier.extend(current.filter(|place| !known.contains(place)));
        self.search.try_earlier(earlier);
        self.earlier = order.to_vec();
    }
}

impl Planner {
    /// Begins a search for a better plan. Requests stay where they are if their start is fixed,
    /// late by choice or fixed by the policy, if they follow others or are followed, and if they
    /// are reservations. Requests without a place keep waiting.
    ///
    /// `expected_s` returns the expected run time of a request, on which the cost of its wait
    /// depends; `None`: its limit. The limit stays booked.
    ///
    /// Returns `None` if fewer than two requests can move, or there are too many to copy the plan.
    pub fn improvement(
        &self,
        now_s: u64,
        with: &Improving,
        expected_s: &dyn Fn(RequestId) -> Option<u64>,
    ) -> Option<Improvement> {
        if self.entries.len() > MOST_COPIED {
            return None;
        }
        let now_s = self.policy.point_s(now_s);
        let ids = self.queues.starts().map(|(_, id)| id);
        let movable = ids.filter_map(|id| self.movable(now_s, id)).take(MOST_IMPROVED);
        let mut movable: Vec<(&Entry, Movable)> = movable.collect();
        if movable.len() < 2 {
            return None;
        }
        movable.sort_by_key(|(entry, of)| entry.turn(of.id));
        let mut core_s: HashMap<&User, u64> = HashMap::new();
        for (entry, _) in &movable {
            let area = cores(entry).saturating_mul(entry.need.duration_s);
            let of_user = core_s.entry(&entry.who.user).or_default();
            *of_user = of_user.saturating_add(area);
        }
        let jobs = movable.iter().map(|(entry, of)| {
            let duration_s = entry.need.duration_s;
            let wanted_start_s = match entry.when {
                When::Agreement { end_s } => end_s.saturating_sub(duration_s),
                _ => u64::MAX,
            };
            WaitingJob {
                expected_s: expected_s(of.id).unwrap_or(entry.need.asked_s()),
                waited_s: now_s.saturating_sub(entry.submit_s),
                latest_start_s: of.window.end.saturating_sub(duration_s),
                wanted_start_s,
                user_core_s: core_s.get(&entry.who.user).copied().unwrap_or(0),
                ..WaitingJob::new(cores(entry), duration_s)
            }
        });
        let jobs: Vec<WaitingJob> = jobs.collect();
        let start_s = |entry: &Entry| entry.place.as_ref().map_or(now_s, |place| place.start_s);
        let starts_s: Vec<u64> = movable.iter().map(|(entry, _)| start_s(entry)).collect();
        let mut current: Vec<u32> = (0..jobs.len() as u32).collect();
        current.sort_by_key(|&place| starts_s[place as usize]);
        let standing = with.objective.cost_by_part(now_s, jobs.iter().zip(starts_s));
        let requests: Vec<Movable> = movable.into_iter().map(|(_, of)| of).collect();
        let ids: Vec<RequestId> = requests.iter().map(|of| of.id).collect();
        let planner = self.copy_of(ids.iter().copied());
        let returned = (0..jobs.len() as u32).collect();
        let copied = Copied { planner, requests, placed: Vec::new(), returned };
        let Improving { objective, budget, seed } = *with;
        let search = Search::new(copied, now_s, jobs.clone(), &current, objective, budget, seed);
        let version = self.version;
        let earlier = Vec::new();
        Some(Improvement { search, jobs, ids, earlier, objective, now_s, standing, version })
    }

    /// Returns a request that may be moved, with the interval in which it may be placed.
    fn movable(&self, now_s: u64, id: RequestId) -> Option<(&Entry, Movable)> {
        let entry = self.entries.get(&id)?;
        let over = entry.over()?;
        let is_fixed = self.is_told(now_s, id, over.start);
        let stays = matches!(entry.when, When::Fixed { .. }) || entry.when.is_late();
        let is_bound = !entry.after.is_empty() || self.followers.has(id);
        let is_other = entry.is_running || entry.inside.is_some() || over.start < now_s;
        if is_fixed || stays || is_bound || is_other {
            return None;
        }
        let mut window = self.window(now_s, entry)?;
        if entry.promise == Promise::Start {
            window.end = window.end.min(over.end);
        }
        if let (false, Some(horizon_s)) = (entry.when.is_bound(), self.policy.horizon_s) {
            let last_s = now_s.saturating_add(horizon_s).max(over.start);
            window.end = window.end.min(last_s.saturating_add(entry.need.duration_s));
        }
        Some((entry, Movable { id, window }))
    }

    /// Returns a planner of some of the requests, on the profiles of all.
    fn copy_of(&self, ids: impl Iterator<Item = RequestId>) -> Self {
        let mut copy = Self::with_policy(self.machine.clone(), Rules::default(), self.policy);
        copy.nodes = self.nodes.clone();
        copy.system = self.system.clone();
        let entries = ids.filter_map(|id| Some((id, self.entries.get(&id)?.clone())));
        copy.entries = entries.collect();
        copy
    }

    /// The earliest place of a request in an interval.
    fn place_in(&self, id: RequestId, window: Range<u64>) -> Option<Place> {
        let entry = self.entries.get(&id)?;
        self.search(&entry.who, &SearchBudget::default()).earliest(&entry.need, window)
    }

    /// Takes the best plan that a search found at its end, if it costs less than the present one.
    /// All of its requests get their places, or none. Requests whose new start has passed meanwhile
    /// start as early as can be. The profiles of the copy become those of the plan, therefore no
    /// other request is booked again.
    ///
    /// Returns the number of requests that moved, and the cost of the plan afterwards. No request
    /// moves if the plan has changed since the search began.
    pub fn take_improvement(&mut self, now_s: u64, improvement: Improvement) -> (usize, Cost) {
        let Improvement { search, jobs, objective, now_s: begun_s, standing, .. } = improvement;
        let least_cost = standing.total() * (1.0 - LEAST_GAIN);
        let is_better = search.best_cost().is_some_and(|cost| cost < least_cost);
        let mut copied = search.into_board();
        let has_best = copied.placed.len() == copied.requests.len() && copied.returned.is_empty();
        if improvement.version != self.version || !is_better || !has_best {
            return (0, standing);
        }
        let now_s = self.policy.point_s(now_s);
        self.exchange(&mut copied);
        let is_moved = |of: &&Movable| self.place(of.id) != copied.planner.place(of.id);
        let moved: Vec<Movable> = copied.requests.iter().filter(is_moved).cloned().collect();
        // Somebody may have been told its place since the search began.
        let was_told = |of: &Movable| {
            let before = copied.planner.place(of.id);
            before.is_some_and(|place| self.is_told(now_s, of.id, place.start_s))
        };
        if moved.iter().any(was_told) {
            self.exchange(&mut copied);
            return (0, standing);
        }
        let is_passed = |of: &&Movable| self.place(of.id).is_none_or(|of| of.start_s < now_s);
        let passed: Vec<Movable> = moved.iter().filter(is_passed).cloned().collect();
        for of in &passed {
            self.take_place(0, of.id);
        }
        let mut has_all = true;
        for of in passed {
            let window = of.window.start.max(now_s)..of.window.end;
            match self.place_in(of.id, window) {
                Some(place) => self.set_place(of.id, place),
                None => has_all = false,
            }
        }
        let starts_s = copied.requests.iter().filter_map(|of| Some(self.place(of.id)?.start_s));
        let cost = objective.cost_by_part(begun_s, jobs.iter().zip(starts_s));
        if has_all && cost.total() < least_cost {
            for of in &moved {
                self.changed(of.id);
            }
            // Others may have room before their start now.
            self.backfill.add(now_s);
            return (moved.len(), cost);
        }
        self.exchange(&mut copied);
        (0, standing)
    }

    /// Exchanges the profiles and the places of some requests with those of a copy.
    fn exchange(&mut self, copied: &mut Copied) {
        std::mem::swap(&mut self.nodes, &mut copied.planner.nodes);
        std::mem::swap(&mut self.system, &mut copied.planner.system);
        for of in &copied.requests {
            let other = copied.planner.entries.get_mut(&of.id);
            let (Some(entry), Some(other)) = (self.entries.get_mut(&of.id), other) else {
                continue;
            };
            if entry.place == other.place {
                continue;
            }
            let turn = entry.turn(of.id);
            if let Some(place) = &entry.place {
                self.queues.unplan(place.start_s, &turn);
            }
            std::mem::swap(&mut entry.place, &mut other.place);
            if let Some(place) = &entry.place {
                self.queues.plan(place.start_s, turn);
            }
        }
    }

    fn place(&self, id: RequestId) -> Option<&Place> {
        self.entries.get(&id)?.place.as_ref()
    }

    /// Returns a number that another one follows whenever the plan changes.
    pub fn version(&self) -> u64 {
        self.version
    }
}

fn cores(entry: &Entry) -> u64 {
    amount_of(&entry.need.sums, NCPUS)
}
