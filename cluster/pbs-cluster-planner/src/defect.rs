// SPDX-License-Identifier: GPL-2.0
//! Defects of parts of nodes, such as a DIMM or some cores (Keller, 4: avl = maxAvl − defect).
//!
//! A node with a defect stays in use with its other parts. The plan treats the defective parts as
//! used from then on, without an end. Requests that have not started and have no room beside them
//! are planned anew, the least important first. A running request keeps what it has: while it
//! overlaps the defect, the sums of the cluster count both, therefore never more is promised than
//! there is. A reservation that can be held nowhere else does not use the node any more.

use crate::budget::SearchBudget;
use crate::machine::ResourceId;
use crate::placed::{by_node, taken};
use crate::planner::Planner;
use crate::replan::{NodeSet, Replanned};
use crate::types::RequestId;

impl Planner {
    /// Takes parts of a node out of use, from now on; all others are in order. Without parts the
    /// node is repaired: requests that wait are planned, and others may move up.
    pub fn set_defect(
        &mut self,
        now_s: u64,
        node: usize,
        parts: &[(ResourceId, u64)],
    ) -> Replanned {
        let has = &self.machine.class(node).has;
        let least = parts.iter().map(|&(of, amount)| (of, amount.min(has[of])));
        let parts: Vec<_> = least.filter(|&(_, amount)| amount > 0).collect();
        if self.nodes.defect(node) == parts {
            return Replanned::default();
        }
        self.version += 1;
        self.count_closed(now_s, node, false);
        let before = self.nodes.set_defect(&self.machine, node, now_s, parts.clone());
        if self.nodes.is_usable(node) {
            self.system.set_defect(&before, now_s, false);
            self.system.set_defect(&parts, now_s, true);
        }
        self.count_closed(now_s, node, true);
        let mut replanned = Replanned::default();
        let budget = SearchBudget::default();
        self.make_room(now_s, &[node], &mut replanned, &budget);
        let is_left =
            |part: &(ResourceId, u64)| parts.iter().any(|now| now.0 == part.0 && now.1 >= part.1);
        if replanned != Replanned::default() || !before.iter().all(is_left) {
            replanned.moved.extend(self.plan_waiting_within(now_s, &budget));
            self.keep_order_after(now_s, &mut replanned, &budget);
            replanned.waiting.retain(|id| !replanned.moved.contains(id));
            self.backfill.add(now_s);
        }
        replanned
    }

    /// Returns the defective amounts of a node.
    pub fn defect(&self, node: usize) -> &[(ResourceId, u64)] {
        self.nodes.defect(node)
    }

    /// Plans requests anew that have no room beside the defects of nodes, or while these are
    /// closed: each of them once.
    pub(crate) fn make_room(
        &mut self,
        now_s: u64,
        nodes: &[usize],
        replanned: &mut Replanned,
        budget: &SearchBudget,
    ) {
        let among = self.node_set(nodes);
        let mut planned = self.on_any(&among);
        planned.retain(|id| self.entries.get(id).is_some_and(|of| !of.keeps_lost_nodes()));
        planned.sort_by_key(|&id| self.entries.get(&id).map(|entry| entry.turn(id)));
        let mut out = Vec::new();
        for id in planned.into_iter().rev() {
            if !self.without_room(now_s, id, &among).is_empty() {
                out.extend(self.take_place(now_s, id).map(|place| (id, place)));
            }
        }
        for id in self.on_any(&among) {
            let lost = self.without_room(now_s, id, &among);
            if !lost.is_empty() {
                self.hold_elsewhere(now_s, id, &lost, replanned, budget);
            }
        }
        for (id, old) in out.into_iter().rev() {
            self.plan_again(now_s, id, old.start_s.max(now_s), replanned, budget);
        }
        self.follow_inside(now_s, &among);
    }

    /// Lets running reservations use nodes as long as there is room for what they hold of them.
    fn follow_inside(&mut self, now_s: u64, among: &NodeSet) {
        for id in self.on_any(among) {
            if self.inside(id).is_none() {
                continue;
            }
            let lost = self.without_room(now_s, id, among);
            let nodes: Vec<usize> = self.nodes_of(id).filter(|&node| among[node]).collect();
            for node in nodes.into_iter().filter(|&node| self.nodes.is_usable(node)) {
                let Some(inside) = self.entries.get_mut(&id).and_then(|of| of.inside.as_mut())
                else {
                    continue;
                };
                let Some(place) = inside.machine.node_by_name(self.machine.node_name(node)) else {
                    continue;
                };
                if lost.contains(&node) {
                    inside.node_offline(now_s, place);
                } else {
                    inside.node_up(now_s, place);
                }
            }
        }
    }

    /// Returns those of some nodes of a request where more than there is of something that it has
    /// there is used at a time of the request.
    fn without_room(&self, now_s: u64, id: RequestId, among: &NodeSet) -> Vec<usize> {
        let Some(entry) = self.entries.get(&id) else {
            return Vec::new();
        };
        let (Some(over), Some(place)) = (entry.over(), &entry.place) else {
            return Vec::new();
        };
        let over = over.start.max(now_s)..over.end;
        let mut amounts = Vec::new();
        let scarce = by_node(&place.nodes).filter_map(|on_node| {
            let node = on_node[0].node as usize;
            if !among[node] {
                return None;
            }
            taken(&self.machine, &entry.need, on_node, &mut amounts);
            let has_it = |of| amounts.iter().any(|&(used, amount)| used == of && amount > 0);
            self.nodes.scarce(&self.machine, node, &over).any(has_it).then_some(node)
        });
        scarce.collect()
    }
}
