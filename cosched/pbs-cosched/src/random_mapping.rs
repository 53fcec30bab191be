// SPDX-License-Identifier: GPL-2.0
//! The schedulers that decide by chance (§5.5).

use pbs_random::Random;

use crate::greedy::{greedy, GreedyOptions};
use crate::mapping::Mapping;
use crate::model::{ExecutionTarget, Platform, Workload};
use crate::objective::Objective;
use crate::problem::{Decisions, Problem};
use crate::queues::Queues;

/// Plain random: any variant that fits for each task, in the order of submission (§5.5.1).
pub fn plain_random(
    workload: &Workload,
    platform: &Platform,
    queues: &Queues,
    seed: u64,
) -> Mapping {
    let problem = Problem::new(workload, platform, queues);
    let mut random = Random::new(seed);
    let can_run = |&&job: &&usize| !problem.jobs[job].ways.is_empty();
    let order: Vec<usize> = problem.submitted.iter().filter(can_run).copied().collect();
    let ways: Vec<usize> = problem.jobs.iter().map(|job| random.index(job.ways.len())).collect();
    problem.mapping(Decisions::free(&order, &ways))
}

/// Options of the enhanced random scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnhancedOptions {
    /// Mappings that are tried at least (§5.5.2).
    pub min_iterations: u32,
    /// Mappings that are tried at most (ours: the thesis goes on until one is allowed).
    pub max_iterations: u32,
}

impl Default for EnhancedOptions {
    fn default() -> Self {
        Self { min_iterations: 42, max_iterations: 2_000 }
    }
}

/// Enhanced random: the best of several random mappings that are allowed (§5.5.2).
///
/// A mapping is allowed if no type of device is used more often than it exists, times the
/// tasks on the longest path; of the CPU, threads are counted.  (The thesis takes the largest
/// number of direct successors, with which nothing is allowed if no task waits for another.)
/// If none is found, the greedy scheduler decides.
pub fn enhanced_random(
    workload: &Workload,
    platform: &Platform,
    queues: &Queues,
    objective: Objective,
    options: &EnhancedOptions,
    seed: u64,
) -> Mapping {
    allowed_random(workload, platform, queues, objective, options, seed)
        .unwrap_or_else(|| greedy(workload, platform, queues, &GreedyOptions::default()))
}

/// Enhanced random without greedy: `None` if no allowed mapping is found.
pub fn allowed_random(
    workload: &Workload,
    platform: &Platform,
    queues: &Queues,
    objective: Objective,
    options: &EnhancedOptions,
    seed: u64,
) -> Option<Mapping> {
    let problem = Problem::new(workload, platform, queues);
    let allowed = Allowed::new(&problem, platform)?;
    let mut random = Random::new(seed);
    let mut state = problem.start();
    let mut ends_ns = Vec::new();
    let mut ways = vec![0; problem.jobs.len()];
    let mut best: Option<([u64; 3], Vec<usize>)> = None;
    let mut tried = 0;
    while (tried < options.min_iterations || best.is_none()) && tried < options.max_iterations {
        tried += 1;
        for (way, job) in ways.iter_mut().zip(&problem.jobs) {
            *way = random.index(job.ways.len());
        }
        if !allowed.is(&problem, &ways) {
            continue;
        }
        let decisions = Decisions::free(&problem.submitted, &ways);
        let key = problem.key_of(&mut state, &mut ends_ns, decisions, objective);
        if best.as_ref().is_none_or(|(least, _)| key < *least) {
            best = Some((key, ways.clone()));
        }
    }
    best.map(|(_, ways)| problem.mapping(Decisions::free(&problem.submitted, &ways)))
}

/// Permitted number of uses of the devices.
struct Allowed {
    threads: u64,
    devices: Vec<u64>,
}

impl Allowed {
    /// Computes the permitted uses; `None` if no mapping can be allowed.
    fn new(problem: &Problem<'_>, platform: &Platform) -> Option<Self> {
        if !problem.solvable() {
            return None;
        }
        let mut longest = vec![1_u64; problem.jobs.len()];
        for &job in &problem.submitted {
            let before = problem.jobs[job].after.iter().map(|&(before, _)| longest[before] + 1);
            longest[job] = before.max().unwrap_or(1);
        }
        let depth = longest.into_iter().max().unwrap_or(0);
        let threads = u64::from(platform.threads) * depth;
        let devices: Vec<u64> =
            platform.devices.iter().map(|of| u64::from(of.count) * depth).collect();
        let room = threads + devices.iter().sum::<u64>();
        (room >= problem.jobs.len() as u64).then_some(Self { threads, devices })
    }

    fn is(&self, problem: &Problem<'_>, ways: &[usize]) -> bool {
        let mut threads = 0;
        let mut devices = vec![0; self.devices.len()];
        for (job, &way) in problem.jobs.iter().zip(ways) {
            match job.ways[way].place {
                ExecutionTarget::Threads(needed) => threads += u64::from(needed),
                ExecutionTarget::Device(device) => devices[device] += 1,
            }
        }
        threads <= self.threads
            && devices.iter().zip(&self.devices).all(|(use_, most)| use_ <= most)
    }
}
