// SPDX-License-Identifier: GPL-2.0
//! Options of the search for better plans in a replay.

use clap::Args;
use pbs_cluster_planner::optimise::{growth_per_s, Budget, Improving, Objective};
use pbs_cluster_sim::{Expect, Express, Optimising, Promise};

use super::ledger::duration_s;

#[derive(Args, Debug)]
pub(super) struct OptimiserOptions {
    /// Number of orders of the waiting jobs that a search tries at each event, for all optimised
    /// policies
    #[arg(long, value_name = "N", default_value_t = Budget::default().orders)]
    orders: u64,

    /// Number of jobs that a search places at each event, over all orders, for all optimised
    /// policies
    #[arg(long, value_name = "N", default_value_t = Budget::default().placements)]
    placements: u64,

    /// Cost of one unit of bounded slowdown, in seconds of waiting, for all optimised policies
    #[arg(long, value_name = "SECONDS", default_value_t = Objective::default().slowdown)]
    slowdown_cost: f64,

    /// Cost of one unit of a user's normalised wait, in seconds of waiting, for all optimised
    /// policies. The normalised wait is the waits of the user's jobs over their core seconds
    #[arg(long, value_name = "SECONDS", default_value_t = Objective::default().fairness)]
    fairness_cost: f64,

    /// Cost of a missed deadline, in seconds of waiting, for optimised-deadline and all
    /// planned-optimised policies
    #[arg(long, value_name = "SECONDS", default_value_t = DEADLINE_COST_S)]
    deadline_cost: f64,

    /// Part of the cores that optimised-deadline leaves to short jobs, in percent
    #[arg(
        long,
        value_name = "PERCENT",
        default_value_t = 20,
        value_parser = clap::value_parser!(u64).range(0..=100)
    )]
    express: u64,

    /// Longest requested time of a short job, for --express
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = duration_s)]
    express_below: u64,

    /// Cost of each second until the end of the plan, in seconds of waiting, for all optimised
    /// policies
    #[arg(long, value_name = "SECONDS", default_value_t = Objective::default().length_per_s)]
    length_cost: f64,

    /// Waiting time after which a second costs twice as much as the first one, for all optimised
    /// policies; with 0s, the cost stays the same
    #[arg(long, value_name = "DURATION", default_value = EVEN_AFTER, value_parser = duration_s)]
    even_after: u64,

    /// Seed of the searches, for all optimised policies
    #[arg(long, value_name = "N", default_value_t = 1)]
    search_seed: u64,
}

/// The value of `--even-after` that gives the default objective.
const EVEN_AFTER: &str = "5000s";
/// A missed deadline costs as much as ten days of waiting.
const DEADLINE_COST_S: f64 = 864_000.0;

impl OptimiserOptions {
    /// Fields of the options that all searches for better plans read, and nothing else.
    pub(super) const OF_ALL: [&'static str; 7] = [
        "orders",
        "placements",
        "slowdown_cost",
        "fairness_cost",
        "length_cost",
        "even_after",
        "search_seed",
    ];

    fn objective(&self) -> Objective {
        let growth_per_s = match self.even_after {
            0 => 0.0,
            even_after_s => growth_per_s(even_after_s),
        };
        Objective {
            wait_per_s: 1.0,
            slowdown: self.slowdown_cost.max(0.0),
            fairness: self.fairness_cost.max(0.0),
            growth_per_s,
            missed_deadline: self.deadline_cost.max(0.0),
            length_per_s: self.length_cost.max(0.0),
        }
    }

    fn budget(&self) -> Budget {
        Budget { orders: self.orders, placements: self.placements }
    }

    /// Returns the parameters of plans on one pool of so many cores with a promise.
    pub(super) fn with(&self, cores: u64, promise: Promise, expect: Expect) -> Optimising {
        let (objective, budget, seed) = (self.objective(), self.budget(), self.search_seed);
        let express_cores = u128::from(cores) * u128::from(self.express) / 100;
        let express = Express {
            // A part of the cores is no more than all of them.
            cores: u64::try_from(express_cores).unwrap_or(cores),
            most_s: self.express_below,
        };
        let express = (promise == Promise::Deadline).then_some(express);
        Optimising { objective, budget, promise, expect, express, seed }
    }

    /// Returns the parameters of the search for better plans on nodes.
    pub(super) fn improving(&self) -> Improving {
        let (objective, budget, seed) = (self.objective(), self.budget(), self.search_seed);
        Improving { objective, budget, seed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_evenness_is_that_of_the_planner() {
        let even_after_s = duration_s(EVEN_AFTER).unwrap();
        assert_eq!(growth_per_s(even_after_s), Objective::default().growth_per_s);
    }
}
