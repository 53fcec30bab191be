// SPDX-License-Identifier: GPL-2.0
//! Brute force (§4.4.4), by branch and bound: what is best among all mappings.
//!
//! A yardstick for few tasks.  A branch is a task that enters the queues next and its variant.
//! It is cut where what is decided, the paths of what is not, and the work that is left for the
//! CPU or an accelerator already make it no better than the best that is known.
//!
//! With slow-downs a branch also has a restraint of the task: the threads that it passes over, and
//! the task whose end it waits for.  What is best then is best among schedules whose tasks begin
//! when they can, or at the end of a task on the CPU.

use crate::evolutionary::{evolve, first_mappings};
use crate::mapping::{Hold, Mapping};
use crate::model::{ExecutionTarget, Platform, Workload};
use crate::objective::{Objective, Score};
use crate::problem::{Decisions, FittingVariant, OwnDecisions, Problem};
use crate::queues::Queues;
use crate::slowing::Slowing;
use crate::state::State;

/// Tasks that brute force takes at most.
pub const MOST_TASKS: usize = 10;

/// Result of brute force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OracleResult {
    /// The best mapping that was found.
    pub mapping: Mapping,
    /// No mapping is better.
    pub proved: bool,
}

/// The best of all mappings; nothing for more than [`MOST_TASKS`] waiting tasks or a workload
/// that cannot be mapped.  If `keep_going` says no, what was found so far.
pub fn brute_force(
    workload: &Workload,
    platform: &Platform,
    queues: &Queues,
    objective: Objective,
    keep_going: &mut dyn FnMut() -> bool,
) -> Option<OracleResult> {
    let problem = Problem::new(workload, platform, queues);
    best_of(&problem, workload, platform, queues, objective, keep_going)
}

/// Brute force for a problem of this workload.
pub(crate) fn best_of(
    problem: &Problem<'_>,
    workload: &Workload,
    platform: &Platform,
    queues: &Queues,
    objective: Objective,
    keep_going: &mut dyn FnMut() -> bool,
) -> Option<OracleResult> {
    if problem.jobs.len() > MOST_TASKS || !problem.solvable() {
        return None;
    }
    let mut evaluations = 64 * problem.jobs.len();
    let first = first_mappings(workload, platform, queues);
    let first = evolve(problem, first, objective, 1, &mut || {
        evaluations = evaluations.saturating_sub(1);
        evaluations > 0
    });
    // Without a first mapping the search begins with none.
    let mut search = Search::new(problem, platform, workload, objective, first.unwrap_or_default());
    let proved = search.descend(queues.now_ns, keep_going);
    Some(OracleResult { mapping: problem.mapping(search.best.of()), proved })
}

struct Search<'a> {
    problem: &'a Problem<'a>,
    objective: Objective,
    /// Whether a job that is placed earlier never makes another one later.  Then only orders of
    /// starts must be tried.  A way can be skipped if another is as fast with at most as many
    /// threads.
    monotone: bool,
    /// Ways of each job that are tried.
    ways: Vec<Vec<usize>>,
    /// Minimum thread time of each job; 0 if the job can run elsewhere.
    cpu_work_ns: Vec<u64>,
    /// Accelerator type and minimum time of each job that can run on only one type.
    device_work_ns: Vec<Option<(usize, u64)>>,
    /// Equal job of each job, which enters the queues before it.
    twin: Vec<Option<usize>>,
    /// Queues by depth.
    states: Vec<State>,
    order: Vec<usize>,
    placed: Vec<bool>,
    chosen: Vec<usize>,
    /// Earliest end of each job.
    earliest_end_ns: Vec<u64>,
    holds: Vec<Hold>,
    /// Whether a bound without slow-downs is one with them, too.
    is_bounded: bool,
    best: OwnDecisions,
    best_key: [u64; 3],
}

impl<'a> Search<'a> {
    fn new(
        problem: &'a Problem<'a>,
        platform: &Platform,
        workload: &Workload,
        objective: Objective,
        best: OwnDecisions,
    ) -> Self {
        let jobs = &problem.jobs;
        let mut edges = workload.tasks.iter().flat_map(|task| &task.after);
        let slowing = problem.slowing();
        let monotone = slowing.is_none()
            && platform.devices.iter().all(|of| of.links() == 0 && of.host.is_none())
            && (platform.devices.iter().all(|of| of.count <= 1)
                || edges.all(|edge| edge.transfer_ns == 0));
        let ways = jobs.iter().map(|job| {
            let tried = |&way: &usize| !monotone || !dominated(&job.ways, way);
            (0..job.ways.len()).filter(tried).collect()
        });
        let twin = (0..jobs.len()).map(|job| {
            let equal = |&other: &usize| {
                let (one, other) = (&jobs[job], &jobs[other]);
                workload.tasks[one.task].after == workload.tasks[other.task].after
                    && (one.process, one.released_ns) == (other.process, other.released_ns)
                    && (&one.before, &one.ways) == (&other.before, &other.ways)
            };
            (0..job).rev().find(equal).filter(|_| slowing.is_none())
        });
        let mut states = vec![problem.start(); jobs.len() + 1];
        let best_key = problem.key_of(&mut states[0], &mut Vec::new(), best.of(), objective);
        problem.restart(&mut states[0]);
        Self {
            problem,
            objective,
            monotone,
            ways: ways.collect(),
            cpu_work_ns: jobs.iter().map(|job| cpu_work_ns(&job.ways).unwrap_or(0)).collect(),
            device_work_ns: jobs.iter().map(|job| device_work_ns(&job.ways)).collect(),
            twin: twin.collect(),
            states,
            order: Vec::new(),
            placed: vec![false; jobs.len()],
            chosen: vec![0; jobs.len()],
            earliest_end_ns: vec![0; jobs.len()],
            holds: vec![Hold::default(); jobs.len()],
            is_bounded: slowing.is_none_or(Slowing::only_slows),
            best,
            best_key,
        }
    }

    /// Tries all that follows a branch whose last task starts then; false if told to stop.
    fn descend(&mut self, last_start_ns: u64, keep_going: &mut dyn FnMut() -> bool) -> bool {
        for job in 0..self.problem.jobs.len() {
            let of = &self.problem.jobs[job];
            let ready = of.after.iter().all(|&(before, _)| self.placed[before]);
            let in_turn = self.twin[job].is_none_or(|twin| self.placed[twin]);
            if self.placed[job] || !ready || !in_turn {
                continue;
            }
            for at in 0..self.ways[job].len() {
                let way = self.ways[job][at];
                for hold in self.tried_holds(job, way) {
                    if !keep_going() {
                        return false;
                    }
                    self.holds[job] = hold;
                    if !self.branch(job, way, last_start_ns, keep_going) {
                        return false;
                    }
                }
            }
        }
        true
    }

    /// Tries a job with a way next; false if told to stop.
    fn branch(
        &mut self,
        job: usize,
        way: usize,
        last_start_ns: u64,
        keep_going: &mut dyn FnMut() -> bool,
    ) -> bool {
        let (depth, of) = (self.order.len(), &self.problem.jobs[job]);
        let (before, after) = self.states.split_at_mut(depth + 1);
        after[0].clone_from(&before[depth]);
        let held = self.problem.held(&after[0], self.holds[job]);
        let start_ns = after[0].place(of, job, &of.ways[way], held).start_ns;
        if self.monotone && start_ns < last_start_ns {
            return true;
        }
        self.placed[job] = true;
        self.chosen[job] = way;
        self.order.push(job);
        let is_leaf = self.order.len() == self.problem.jobs.len();
        let mut bound = self.bound(start_ns);
        let mut finished = true;
        if bound < self.best_key || !self.is_bounded {
            if is_leaf && self.problem.slowing().is_some() {
                bound = self.key();
            }
            if !is_leaf {
                finished = self.descend(start_ns, keep_going);
            } else if bound < self.best_key {
                self.best = OwnDecisions {
                    order: self.order.clone(),
                    ways: self.chosen.clone(),
                    holds: self.holds.clone(),
                };
                self.best_key = bound;
            }
        }
        self.order.pop();
        self.placed[job] = false;
        finished
    }

    /// The restraints that a job tries: with slow-downs, other threads and the end of each task that
    /// is before it on threads.
    fn tried_holds(&self, job: usize, way: usize) -> Vec<Hold> {
        let mut tried = vec![Hold::default()];
        let ExecutionTarget::Threads(needed) = self.problem.jobs[job].ways[way].place else {
            return tried;
        };
        if self.problem.slowing().is_none() {
            return tried;
        }
        let on_threads = |&&job: &&usize| {
            let place = self.problem.jobs[job].ways[self.chosen[job]].place;
            matches!(place, ExecutionTarget::Threads(_))
        };
        let before = self.order.iter().filter(on_threads).map(|&job| self.problem.jobs[job].task);
        let waits: Vec<usize> = before.chain(self.problem.on_threads()).collect();
        tried.clear();
        for wait in [None].into_iter().chain(waits.into_iter().map(Some)) {
            let skips = 0..=self.problem.threads().saturating_sub(needed);
            tried.extend(skips.map(|skip| Hold { wait, skip }));
        }
        tried
    }

    /// Returns the score of a leaf, with slow-downs.
    fn key(&self) -> [u64; 3] {
        let decisions = Decisions { order: &self.order, ways: &self.chosen, holds: &self.holds };
        let mut state = self.problem.start();
        self.problem.key_of(&mut state, &mut Vec::new(), decisions, self.objective)
    }

    /// Returns a lower bound of the score below a branch; for a leaf, the score itself.
    fn bound(&mut self, last_start_ns: u64) -> [u64; 3] {
        let state = &self.states[self.order.len()];
        let from_ns = if self.monotone { last_start_ns } else { 0 };
        let work_ns = |free_ns: u64| u128::from(free_ns.max(from_ns));
        let mut cpu_ns: u128 = state.threads.iter().map(|&(free_ns, _)| work_ns(free_ns)).sum();
        let mut devices_ns: Vec<u128> =
            state.devices.iter().map(|of| of.iter().map(|&ns| work_ns(ns)).sum()).collect();
        let mut runtimes_ns = 0_u64;
        let mut ends_ns: Vec<u64> = self.problem.started_ends_ns().collect();
        let (mut cpu_left, mut devices_left) = (false, vec![false; devices_ns.len()]);
        for &number in &self.problem.submitted {
            let job = &self.problem.jobs[number];
            let end_ns;
            if self.placed[number] {
                end_ns = state.placed[number].end_ns;
                runtimes_ns = runtimes_ns.saturating_add(job.ways[self.chosen[number]].runtime_ns);
            } else {
                let behind = job.after.iter().map(|&(before, _)| self.earliest_end_ns[before]);
                let ready_ns = behind.max().unwrap_or(0).max(job.released_ns).max(from_ns);
                let ends = job.ways.iter().map(|way| {
                    let free_ns = match way.place {
                        ExecutionTarget::Threads(needed) => state.threads[needed as usize - 1].0,
                        ExecutionTarget::Device(device) => {
                            state.devices[device].iter().copied().min().unwrap_or(0)
                        }
                    };
                    ready_ns.max(free_ns).saturating_add(way.runtime_ns)
                });
                end_ns = ends.min().unwrap_or(0);
                let fastest = job.ways.iter().map(|way| way.runtime_ns).min().unwrap_or(0);
                runtimes_ns = runtimes_ns.saturating_add(fastest);
                cpu_ns += u128::from(self.cpu_work_ns[number]);
                cpu_left |= self.cpu_work_ns[number] > 0;
                if let Some((device, least_ns)) = self.device_work_ns[number] {
                    devices_ns[device] += u128::from(least_ns);
                    devices_left[device] = true;
                }
            }
            self.earliest_end_ns[number] = end_ns;
            if let Some(process_ns) = ends_ns.get_mut(job.process) {
                *process_ns = end_ns.max(*process_ns);
            }
        }
        let mut score = Score { runtimes_ns, ..self.problem.score_of_ends(&ends_ns) };
        // Work that is left, spread evenly, ends no earlier than this.
        let mut spread = |work_ns: u128, lanes: usize| {
            let end_ns = work_ns.div_ceil(lanes.max(1) as u128);
            let end_ns = u64::try_from(end_ns).unwrap_or(u64::MAX);
            let makespan_ns = self.problem.makespan_ns(end_ns);
            score.makespan_ns = score.makespan_ns.max(makespan_ns);
        };
        if cpu_left {
            spread(cpu_ns, state.threads.len());
        }
        for (device, &work_ns) in devices_ns.iter().enumerate() {
            if devices_left[device] {
                spread(work_ns, state.devices[device].len());
            }
        }
        score.key(self.objective)
    }
}

/// Whether another way is as fast with as few threads, or on the same accelerators.
fn dominated(ways: &[FittingVariant], at: usize) -> bool {
    let way = &ways[at];
    ways.iter().enumerate().any(|(other_at, other)| {
        let as_small = match (other.place, way.place) {
            (ExecutionTarget::Threads(other), ExecutionTarget::Threads(this)) => other <= this,
            (other, this) => other == this,
        };
        let equal = other.place == way.place && other.runtime_ns == way.runtime_ns;
        as_small && other.runtime_ns <= way.runtime_ns && (!equal || other_at < at)
    })
}

/// Thread time that is needed at least, if only the CPU can be.
fn cpu_work_ns(ways: &[FittingVariant]) -> Option<u64> {
    let work_ns = |way: &FittingVariant| match way.place {
        ExecutionTarget::Threads(threads) => {
            Some(way.runtime_ns.saturating_mul(u64::from(threads)))
        }
        ExecutionTarget::Device(_) => None,
    };
    ways.iter().map(work_ns).min()?
}

/// The only type of accelerator, if there is but one way to run, and the time there.
fn device_work_ns(ways: &[FittingVariant]) -> Option<(usize, u64)> {
    let ExecutionTarget::Device(device) = ways.first()?.place else {
        return None;
    };
    let only_there = ways.iter().all(|way| way.place == ExecutionTarget::Device(device));
    let least_ns = ways.iter().map(|way| way.runtime_ns).min()?;
    only_there.then_some((device, least_ns))
}
