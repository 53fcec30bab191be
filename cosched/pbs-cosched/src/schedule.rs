// SPDX-License-Identifier: GPL-2.0
//! One call for all schedulers.

use crate::evolutionary::evolutionary;
use crate::greedy::{greedy, GreedyOptions};
use crate::heft::heft;
use crate::mapping::Mapping;
use crate::model::{Platform, Workload};
use crate::objective::Objective;
use crate::oracle::brute_force;
use crate::queues::Queues;
use crate::random_mapping::{enhanced_random, plain_random, EnhancedOptions};

/// Scheduler that decides the mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduler {
    /// The round-based greedy one (§5.4).
    Greedy(GreedyOptions),
    /// Plain random (§5.5.1), with its seed.
    PlainRandom(u64),
    /// Enhanced random (§5.5.2), with its seed.
    EnhancedRandom(EnhancedOptions, u64),
    /// The evolutionary one (§4.4.2), with its seed.
    Evolutionary(u64),
    /// HEFT.
    Heft,
    /// Brute force (§4.4.4), for few tasks; for more of them the evolutionary one.
    BruteForce,
}

impl Default for Scheduler {
    /// The best of ours.
    fn default() -> Self {
        Self::Evolutionary(1)
    }
}

/// Maps all waiting tasks.  `keep_going` bounds the time of the evolutionary scheduler and of
/// brute force: it is asked before each mapping they try.
pub fn schedule(
    workload: &Workload,
    platform: &Platform,
    queues: &Queues,
    scheduler: &Scheduler,
    objective: Objective,
    keep_going: &mut dyn FnMut() -> bool,
) -> Mapping {
    match scheduler {
        Scheduler::Greedy(options) => greedy(workload, platform, queues, options),
        Scheduler::PlainRandom(seed) => plain_random(workload, platform, queues, *seed),
        Scheduler::EnhancedRandom(options, seed) => {
            enhanced_random(workload, platform, queues, objective, options, *seed)
        }
        Scheduler::Evolutionary(seed) => {
            evolutionary(workload, platform, queues, objective, *seed, keep_going)
        }
        Scheduler::Heft => heft(workload, platform, queues).mapping,
        Scheduler::BruteForce => {
            match brute_force(workload, platform, queues, objective, keep_going) {
                Some(found) => found.mapping,
                None => evolutionary(workload, platform, queues, objective, 1, keep_going),
            }
        }
    }
}

/// A bound in mappings instead of time, which is the same on every machine.
pub fn evaluations(mut left: u64) -> impl FnMut() -> bool {
    move || {
        let more = left > 0;
        left = left.saturating_sub(1);
        more
    }
}
