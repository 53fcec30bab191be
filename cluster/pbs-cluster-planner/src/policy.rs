// SPDX-License-Identifier: GPL-2.0
//! Policy of the planner.

use pbs_site::{Mapping, Site};

/// Choices of the planner, and its horizon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Choice among suitable nodes.
    pub mapping: Mapping,
    /// Two points of the plan are the same or so far apart: minDist (Keller, 4). At
    /// least 1.
    pub min_dist_s: u64,
    /// Largest distance of a planned start from now. A request that would start later waits instead
    /// (Keller, 8). `None`: any distance.
    pub horizon_s: Option<u64>,
    /// Nodes are asked by so many threads where many chunks are wanted: Keller's thread
    /// pool (5.4). The plan does not depend on it. At least 1.
    pub threads: usize,
    /// Somebody is told the place of a request so long before it starts, and starts it: it
    /// stays then, even if a better one has become free.
    pub fixed_before_s: Option<u64>,
    /// Whether requests are offered earlier places in the order of their starts, which improved
    /// plans choose, and not by priority and time of submission.
    pub moves_up_by_start: bool,
}

impl Default for Policy {
    /// Keller's: cheap nodes first, seconds, no horizon.
    fn default() -> Self {
        Self {
            mapping: Mapping::Cheapest,
            min_dist_s: 1,
            horizon_s: None,
            threads: 1,
            fixed_before_s: None,
            moves_up_by_start: false,
        }
    }
}

impl Policy {
    /// Returns the policy that a site declares.
    pub fn of_site(site: &Site) -> Self {
        Self {
            mapping: site.mapping,
            min_dist_s: site.min_dist_s,
            horizon_s: site.planning_horizon_s,
            threads: site.planning_threads,
            moves_up_by_start: site.optimise.is_some(),
            ..Self::default()
        }
    }

    /// The first point of the plan that is not before that time.
    pub(crate) fn point_s(&self, time_s: u64) -> u64 {
        time_s.checked_next_multiple_of(self.min_dist_s.max(1)).unwrap_or(u64::MAX)
    }
}
