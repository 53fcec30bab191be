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

    /// Wait after which each further second costs twice as much, in seconds, for optimised; 0 for
    /// never
    #[arg(long, value_name = "S", default_value_t = 0)]
    even_after: u64,

    /// Seed of the searches of optimised
    #[arg(long, value_name = "N", default_value_t = 1)]
    search_seed: u64,
}

impl OptimiserOptions {
    /// Returns the parameters of plans with a promise.
    pub(super) fn with(&self, promise: Promise, expect: Expect) -> Optimising {
        // The derivative of w + w²/2s at w = s is twice that at 0.
        let wait_squared_per_s2 = match self.even_after {
            0 => 0.0,
            even_after_s => 0.5 / even_after_s as f64,
        };
        Optimising {
            objective: Objective {
                wait_per_s: 1.0,
                slowdown: self.slowdown_cost.max(0.0),
                wait_squared_per_s2,
            },
            budget: Budget { orders: self.orders, placements: self.placements },
            promise,
            expect,
            seed: self.search_seed,
        }
    }
}
