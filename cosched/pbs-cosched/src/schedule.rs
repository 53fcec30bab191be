// SPDX-License-Identifier: GPL-2.0
//! One call for all schedulers.

use crate::evolutionary::{evolutionary, evolve, first_mappings};
use crate::greedy::{greedy, GreedyOptions};
use crate::heft::{self, heft};
use crate::mapping::Mapping;
use crate::model::{Platform, Workload};
use crate::objective::Objective;
use crate::oracle::{best_of, brute_force};
use crate::pricing::{price, Ways};
use crate::problem::{Decisions, Problem};
use crate::queues::Queues;
use crate::random_mapping::{enhanced_random, plain_random, EnhancedOptions};
use crate::slowing::Slowing;

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

/// Maps all waiting tasks with regard to slow-downs.  The random schedulers have none.
///
/// The greedy scheduler keeps its variants and rounds, and holds tasks back; the others also choose
/// variants by it.  The second value is whether brute force has shown that no mapping is better, if
/// it was asked and has taken the tasks.
pub fn schedule_slowed(
    workload: &Workload,
    platform: &Platform,
    queues: &Queues,
    scheduler: &Scheduler,
    objective: Objective,
    slowing: &dyn Slowing,
    keep_going: &mut dyn FnMut() -> bool,
) -> (Mapping, Option<bool>) {
    let problem = Problem::new(workload, platform, queues).with(Some(slowing));
    let first = || first_mappings(workload, platform, queues);
    let evolved = |seed: u64, keep_going: &mut dyn FnMut() -> bool| {
        evolve(&problem, first(), objective, seed, keep_going)
    };
    let decided = match scheduler {
        _ if !problem.solvable() => None,
        Scheduler::PlainRandom(_) | Scheduler::EnhancedRandom(..) => None,
        Scheduler::Greedy(options) => {
            let mut mapping = greedy(workload, platform, queues, options);
            if let Some(mut own) = problem.decisions(&mapping) {
                own.holds = price(
                    &problem,
                    objective,
                    &own.order,
                    &mut own.ways,
                    Ways::Decided,
                    keep_going,
                );
                problem.hold_back(&mut mapping, own.of());
            }
            return (mapping, None);
        }
        Scheduler::Heft => {
            let (order, mut ways, _) = heft::decide(&problem);
            let holds = price(&problem, objective, &order, &mut ways, Ways::All, keep_going);
            let decisions = Decisions { order: &order, ways: &ways, holds: &holds };
            return (problem.mapping(decisions), None);
        }
        Scheduler::Evolutionary(seed) => evolved(*seed, keep_going),
        Scheduler::BruteForce => {
            match best_of(&problem, workload, platform, queues, objective, keep_going) {
                Some(found) => return (found.mapping, Some(found.proved)),
                None => evolved(1, keep_going),
            }
        }
    };
    match decided {
        Some(decided) => (problem.mapping(decided.of()), None),
        None => (schedule(workload, platform, queues, scheduler, objective, keep_going), None),
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
