// SPDX-License-Identifier: GPL-2.0
//! The search among orders.

use pbs_random::Random;

use super::orders::{change, next_permutation, sorted};
use super::pool::Pool;
use super::score::{Objective, Scorer, WaitingJob};

/// All permutations of so many jobs are tried: 120.
const MOST_PERMUTED: usize = 5;
/// The first temperature, as a part of the distance between the worst and the best sorted order.
const FIRST_TEMPERATURE: f64 = 0.1;
/// The last temperature, as a part of the first one.
const LAST_TEMPERATURE: f64 = 0.001;

/// Work after which a search ends, whichever is spent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Number of orders that are scored.
    pub orders: u64,
    /// Number of jobs that are placed, over all orders. The current plan is always placed.
    pub placements: u64,
}

impl Default for Budget {
    fn default() -> Self {
        Self { orders: 200, placements: 20_000 }
    }
}

/// Best plan that a search found.
#[derive(Clone, Debug, PartialEq)]
pub struct BestPlan {
    /// Planned start of each job, in the order of the jobs.
    pub starts_s: Vec<u64>,
    /// Cost of the plan.
    pub cost: f64,
    /// Cost of the current plan, with which the search began.
    pub first_cost: f64,
    /// Number of orders that were scored.
    pub orders: u64,
    /// Number of jobs that were placed.
    pub placements: u64,
}

/// State of a search.
struct Search<'a> {
    scorer: Scorer<'a>,
    budget: Budget,
    orders: u64,
    /// Starts of the order that was scored last.
    starts_s: Vec<u64>,
    best: Vec<u32>,
    best_starts_s: Vec<u64>,
    best_cost: f64,
}

impl Search<'_> {
    fn is_spent(&self) -> bool {
        self.orders >= self.budget.orders || self.scorer.placements >= self.budget.placements
    }

    /// Scores an order, and keeps it if it is the best. `None`: its cost is more than `most`, or it
    /// breaks a promise.
    fn score(&mut self, order: &[u32], most: f64) -> Option<f64> {
        self.orders += 1;
        let cost = self.scorer.score(order, most, &mut self.starts_s)?;
        if cost < self.best_cost {
            self.best_cost = cost;
            self.best.copy_from_slice(order);
            self.best_starts_s.copy_from_slice(&self.starts_s);
        }
        Some(cost)
    }

    fn permute(&mut self, jobs: usize) {
        let mut order: Vec<u32> = (0..jobs as u32).collect();
        loop {
            if self.is_spent() {
                return;
            }
            self.score(&order, self.best_cost);
            if !next_permutation(&mut order) {
                return;
            }
        }
    }

    /// Anneals from the best order. The temperature falls with the spent part of the budget.
    fn anneal(&mut self, range: f64, random: &mut Random) {
        let mut current = self.best.clone();
        let mut current_cost = self.best_cost;
        let mut next = current.clone();
        let from = self.spent();
        while !self.is_spent() {
            let part = ((self.spent() - from) / (1.0 - from)).clamp(0.0, 1.0);
            let temperature = range * FIRST_TEMPERATURE * libm::pow(LAST_TEMPERATURE, part);
            // The chance is drawn first: a plan that costs more is given up on the way.
            let chance = 1.0 - random.unit();
            let most = current_cost - temperature * libm::log(chance);
            next.copy_from_slice(&current);
            change(&mut next, random);
            if let Some(cost) = self.score(&next, most) {
                current_cost = cost;
                std::mem::swap(&mut current, &mut next);
            }
        }
    }

    /// Returns the part of the budget that is spent.
    fn spent(&self) -> f64 {
        let part = |of: u64, all: u64| of as f64 / all.max(1) as f64;
        let orders = part(self.orders, self.budget.orders);
        orders.max(part(self.scorer.placements, self.budget.placements)).min(1.0)
    }
}

/// Seeks the plan of all jobs with the least cost. `current` is the order of the current plan; its
/// plan is the result unless another one costs less, and keeps all promises. Equal arguments have
/// equal results on every machine.
///
/// Returns `None` if a job is wider than the pool, or the current order breaks a promise and so
/// does every other one that was tried.
///
/// ```
/// use pbs_cluster_planner::optimise::{optimise, Budget, Objective, Pool, WaitingJob};
///
/// let job = |cores, duration_s| WaitingJob {
///     cores,
///     duration_s,
///     expected_s: duration_s,
///     waited_s: 0,
///     latest_start_s: u64::MAX,
/// };
/// // The short job goes first, although it came last.
/// let jobs = [job(4, 1_000), job(4, 10)];
/// let (free, objective) = (Pool::new(0, 4), Objective::default());
/// let found = optimise(0, &free, &jobs, &[0, 1], objective, Budget::default(), 1).unwrap();
/// assert_eq!(found.starts_s, [10, 0]);
/// assert!(found.cost < found.first_cost);
/// ```
pub fn optimise(
    now_s: u64,
    free: &Pool,
    jobs: &[WaitingJob],
    current: &[u32],
    objective: Objective,
    budget: Budget,
    seed: u64,
) -> Option<BestPlan> {
    let mut search = Search {
        scorer: Scorer::new(now_s, free, jobs, objective),
        budget,
        orders: 0,
        starts_s: vec![0; jobs.len()],
        best: current.to_vec(),
        best_starts_s: vec![0; jobs.len()],
        best_cost: f64::INFINITY,
    };
    let first_cost = search.score(current, f64::INFINITY).unwrap_or(f64::INFINITY);
    if jobs.len() <= MOST_PERMUTED {
        search.permute(jobs.len());
    } else {
        let mut worst = first_cost;
        for order in sorted(jobs, &objective) {
            if search.is_spent() {
                break;
            }
            if let Some(cost) = search.score(&order, f64::INFINITY) {
                worst = if worst.is_finite() { worst.max(cost) } else { cost };
            }
        }
        if search.best_cost.is_finite() {
            search.anneal(worst - search.best_cost, &mut Random::new(seed));
        }
    }
    search.best_cost.is_finite().then_some(BestPlan {
        cost: search.best_cost,
        first_cost,
        orders: search.orders,
        placements: search.scorer.placements,
        starts_s: search.best_starts_s,
    })
}
