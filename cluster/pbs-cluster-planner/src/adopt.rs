// SPDX-License-Identifier: GPL-2.0
//! Requests that run where they were not planned.
//!
//! The planner does not start everything itself: another may be faster, or may not have received
//! the last change of the plan. A running request is never moved. The plan follows it.

use std::ops::Range;

use crate::budget::SearchBudget;
use crate::need::Need;
use crate::placed::{by_node, taken, Placed};
use crate::planner::Planner;
use crate::replan::Replanned;
use crate::search::Place;
use crate::standing::Standing;
use crate::types::{RequestId, Turn};

impl Planner {
    /// Places a request that runs on those nodes since just now, one chunk on each. Requests that
    /// are planned there, and have not started, are planned anew.
    ///
    /// Returns `None` if its chunks do not fit there beside those of running requests. Nothing is
    /// changed then.
    pub fn adopt(&mut self, now_s: u64, id: RequestId, nodes: &[usize]) -> Option<Replanned> {
        let now_s = self.policy.point_s(now_s);
        let entry = self.entries.get(&id)?;
        let need = entry.need.clone();
        if entry.inside.is_some() || need.kinds.len() != 1 {
            return None;
        }
        let chunk = |&node: &usize| Placed { node: node as u32, kind: 0, count: 1 };
        let mut chunks: Vec<Placed> = nodes.iter().map(chunk).collect();
        chunks.sort_unstable();
        let standing = Standing { nodes: chunks, is_running: true, ..self.standing(id)? };
        // It used nothing of the place that it had.
        let old = self.take_place(0, id);
        let others = self.take_planned(now_s, now_s + need.duration_s, nodes);
        let is_free = self.has_room(&need, &standing.nodes, &(now_s..now_s + need.duration_s));
        let place = is_free.then(|| self.place_of(&need, now_s, &standing)).flatten();
        let Some(place) = place else {
            for ((_, _, other), place) in others {
                self.set_place(other, place);
            }
            if let Some(old) = old {
                self.set_place(id, old);
            }
            return None;
        };
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.is_running = true;
        }
        self.set_place(id, place);
        let mut replanned = Replanned::default();
        let budget = SearchBudget::default();
        for ((_, _, other), old) in others {
            self.plan_again(now_s, other, old.start_s.max(now_s), &mut replanned, &budget);
        }
        replanned.moved.extend(self.keep_order(now_s, &[id], &budget));
        self.keep_order_after(now_s, &mut replanned, &budget);
        self.backfill.add(now_s);
        Some(replanned)
    }

    /// Whether chunks fit throughout an interval on their nodes, which may be out of use.
    pub(crate) fn has_room(&self, need: &Need, chunks: &[Placed], over: &Range<u64>) -> bool {
        let mut amounts = Vec::new();
        by_node(chunks).all(|on_node| {
            taken(&self.machine, need, on_node, &mut amounts);
            let left = self.nodes.left_over(&self.machine, on_node[0].node as usize, over);
            left.is_some_and(|left| amounts.iter().all(|&(of, amount)| amount <= left[of]))
        })
    }

    /// Takes the places of requests that would start on those nodes before `until_s`, in their
    /// turns.
    fn take_planned(&mut self, now_s: u64, until_s: u64, nodes: &[usize]) -> Vec<(Turn, Place)> {
        let is_there = |place: &Place| {
            let mut on = place.nodes.iter();
            place.start_s < until_s && on.any(|placed| nodes.contains(&(placed.node as usize)))
        };
        let others = self
            .entries
            .iter()
            .filter(|(_, entry)| !entry.is_running && entry.place.as_ref().is_some_and(is_there));
        let mut others: Vec<Turn> = others.map(|(&other, entry)| entry.turn(other)).collect();
        others.sort_unstable();
        let taken = others.into_iter().map(|turn| (turn, self.take_place(now_s, turn.2)));
        taken.filter_map(|(turn, place)| Some((turn, place?))).collect()
    }
}
