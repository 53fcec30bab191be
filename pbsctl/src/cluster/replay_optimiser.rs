// SPDX-License-Identifier: GPL-2.0
//! Options of the search for better plans in a replay.

use clap::Args;
use pbs_cluster_planner::optimise::{Budget, Objective};
use pbs_cluster_sim::{Expect, Optimising, Promise};

#[derive(Args, Debug)]
pub(super) struct OptimiserOptions {
    /// Number of orders of the waiting jobs that optimised tries at each event
    #[arg(long, value_name = "N", default_value_t = Budget::default().orders)]
    orders: u64,

    /// Number of jobs that optimised places at each event, over all orders
    #[arg(long, value_name = "N", default_value_t = Budget::default().placements)]
    placements: u64,

    /// Seconds of waiting that cost as much as one unit of bounded slowdown, for optimised
    #[arg(long, value_name = "S", default_value_t = Objective::default().slowdown)]
    slowdown_cost: f64,

    /// Wait after which each further second costs twice as much as the first one, in seconds, for
    /// optimised; 0 for never
    #[arg(long, value_name = "S", default_value_t = EVEN_AFTER_S)]
    even_after: u64,

    /// Seed of the searches of optimised
    #[arg(long, value_name = "N", default_value_t = 1)]
    search_seed: u64,
}

/// The value of `--even-after` that gives the default objective.
const EVEN_AFTER_S: u64 = 5_000;

impl OptimiserOptions {
    /// Returns the parameters of plans with a promise.
    pub(super) fn with(&self, promise: Promise, expect: Expect) -> Optimising {
        let growth_per_s = match self.even_after {
            0 => 0.0,
            even_after_s => growth_per_s(even_after_s),
        };
        Optimising {
            objective: Objective {
                wait_per_s: 1.0,
                slowdown: self.slowdown_cost.max(0.0),
                growth_per_s,
            },
            budget: Budget { orders: self.orders, placements: self.placements },
            promise,
            expect,
            seed: self.search_seed,
        }
    }
}

/// Returns the growth with which the cost of a second has doubled after so long a wait: that of
/// w + g·w² has the derivative 1 + 2·g·w.
fn growth_per_s(even_after_s: u64) -> f64 {
    0.5 / even_after_s as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_evenness_is_that_of_the_planner() {
        assert_eq!(growth_per_s(EVEN_AFTER_S), Objective::default().growth_per_s);
    }
}
