// SPDX-License-Identifier: GPL-2.0
//! The evolutionary scheduler, which the thesis describes (§4.4.2) and leaves to others (§7.3).
//!
//! An individual is a variant for each task and an order in which they enter the queues; the
//! order always has a task behind those it waits for.  Each step selects two parents, crosses
//! them, mutates the child and lets it replace the worst, if it is better.  The best stays, and
//! among the first are what the greedy scheduler and HEFT decide and not co-scheduling: the
//! result is never worse than any of these.
//!
//! With slow-downs an individual also has a restraint for each task: the threads that it passes
//! over, and the task whose end it waits for.

use pbs_random::Random;

use crate::baseline::not_co_scheduled;
use crate::greedy::{greedy, GreedyOptions, Priority};
use crate::heft;
use crate::mapping::{Hold, Mapping};
use crate::model::{ExecutionTarget, Platform, Workload};
use crate::objective::Objective;
use crate::pricing::{price, Ways};
use crate::problem::{OwnDecisions, Problem};
use crate::queues::Queues;
use crate::state::State;

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
    let first = first_mappings(workload, platform, queues);
    match evolve(&problem, first, objective, seed, keep_going) {
        Some(best) => problem.mapping(best.of()),
        None => greedy(workload, platform, queues, &GreedyOptions::default()),
    }
}

/// Evolves decisions from these mappings and that of HEFT.  `None`: the problem has no solution, or
/// no job.
pub(crate) fn evolve(
    problem: &Problem<'_>,
    first: impl Iterator<Item = Mapping>,
    objective: Objective,
    seed: u64,
    keep_going: &mut dyn FnMut() -> bool,
) -> Option<OwnDecisions> {
    if !problem.solvable() || problem.jobs.is_empty() {
        return None;
    }
    let mut population = Population::new(problem, objective, seed);
    for mapping in first {
        if let Some(decisions) = problem.decisions(&mapping) {
            population.join(decisions);
        }
    }
    let (order, ways, _) = heft::decide(problem);
    population.join(OwnDecisions { holds: population.no_holds(), order, ways });
    if problem.slowing().is_some() {
        let OwnDecisions { order, mut ways, .. } = population.living[0].decisions.clone();
        let holds = price(problem, objective, &order, &mut ways, Ways::All, keep_going);
        population.join(OwnDecisions { order, ways, holds });
    }
    population.evolve(keep_going);
    Some(population.living.swap_remove(0).decisions)
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
    decisions: OwnDecisions,
    key: [u64; 3],
}

struct Population<'a> {
    problem: &'a Problem<'a>,
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
    fn new(problem: &'a Problem<'a>, objective: Objective, seed: u64) -> Self {
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
            let mut child = self.cross(one, other);
            self.mutate(&mut child);
            let best = self.living[0].key;
            self.join(child);
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
    fn join(&mut self, decisions: OwnDecisions) {
        let (state, ends_ns) = (&mut self.state, &mut self.ends_ns);
        let key = self.problem.key_of(state, ends_ns, decisions.of(), self.objective);
        let individual = Individual { decisions, key };
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
        let mut new;
        if self.random.index(2) == 0 && !self.living.is_empty() {
            new = self.living[self.random.index(self.living.len())].decisions.clone();
            self.mutate(&mut new);
        } else {
            let mut order = self.problem.submitted.clone();
            let jobs = self.problem.jobs.iter();
            let ways = jobs.map(|job| self.random.index(job.ways.len())).collect();
            for _ in 0..order.len() {
                self.move_one(&mut order);
            }
            new = OwnDecisions { order, ways, holds: self.no_holds() };
        }
        self.join(new);
    }

    /// The best of some that are drawn.
    fn parent(&mut self) -> usize {
        let drawn = (0..TOURNAMENT).map(|_| self.random.index(self.living.len()));
        drawn.min().unwrap_or(0)
    }

    /// Uniform crossover of variants; of orders, the first part of one and the rest as in the
    /// other, which keeps each task behind those it waits for.
    fn cross(&mut self, one: usize, other: usize) -> OwnDecisions {
        let (one, other) = (&self.living[one].decisions, &self.living[other].decisions);
        let (mut ways, mut holds) = (one.ways.clone(), one.holds.clone());
        for job in 0..ways.len() {
            if self.random.index(2) == 1 {
                (ways[job], holds[job]) = (other.ways[job], other.holds[job]);
            }
        }
        let cut = self.random.index(one.order.len() + 1);
        let mut order = one.order[..cut].to_vec();
        let mut taken = vec![false; one.order.len()];
        for &job in &order {
            taken[job] = true;
        }
        order.extend(other.order.iter().copied().filter(|&job| !taken[job]));
        OwnDecisions { order, ways, holds }
    }

    /// Each task changes variant, and place in the order, with probability 1/n; something does.
    fn mutate(&mut self, of: &mut OwnDecisions) {
        let OwnDecisions { order, ways, holds } = of;
        let jobs = ways.len();
        let mut changed = false;
        for (job, way) in ways.iter_mut().enumerate() {
            let most = self.problem.jobs[job].ways.len();
            if most > 1 && self.random.index(jobs) == 0 {
                *way = (*way + 1 + self.random.index(most - 1)) % most;
                changed = true;
            }
        }
        if self.problem.slowing().is_some() {
            for (job, hold) in holds.iter_mut().enumerate() {
                if self.random.index(jobs) == 0 {
                    *hold = self.draw_hold(job, ways[job]);
                    changed = true;
                }
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

    fn no_holds(&self) -> Vec<Hold> {
        vec![Hold::default(); self.problem.jobs.len()]
    }

    /// Another restraint of a job; half of them have none.
    fn draw_hold(&mut self, job: usize, way: usize) -> Hold {
        let way = self.problem.jobs[job].ways[way];
        let ExecutionTarget::Threads(needed) = way.place else {
            return Hold::default();
        };
        if self.random.index(2) == 0 {
            return Hold::default();
        }
        let most = self.problem.threads().saturating_sub(needed) as usize;
        let skip = self.random.index(most + 1) as u32;
        let other = self.random.index(self.problem.tasks());
        Hold { wait: (self.random.index(2) == 0).then_some(other), skip }
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
