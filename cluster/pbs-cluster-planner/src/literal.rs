// SPDX-License-Identifier: GPL-2.0
//! Keller's planning and mapping as printed (5.1, 5.2): an oracle, and what our times are
//! compared with.
//!
//! The uRS is copied for each request. FCN has the stretches in which a chunk is free for
//! the duration, FCJ their sum, FS the intersection; a request starts where a slot of FS
//! begins, and is mapped greedily. As the counts of FCN change within such stretches, a
//! slot of FS can promise what no mapping keeps; then the next one is tried. Nodes taken
//! whole, limits and pools are not here.

use std::ops::Range;
use std::sync::Arc;

use pbs_profile::{find_first_hole, intersection, FreeSlots, Need as Hole, Profile, FOREVER};

use crate::machine::Machine;
use crate::need::{Impossible, Need};
use crate::placed::{by_node, taken, Placed};
use crate::planner::Planner;
use crate::request::Request;
use crate::search::enough;
use crate::types::RequestId;

/// All profiles of a cluster, of what is free.
#[derive(Clone, Debug)]
pub struct Literal {
    machine: Arc<Machine>,
    /// sRS.
    system: Vec<Profile>,
    /// nRS, by node and resource.
    nodes: Vec<Vec<Profile>>,
}

/// A place that the procedure found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Start time of the request.
    pub start_s: u64,
    /// Nodes of the request.
    pub nodes: Vec<Placed>,
}

impl Literal {
    /// The plan of a planner.
    pub fn of(planner: &Planner) -> Self {
        let machine = planner.machine.clone();
        let free = |has: &[u64]| has.iter().map(|&has| Profile::new(has)).collect::<Vec<_>>();
        let nodes = (0..machine.node_count()).map(|node| free(&machine.class(node).has));
        let mut literal = Self { system: free(&machine.totals), nodes: nodes.collect(), machine };
        for entry in planner.entries.values() {
            if let (Some(place), Some(over)) = (&entry.place, entry.over()) {
                literal.book(&entry.need, &place.nodes, over, true);
            }
        }
        literal
    }

    /// Seeks a place for a request from a time on, as if it came now.
    ///
    /// # Errors
    ///
    /// If no place could be.
    pub fn plan(&self, from_s: u64, request: &Request) -> Result<Option<Found>, Impossible> {
        let need = Need::new(&self.machine, &request.rset, request.duration_s.max(1))?;
        Ok(self.seek(&need, from_s..FOREVER))
    }

    /// Unbooks a request, plans it again and books what was found, or what was: one
    /// decision of backfilling. Whether it starts earlier then.
    pub fn decide(&mut self, planner: &Planner, now_s: u64, id: RequestId) -> bool {
        let Some(entry) = planner.entries.get(&id) else {
            return false;
        };
        let (Some(place), Some(over)) = (&entry.place, entry.over()) else {
            return false;
        };
        let need = entry.need.clone();
        self.book(&need, &place.nodes, over.clone(), false);
        let found = self.seek(&need, now_s..FOREVER);
        let earlier = found.filter(|found| found.start_s < over.start);
        let is_earlier = earlier.is_some();
        if let Some(found) = earlier {
            let new = found.start_s..found.start_s + need.duration_s;
            self.book(&need, &found.nodes, new.clone(), true);
            self.book(&need, &found.nodes, new, false);
        }
        self.book(&need, &place.nodes, over, true);
        is_earlier
    }

    fn book(&mut self, need: &Need, placed: &[Placed], over: Range<u64>, is_more: bool) {
        let change = |profile: &mut Profile, amount| {
            let done = if is_more {
                profile.subtract(over.clone(), amount)
            } else {
                profile.add(over.clone(), amount)
            };
            debug_assert_eq!(done, Ok(()));
        };
        for &(resource, amount) in &need.sums {
            change(&mut self.system[resource], amount);
        }
        let mut amounts = Vec::new();
        for on_node in by_node(placed) {
            taken(&self.machine, need, on_node, &mut amounts);
            for &(resource, amount) in &amounts {
                change(&mut self.nodes[on_node[0].node as usize][resource], amount);
            }
        }
    }

    fn seek(&self, need: &Need, window: Range<u64>) -> Option<Found> {
        let duration_s = need.duration_s;
        // uRS, a copy as it would be with limits and pools in it.
        let view = self.system.clone();
        let mut free = vec![window.clone()];
        for &(resource, amount) in &need.sums {
            let slots = view[resource].free_slots(amount, duration_s, window.clone());
            free = intersection(free, slots).collect();
        }
        let mut together = vec![window.clone()];
        for kind in &need.kinds {
            let mut changes = Vec::new();
            for (node, profiles) in self.nodes.iter().enumerate() {
                let class = self.machine.class_of[node];
                if let Some(fit) = kind.fits[class].as_ref().filter(|_| need.may_be_on(node)) {
                    free_chunks(profiles, &fit.amounts, duration_s, &window, &mut changes);
                }
            }
            // FCJ: where the sum over the nodes is enough.
            changes.sort_unstable();
            let enough = enough(&changes, kind.count, window.end);
            together = intersection(together, enough).collect();
        }
        let slots = intersection(free, together).filter(|slot| slot.end - slot.start >= duration_s);
        for slot in slots {
            let over = slot.start..slot.start + duration_s;
            if let Some(nodes) = self.map(need, &over) {
                return Some(Found { start_s: slot.start, nodes });
            }
        }
        None
    }

    /// Expensive chunks on cheap nodes.
    fn map(&self, need: &Need, over: &Range<u64>) -> Option<Vec<Placed>> {
        let mut placed = Vec::new();
        let mut used: Vec<Vec<u64>> = vec![Vec::new(); self.nodes.len()];
        for (index, kind) in need.kinds.iter().enumerate() {
            let mut left = kind.count;
            for (node, profiles) in self.nodes.iter().enumerate() {
                let fit = kind.fits[self.machine.class_of[node]].as_ref();
                let Some(fit) = fit.filter(|_| need.may_be_on(node)) else {
                    continue;
                };
                let used = &mut used[node];
                if need.scatter && !used.is_empty() {
                    continue;
                }
                used.resize(profiles.len(), 0);
                let counts = fit.amounts.iter().map(|&(resource, amount)| {
                    let free = profiles[resource].min_over(over.clone()).unwrap_or(0);
                    free.saturating_sub(used[resource]) / amount
                });
                let count = counts.min().unwrap_or(fit.most).min(fit.most).min(left);
                if count == 0 {
                    continue;
                }
                for &(resource, amount) in &fit.amounts {
                    used[resource] += amount * count;
                }
                placed.push(Placed { node: node as u32, kind: index as u32, count: count as u32 });
                left -= count;
                if left == 0 {
                    break;
                }
            }
            if left > 0 {
                return None;
            }
        }
        placed.sort_unstable();
        Some(placed)
    }
}

/// FCN: where a chunk is free on a node for the duration, how many are, as changes.
fn free_chunks(
    profiles: &[Profile],
    amounts: &[(usize, u64)],
    duration_s: u64,
    window: &Range<u64>,
    changes: &mut Vec<(u64, i64)>,
) {
    let holes: Vec<_> = amounts
        .iter()
        .map(|&(resource, amount)| Hole { profile: &profiles[resource], amount })
        .collect();
    debug_assert!(find_first_hole(&holes, 0, window.clone()).is_some());
    for slot in FreeSlots::new(holes.clone(), duration_s, window.clone()) {
        let mut time_s = slot.start;
        while time_s < slot.end {
            let mut until_s = slot.end;
            let mut count = u64::MAX;
            for hole in &holes {
                if let Some(step) = hole.profile.steps_from(time_s).next() {
                    until_s = until_s.min(step.until);
                    count = count.min(step.value / hole.amount);
                }
            }
            changes.push((time_s, count as i64));
            if until_s < FOREVER {
                changes.push((until_s, -(count as i64)));
            }
            time_s = until_s;
        }
    }
}
