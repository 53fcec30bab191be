// SPDX-License-Identifier: GPL-2.0
//! Gap between schedulers and the optimum.

use pbs_cosched::{
    brute_force, evaluations, not_co_scheduled, schedule, timing, EnhancedOptions, GreedyOptions,
    Mapping, Objective, Platform, Priority, Queues, Scheduler, Workload,
};
use pbs_random::Random;
use serde::Serialize;

use crate::cosched::workloads::{platform, random};

/// Mappings that the evolutionary scheduler evaluates.
const EVALUATIONS: u64 = 2_000;

/// Excess of a scheduler's makespans over the optimum.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Gap {
    /// The scheduler.
    pub scheduler: String,
    /// Number of instances on which the scheduler was tried.
    pub instances: usize,
    /// Number of instances for which it found an optimum.
    pub optimal: usize,
    /// The median, in percent of the optimum.
    pub median_percent: f64,
    /// The mean.
    pub mean_percent: f64,
    /// The 95th percentile of the instances.
    pub percentile_95_percent: f64,
    /// The worst.
    pub worst_percent: f64,
}

/// The gaps of all schedulers on random instances of at most eight tasks: processes that come
/// at once, on 1 to 4 threads and up to two accelerators.
pub fn gaps(instances: usize, seed: u64) -> Vec<Gap> {
    let greedy = |priority| {
        Scheduler::Greedy(GreedyOptions {
            contention: priority,
            leftovers: priority,
            stickiness: true,
        })
    };
    let enhanced = Scheduler::EnhancedRandom(EnhancedOptions::default(), seed);
    let schedulers = [
        ("evolutionary (default)", Some(Scheduler::Evolutionary(seed))),
        ("HEFT", Some(Scheduler::Heft)),
        ("greedy, age", Some(greedy(Priority::Age))),
        ("greedy, runtime", Some(greedy(Priority::Runtime))),
        ("greedy, successors", Some(greedy(Priority::Successors))),
        ("enhanced random, 42", Some(enhanced)),
        ("plain random", Some(Scheduler::PlainRandom(seed))),
        ("not co-scheduling", None),
    ];
    let mut excess: Vec<Vec<f64>> = vec![Vec::new(); schedulers.len()];
    let mut dice = Random::new(seed);
    while excess[0].len() < instances {
        let accelerators = dice.index(3);
        let on =
            platform(1 + dice.index(4) as u32, &[("GPU", 1), ("FPGA", 1)][..accelerators.max(1)]);
        let tasks = 2 + dice.index(7);
        let workload = random(&mut dice, tasks, &on);
        let queues = Queues::idle(&on);
        let objective = Objective::Makespan;
        let Some(best) = brute_force(&workload, &on, &queues, objective, &mut || true) else {
            continue;
        };
        let best_ns = end_ns(&workload, &on, &queues, &best.mapping);
        for ((_, scheduler), excess) in schedulers.iter().zip(&mut excess) {
            let mapping = match scheduler {
                Some(scheduler) => {
                    let mut left = evaluations(EVALUATIONS);
                    schedule(&workload, &on, &queues, scheduler, objective, &mut left)
                }
                None => not_co_scheduled(&workload, &on, &queues),
            };
            let ns = end_ns(&workload, &on, &queues, &mapping);
            excess.push(100.0 * (ns as f64 / best_ns as f64 - 1.0));
        }
    }
    schedulers
        .iter()
        .zip(excess)
        .map(|(&(scheduler, _), mut of)| {
            of.sort_by(f64::total_cmp);
            let at = |permille: usize| of.get(of.len() * permille / 1000).copied();
            Gap {
                scheduler: scheduler.to_owned(),
                instances: of.len(),
                optimal: of.iter().filter(|&&percent| percent == 0.0).count(),
                median_percent: at(500).unwrap_or(0.0),
                mean_percent: of.iter().sum::<f64>() / of.len().max(1) as f64,
                percentile_95_percent: at(950).unwrap_or(0.0),
                worst_percent: of.last().copied().unwrap_or(0.0),
            }
        })
        .collect()
}

fn end_ns(workload: &Workload, on: &Platform, queues: &Queues, mapping: &Mapping) -> u64 {
    timing(workload, on, queues, mapping).map_or(u64::MAX, |of| of.end_ns())
}
