// SPDX-License-Identifier: GPL-2.0
//! Jobs that are next on their nodes. They are committed while others still run there: the batch
//! system starts such a job at the moment at which its nodes are free, without a turn of the planner.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use pbs_cluster_planner::{RequestId, When};
use pbs_manager::Manager;

use super::{nodes_of, Steer};
use crate::steer::link::Link;

/// Planned requests that are looked at in a turn at most, in the order of their starts.
const LOOKED_AT: usize = 1000;

impl Steer {
    /// Requests that may start as soon as their nodes are free, however much earlier than planned.
    ///
    /// An earlier start ends earlier, and takes nothing from others: no other request is planned on
    /// those nodes before, no reservation is in the way, and nothing but the nodes decides when the
    /// request starts.
    pub(super) fn next_on_nodes(
        &self,
        manager: &Manager<Link>,
        now: Duration,
    ) -> HashSet<RequestId> {
        let mut next = HashSet::new();
        // A limit of a user counts what runs elsewhere, too.
        if !self.settings.is_ahead || !manager.site().limits.is_empty() {
            return next;
        }
        let mut firsts: BTreeMap<u32, u64> = BTreeMap::new();
        for (start_s, id) in manager.planner().planned_starts().take(LOOKED_AT) {
            let placed = manager.planner().placed(id);
            let is_first = |node: u32| firsts.get(&node).is_none_or(|&first_s| first_s == start_s);
            if placed.iter().all(|chunk| is_first(chunk.node))
                && self.may_move_up(manager, id, start_s, now)
            {
                next.insert(id);
            }
            for chunk in placed {
                firsts.entry(chunk.node).or_insert(start_s);
            }
        }
        next
    }

    /// Whether nothing but its nodes decides when a request starts, and others still use these.
    fn may_move_up(
        &self,
        manager: &Manager<Link>,
        id: RequestId,
        start_s: u64,
        now: Duration,
    ) -> bool {
        let job = self.keys.get(&id).and_then(|&key| self.world.job(key));
        let standing = manager.planner().standing(id);
        let (Some(job), Some(standing)) = (job, standing) else {
            return false;
        };
        let now_s = now.as_secs();
        let is_free = match standing.when {
            When::BestEffort | When::Deadline { late: false, .. } => true,
            When::After { start_s } | When::Between { start_s, late: false, .. } => {
                start_s <= now_s
            }
            _ => false,
        };
        let end_s = start_s.saturating_add(standing.duration_s);
        let is_closed = standing.nodes.iter().any(|chunk| {
            let closed = manager.planner().closed(chunk.node as usize);
            closed.iter().any(|time| time.start < end_s && time.end > now_s)
        });
        is_free
            && !is_closed
            && !standing.is_reservation
            && standing.after.is_empty()
            && job.after.is_empty()
            && job.demands.throttle == 0
            && job.demands.of_job().is_empty()
            && self.world.is_blocked(job.key, &nodes_of(manager, id))
    }
}
