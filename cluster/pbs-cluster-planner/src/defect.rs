// SPDX-License-Identifier: GPL-2.0
//! Defects of parts of nodes, such as a DIMM or some cores (Keller, 4: avl = maxAvl − defect).
//!
//! A node with a defect stays in use with its other parts. The plan treats the defective parts as
//! used from then on, without an end. Requests that have not started and have no room beside them
//! are planned anew, the least important first. A running request keeps what it has: while it
//! overlaps the defect, the sums of the cluster count both, therefore never more is promised than
//! there is. A reservation that can be held nowhere else does not use the node any more.

use crate::machine::ResourceId;
use crate::planner::Planner;
use crate::replan::Replanned;
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
        self.make_room(now_s, &[node], &mut replanned);
        let is_left =
            |part: &(ResourceId, u64)| parts.iter().any(|now| now.0 == part.0 && now.1 >= part.1);
        if replanned != Replanned::default() || !before.iter().all(is_left) {
            replanned.moved.extend(self.plan_waiting(now_s));
            replanned.moved.extend(self.keep_order(now_s));
            replanned.waiting.retain(|id| !replanned.moved.contains(id));
            self.backfill.add(now_s);
        }
        replanned
    }

    /// Returns the defective amounts of a node.
    pub fn defect(&self, node: usize) -> &[(ResourceId, u64)] {
        self.nodes.defect(node)
    }

    /// Plans requests anew that have no room beside the defects of nodes, or while these are closed:
    /// each of them once.
    pub(crate) fn make_room(&mut self, now_s: u64, nodes: &[usize], replanned: &mut Replanned) {
        let mut planned: Vec<(RequestId, usize)> = Vec::new();
        for &node in nodes {
            planned.extend(self.on_node(node).into_iter().map(|id| (id, node)));
        }
        planned.retain(|(id, _)| self.entries.get(id).is_some_and(|of| !of.keeps_lost_nodes()));
        planned.sort_by_key(|&(id, _)| self.entries.get(&id).map(|entry| entry.turn(id)));
        let mut out = Vec::new();
        for (id, node) in planned.into_iter().rev() {
            if self.lacks_room(now_s, node, id) {
                out.extend(self.take_place(now_s, id).map(|place| (id, place)));
            }
        }
        for &node in nodes {
            for id in self.on_node(node) {
                if self.lacks_room(now_s, node, id) {
                    self.hold_elsewhere(now_s, id, node, replanned);
                }
            }
        }
        for (id, old) in out.into_iter().rev() {
            self.plan_again(now_s, id, old.start_s.max(now_s), replanned);
        }
        for &node in nodes {
            self.follow_inside(now_s, node);
        }
    }

    /// Lets running reservations use a node as long as there is room for what they hold of it.
    fn follow_inside(&mut self, now_s: u64, node: usize) {
        if !self.nodes.is_usable(node) {
            return;
        }
        let name = self.machine.node_name(node).to_string();
        for id in self.on_node(node) {
            let has_room = !self.lacks_room(now_s, node, id);
            let Some(inside) = self.inside_mut(id) else {
                continue;
            };
            let Some(place) = inside.machine.node_by_name(&name) else {
                continue;
            };
            if has_room {
                inside.node_up(now_s, place);
            } else {
                inside.node_offline(now_s, place);
            }
        }
    }

    /// Whether more than there is of something that a request has on a node is used at a time of
    /// the request.
    fn lacks_room(&self, now_s: u64, node: usize, id: RequestId) -> bool {
        let Some(over) = self.entries.get(&id).and_then(|entry| entry.over()) else {
            return false;
        };
        let Some((_, used)) = self.used_by(id).into_iter().find(|&(of, _)| of == node) else {
            return false;
        };
        let over = over.start.max(now_s)..over.end;
        let mut scarce = self.nodes.scarce(&self.machine, node, &over);
        scarce.any(|resource| used[resource] > 0)
    }
}
