// SPDX-License-Identifier: GPL-2.0
//! Settings of a node that runs jobs.

use std::path::PathBuf;

use pbs_history::EndedLimits;
use pbs_plan::Config;
use pbs_planner::plan_building::planner_config;
use pbs_planner::Aim;

use crate::AccountOf;

/// From the call that makes the plan of jobs until it is in force: on the CPU of a
/// plan the planner itself has the CPU for a few milliseconds in a hundred.
pub const LEAD_NS: u64 = 100_000_000;

/// Settings for running jobs.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The file of what jobs have used.
    pub history: PathBuf,
    /// Limits of the runs that are over, for each user.
    pub ended: EndedLimits,
    /// Users whose limits the jobs of other users count to.
    pub account_of: AccountOf,
    /// At most so many new plans are made after the first; prediction failures beyond
    /// are left to the node.
    pub max_replans: u64,
    /// Condition under which the search for a job's plan stops.
    pub aim: Aim,
    /// Steps of work that the answer to one request may take
    /// ([`pbs_planner::Options::max_work`]), for all jobs in it. An answer to a prediction failure
    /// has its own.
    pub max_work: u64,
    /// The numbers of the policy in plans of jobs; `None`: those of the node, with
    /// processes that run by deadline.
    pub config: Option<Config>,
}

impl Settings {
    /// The steps of work for an answer where nobody sets another number.
    pub const MAX_WORK: u64 = pbs_planner::Options::MAX_WORK;

    /// The steps of work for a request to a service where nobody sets another number: a core does
    /// them in about a tenth of a second.
    pub const REQUEST_WORK: u64 = 10_000_000;

    /// Limits of the runs that are over, and the users to whom they apply.
    pub(crate) fn limits(&self) -> (EndedLimits, AccountOf) {
        (self.ended, self.account_of.clone())
    }

    /// The configuration of plans of jobs on a node with that one.
    pub(crate) fn plan_config(&self, node: &Config) -> Config {
        self.config.unwrap_or_else(|| planner_config(*node))
    }
}
