// SPDX-License-Identifier: GPL-2.0
//! The search among orders, job by job: a caller can stop it after any of them and resume it later.

use pbs_random::Random;

use super::orders::{change, next_permutation, sorted};
use super::score::{Objective, Sum, WaitingJob};

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

/// Resources on which the jobs of an order are placed one after the other.
pub(crate) trait Board {
    /// Whether the board is to have the plan of the best order when the search has ended.
    const ENDS_WITH_BEST: bool = false;

    /// Prepares for an order. Returns the number of its first jobs that are placed already, each
    /// where it was placed last. The places of others are given back by [`Self::give_back`].
    fn begin(&mut self, order: &[u32]) -> usize;

    /// Gives one place back that is not part of the order; false: there is none, and the next job
    /// can be placed.
    fn give_back(&mut self) -> bool {
        false
    }

    /// Places the next job of the order at its earliest fit. Returns its start; `None`: it has
    /// none.
    fn place(&mut self, job: u32) -> Option<u64>;
}

/// A search for the order with the least cost.
#[derive(Debug)]
pub(crate) struct Search<B> {
    board: B,
    now_s: u64,
    jobs: Vec<WaitingJob>,
    objective: Objective,
    budget: Budget,
    random: Random,
    orders: u64,
    placements: u64,
    phase: Phase,
    /// Order that is being scored.
    trial: Vec<u32>,
    /// Order that is tried after the current one.
    earlier: Option<Vec<u32>>,
    /// Costs of its first jobs, which are placed.
    sums: Vec<Sum>,
    /// Cost above which the order is given up.
    most: f64,
    /// Start of each job when it was placed last.
    starts_s: Vec<u64>,
    best: Vec<u32>,
    best_starts_s: Vec<u64>,
    best_cost: f64,
    first_cost: f64,
}

/// Orders that a search tries, in this sequence. The order that is being scored belongs to the
/// phase.
#[derive(Debug)]
enum Phase {
    /// Order of the current plan.
    Current,
    /// All permutations, the present one stored.
    Permutations(Vec<u32>),
    /// The best order of an earlier search and sorted orders, with the greatest cost up to now.
    Sorted { orders: std::vec::IntoIter<Vec<u32>>, worst: f64 },
    /// Random changes of an order.
    Annealing(Annealing),
    /// The best order once more: at the end, the board has its plan.
    Best,
    /// All is tried, or the budget is spent.
    Over,
}

#[derive(Debug)]
struct Annealing {
    current: Vec<u32>,
    current_cost: f64,
    /// Distance between the worst and the best sorted order.
    range: f64,
    /// Part of the budget that was spent before.
    from: f64,
}

impl<B: Board> Search<B> {
    /// Creates a search that begins with the order of the current plan.
    pub(crate) fn new(
        board: B,
        now_s: u64,
        jobs: Vec<WaitingJob>,
        current: &[u32],
        objective: Objective,
        budget: Budget,
        seed: u64,
    ) -> Self {
        let count = jobs.len();
        let mut search = Self {
            board,
            now_s,
            jobs,
            objective,
            budget,
            random: Random::new(seed),
            orders: 0,
            placements: 0,
            phase: Phase::Current,
            trial: current.to_vec(),
            earlier: None,
            sums: Vec::with_capacity(count),
            most: f64::INFINITY,
            starts_s: vec![0; count],
            best: current.to_vec(),
            best_starts_s: vec![0; count],
            best_cost: f64::INFINITY,
            first_cost: f64::INFINITY,
        };
        search.begin(f64::INFINITY);
        search
    }

    /// Tries an order after the current one: the best one of a search in an earlier plan.
    pub(crate) fn try_earlier(&mut self, order: Vec<u32>) {
        self.earlier = Some(order);
    }

    /// Places up to so many jobs, or gives places back. Returns whether the search goes on.
    pub(crate) fn run(&mut self, most: u64) -> bool {
        for _ in 0..most {
            if matches!(self.phase, Phase::Over) {
                return false;
            }
            self.step();
        }
        !matches!(self.phase, Phase::Over)
    }

    /// Returns the cost of the best order, if any keeps all promises.
    pub(crate) fn best_cost(&self) -> Option<f64> {
        self.best_cost.is_finite().then_some(self.best_cost)
    }

    pub(crate) fn first_cost(&self) -> f64 {
        self.first_cost
    }

    pub(crate) fn orders(&self) -> u64 {
        self.orders
    }

    pub(crate) fn placements(&self) -> u64 {
        self.placements
    }

    /// Returns the best order and the start of each job in its plan.
    pub(crate) fn best(&self) -> (&[u32], &[u64]) {
        (&self.best, &self.best_starts_s)
    }

    pub(crate) fn into_board(self) -> B {
        self.board
    }

    /// Begins with the order of `trial`.
    fn begin(&mut self, most: f64) {
        self.orders += u64::from(!matches!(self.phase, Phase::Best));
        self.most = most;
        let placed = self.board.begin(&self.trial);
        self.sums.truncate(placed);
    }

    /// Gives a place back, places the next job of the order, or ends the order.
    fn step(&mut self) {
        if self.board.give_back() {
            return;
        }
        let sum = self.sums.last().copied().unwrap_or(Sum::none(self.now_s));
        let Some(&place) = self.trial.get(self.sums.len()) else {
            let cost = sum.total(&self.objective, self.now_s);
            let cost = (cost <= self.most).then_some(cost);
            return self.end(cost);
        };
        let job = &self.jobs[place as usize];
        self.placements += u64::from(!matches!(self.phase, Phase::Best));
        let start_s = self.board.place(place).filter(|&start_s| start_s <= job.latest_start_s);
        let Some(start_s) = start_s else {
            return self.end(None);
        };
        self.starts_s[place as usize] = start_s;
        let sum = sum.with(&self.objective, self.now_s, job, start_s);
        self.sums.push(sum);
        if sum.total(&self.objective, self.now_s) > self.most {
            self.end(None);
        }
    }

    /// Ends an order: `None` if it costs too much, or breaks a promise.
    fn end(&mut self, cost: Option<f64>) {
        if let Some(cost) = cost.filter(|&cost| cost < self.best_cost) {
            self.best_cost = cost;
            self.best.copy_from_slice(&self.trial);
            self.best_starts_s.copy_from_slice(&self.starts_s);
        }
        let next = match std::mem::replace(&mut self.phase, Phase::Over) {
            Phase::Current => {
                self.first_cost = cost.unwrap_or(f64::INFINITY);
                if self.jobs.len() <= MOST_PERMUTED {
                    Phase::Permutations((0..self.jobs.len() as u32).collect())
                } else {
                    let mut orders: Vec<_> = self.earlier.take().into_iter().collect();
                    orders.extend(sorted(&self.jobs, &self.objective));
                    Phase::Sorted { orders: orders.into_iter(), worst: self.first_cost }
                }
            }
            Phase::Permutations(mut order) => {
                if !next_permutation(&mut order) {
                    return self.begin_best();
                }
                Phase::Permutations(order)
            }
            Phase::Sorted { orders, worst } => {
                let worst = match cost {
                    Some(cost) if worst.is_finite() => worst.max(cost),
                    Some(cost) => cost,
                    None => worst,
                };
                Phase::Sorted { orders, worst }
            }
            Phase::Annealing(mut annealing) => {
                if let Some(cost) = cost {
                    annealing.current_cost = cost;
                    annealing.current.copy_from_slice(&self.trial);
                }
                Phase::Annealing(annealing)
            }
            Phase::Best | Phase::Over => return,
        };
        self.begin_next(next);
    }

    /// Places the best order once more, if there is one: the end of the search.
    fn begin_best(&mut self) {
        if B::ENDS_WITH_BEST && self.best_cost.is_finite() {
            self.phase = Phase::Best;
            self.trial.copy_from_slice(&self.best);
            self.begin(f64::INFINITY);
        }
    }

    /// Begins with the next order of a phase.
    fn begin_next(&mut self, phase: Phase) {
        if self.is_spent() {
            return self.begin_best();
        }
        let (phase, most) = match phase {
            Phase::Permutations(order) => {
                self.trial.copy_from_slice(&order);
                (Phase::Permutations(order), self.best_cost)
            }
            Phase::Sorted { mut orders, worst } => match orders.next() {
                Some(order) => {
                    self.trial = order;
                    (Phase::Sorted { orders, worst }, f64::INFINITY)
                }
                None if self.best_cost.is_finite() => {
                    return self.begin_next(Phase::Annealing(Annealing {
                        current: self.best.clone(),
                        current_cost: self.best_cost,
                        range: worst - self.best_cost,
                        from: self.spent(),
                    }));
                }
                None => return,
            },
            Phase::Annealing(annealing) => {
                let most = self.change(&annealing);
                (Phase::Annealing(annealing), most)
            }
            Phase::Current | Phase::Best | Phase::Over => return,
        };
        self.phase = phase;
        self.begin(most);
    }

    /// Makes the next order of an annealing. Returns the cost up to which it is taken. The
    /// temperature falls with the spent part of the budget.
    fn change(&mut self, annealing: &Annealing) -> f64 {
        let Annealing { current, current_cost, range, from } = annealing;
        let part = ((self.spent() - from) / (1.0 - from)).clamp(0.0, 1.0);
        let temperature = range * FIRST_TEMPERATURE * libm::pow(LAST_TEMPERATURE, part);
        // The chance is drawn first: a plan that costs more is given up on the way.
        let chance = 1.0 - self.random.unit();
        self.trial.copy_from_slice(current);
        change(&mut self.trial, &mut self.random);
        current_cost - temperature * libm::log(chance)
    }

    fn is_spent(&self) -> bool {
        self.orders >= self.budget.orders || self.placements >= self.budget.placements
    }

    /// Returns the part of the budget that is spent.
    fn spent(&self) -> f64 {
        let part = |of: u64, all: u64| of as f64 / all.max(1) as f64;
        let orders = part(self.orders, self.budget.orders);
        orders.max(part(self.placements, self.budget.placements)).min(1.0)
    }
}
