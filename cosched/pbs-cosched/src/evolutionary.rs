// SPDX-License-Identifier: GPL-2.0
//! The evolutionary scheduler, which the thesis describes (§4.4.2) and leaves to others (§7.3).
//!
//! An individual is a variant for each task and an order in which they enter the queues; the
//! order always has a task behind those it waits for.  Each step selects two parents, crosses
//! them, mutates the child and lets it replace the worst, if it is better.  The best stays, and
//! among the first are what the greedy scheduler and HEFT decide and not co-scheduling: the
//! result is never worse than any of these.

use pbs_random::Random;

use crate::baseline::not_co_scheduled;
use crate::greedy::{greedy, GreedyOptions, Priority};
use crate::heft;
use crate::mapping::Mapping;
use crate::model::{Platform, Workload};
use crate::objective::Objective;
use crate::problem::{Problem, State};
use crate::queues::Queues;

/// Individuals that live at a time.
const INDIVIDUALS: usize = 32;
/// Individuals of which the best becomes a parent.
const TOURNAMENT: usize = 3;
/// Children in a row that improve nothing before all but the best start anew.
const PATIENCE: usize = 40 * INDIVIDUALS;

/// Maps all waiting tasks, trying as many mappings as `keep_going` lets it: it is asked before
/// each but the first few.
pub fn evolutionary(
    workload: &Workload,
    platform: &Platform,
    queues: &Queues,
    objective: Objective,
    seed: u64,
    keep_going: &mut dyn FnMut() -> bool,
) -> Mapping {
    let problem = Problem::new(workload, platform, queues);
    if !problem.solvable() || problem.jobs.is_empty() {
        return greedy(workload, platform, queues, &GreedyOptions::default());
    }
    let mut population = Population::new(&problem, objective, seed);
    for mapping in first_mappings(workload, platform, queues) {
        if let Some((order, ways)) = problem.decisions(&mapping) {
            population.join(order, ways);
        }
    }
    let (order, ways, _) = heft::decide(&problem);
    population.join(order, ways);
    population.evolve(keep_going);
    let best = &population.living[0];
    problem.mapping(&best.order, &best.ways)
}

/// Returns the mappings that other schedulers decide.
pub(crate) fn first_mappings<'a>(
    workload: &'a Workload,
    platform: &'a Platform,
    queues: &'a Queues,
) -> impl Iterator<Item = Mapping> + 'a {
    let greedy = [Priority::Age, Priority::Runtime, Priority::Successors].into_iter().flat_map(
        move |priority| {
            [true, false].map(|stickiness| {
                let options =
                    GreedyOptions { contention: priority, leftovers: priority, stickiness };
                greedy(workload, platform, queues, &options)
            })
        },
    );
    greedy.chain(std::iter::once_with(move || not_co_scheduled(workload, platform, queues)))
}

#[derive(Clone, Debug)]
struct Individual {
    order: Vec<usize>,
    ways: Vec<usize>,
    key: [u64; 3],
}

struct Population<'a> {
    problem: &'a Problem,
    objective: Objective,
    random: Random,
    state: State,
    ends_ns: Vec<u64>,
    /// The best first.
    living: Vec<Individual>,
    /// Position of each job in the order that is being changed.
    places: Vec<usize>,
}

impl<'a> Population<'a> {
    fn new(problem: &'a Problem, objective: Objective, seed: u64) -> Self {
        Self {
            problem,
            objective,
            random: Random::new(seed),
            state: problem.start(),
            ends_ns: Vec::new(),
            living: Vec::with_capacity(INDIVIDUALS + 1),
            places: vec![0; problem.jobs.len()],
        }
    }

    fn evolve(&mut self, keep_going: &mut dyn FnMut() -> bool) {
        let mut in_vain = 0;
        while keep_going() {
            if self.living.len() < INDIVIDUALS {
                self.newcomer();
                continue;
            }
            let (one, other) = (self.parent(), self.parent());
            let (mut order, mut ways) = self.cross(one, other);
            self.mutate(&mut order, &mut ways);
            let best = self.living[0].key;
            self.join(order, ways);
            in_vain += 1;
            if self.living[0].key < best {
                in_vain = 0;
            } else if in_vain >= PATIENCE {
                in_vain = 0;
                self.living.truncate(1);
            }
        }
    }

    /// A new individual takes its place, unless all that live are better.  Of individuals worth
    /// the same the newer stays, so that the population does not become one.
    fn join(&mut self, order: Vec<usize>, ways: Vec<usize>) {
        let decisions = (order.as_slice(), ways.as_slice());
        let key =
            self.problem.key_of(&mut self.state, &mut self.ends_ns, decisions, self.objective);
        let individual = Individual { order, ways, key };
        let full = self.living.len() == INDIVIDUALS;
        let at = self.living.partition_point(|of| of.key < key);
        match self.living.get_mut(at) {
            Some(same) if same.key == key && full => *same = individual,
            _ => self.living.insert(at, individual),
        }
        self.living.truncate(INDIVIDUALS);
    }

    /// Half of the newcomers are chance, half resemble one that lives.
    fn newcomer(&mut self) {
        let (mut order, mut ways);
        if self.random.index(2) == 0 && !self.living.is_empty() {
            let of = &self.living[self.random.index(self.living.len())];
            (order, ways) = (of.order.clone(), of.ways.clone());
            self.mutate(&mut order, &mut ways);
        } else {
            order = self.problem.submitted.clone();
            ways = self.problem.jobs.iter().map(|job| self.random.index(job.ways.len())).collect();
            for _ in 0..order.len() {
                self.move_one(&mut order);
            }
        }
        self.join(order, ways);
    }

    /// The best of some that are drawn.
    fn parent(&mut self) -> usize {
        let drawn = (0..TOURNAMENT).map(|_| self.random.index(self.living.len()));
        drawn.min().unwrap_or(0)
    }

    /// Uniform crossover of variants; of orders, the first part of one and the rest as in the
    /// other, which keeps each task behind those it waits for.
    fn cross(&mut self, one: usize, other: usize) -> (Vec<usize>, Vec<usize>) {
        let (one, other) = (&self.living[one], &self.living[other]);
        let ways = one.ways.iter().zip(&other.ways);
        let ways = ways.map(|(&a, &b)| if self.random.index(2) == 0 { a } else { b }).collect();
        let cut = self.random.index(one.order.len() + 1);
        let mut order = one.order[..cut].to_vec();
        let mut taken = vec![false; one.order.len()];
        for &job in &order {
            taken[job] = true;
        }
        order.extend(other.order.iter().copied().filter(|&job| !taken[job]));
        (order, ways)
    }

    /// Each task changes variant, and place in the order, with probability 1/n; something does.
    fn mutate(&mut self, order: &mut [usize], ways: &mut [usize]) {
        let jobs = ways.len();
        let mut changed = false;
        for (job, way) in ways.iter_mut().enumerate() {
            let most = self.problem.jobs[job].ways.len();
            if most > 1 && self.random.index(jobs) == 0 {
                *way = (*way + 1 + self.random.index(most - 1)) % most;
                changed = true;
            }
        }
        for _ in 0..jobs {
            if self.random.index(jobs) == 0 {
                self.move_one(order);
                changed = true;
            }
        }
        if !changed {
            self.move_one(order);
        }
    }

    /// Moves a task to another place between those it waits for and those that wait for it.
    fn move_one(&mut self, order: &mut [usize]) {
        let from = self.random.index(order.len());
        let of = &self.problem.jobs[order[from]];
        for (place, &job) in order.iter().enumerate() {
            self.places[job] = place;
        }
        let lowest = of.after.iter().map(|&(job, _)| self.places[job] + 1).max().unwrap_or(0);
        let highest = of.before.iter().map(|&job| self.places[job]).min();
        let highest = highest.unwrap_or(order.len()) - 1;
        let to = lowest + self.random.index(highest - lowest + 1);
        if to < from {
            order[to..=from].rotate_right(1);
        } else {
            order[from..=to].rotate_left(1);
        }
    }
}
