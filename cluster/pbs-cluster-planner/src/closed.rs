// SPDX-License-Identifier: GPL-2.0
//! Times in which whole nodes are closed, such as for maintenance.
//!
//! The plan treats all parts of a closed node as used in that time. Requests that have not started
//! and would run in it are planned anew. A running request continues: while it overlaps the time,
//! the sums of the cluster count both, and therefore never more is promised than there is.

use std::ops::Range;

use crate::budget::SearchBudget;
use crate::planner::Planner;
use crate::replan::Replanned;

impl Planner {
    /// Sets the times in which nodes are closed, of all these nodes together: what is planned there
    /// is planned anew once. The times replace those before; without times a node is open. Times that
    /// are over have no effect.
    pub fn set_closed_all(
        &mut self,
        now_s: u64,
        closed: Vec<(usize, Vec<Range<u64>>)>,
    ) -> Replanned {
        let mut changed = Vec::new();
        let mut is_open = false;
        for (node, times) in closed {
            let times = union(times.into_iter().filter(|time| time.end > now_s).collect());
            let before = self.nodes.closed(node).iter().filter(|time| time.end > now_s);
            let before: Vec<Range<u64>> = before.cloned().collect();
            if before == times {
                continue;
            }
            let is_closed = |time: &Range<u64>| {
                let start_s = time.start.max(now_s);
                times.iter().any(|now| now.start <= start_s && time.end <= now.end)
            };
            is_open |= !before.iter().all(is_closed);
            self.count_closed(now_s, node, false);
            self.nodes.set_closed(&self.machine, node, now_s, times);
            self.count_closed(now_s, node, true);
            changed.push(node);
        }
        let mut replanned = Replanned::default();
        let budget = SearchBudget::default();
        if changed.is_empty() {
            return replanned;
        }
        self.version += 1;
        self.make_room(now_s, &changed, &mut replanned, &budget);
        if is_open || replanned != Replanned::default() {
            replanned.moved.extend(self.plan_waiting_within(now_s, &budget));
            self.keep_order_after(now_s, &mut replanned, &budget);
            replanned.waiting.retain(|id| !replanned.moved.contains(id));
            self.backfill.add(now_s);
        }
        replanned
    }

    /// Returns the times in which a node is closed, in their order.
    pub fn closed(&self, node: usize) -> &[Range<u64>] {
        self.nodes.closed(node)
    }

    /// Takes what a closed node has from the sums of the cluster, or gives it back. A node that is
    /// out of use counts for nothing anyway.
    pub(crate) fn count_closed(&mut self, now_s: u64, node: usize, is_closed: bool) {
        if !self.nodes.is_usable(node) {
            return;
        }
        let has = self.has(node);
        for time in self.nodes.closed(node) {
            let time = time.start.max(now_s)..time.end;
            if !time.is_empty() {
                self.system.set_closed(&has, time, is_closed);
            }
        }
    }
}

/// Returns times that do not touch each other, in their order.
fn union(mut times: Vec<Range<u64>>) -> Vec<Range<u64>> {
    times.retain(|time| !time.is_empty());
    times.sort_unstable_by_key(|time| (time.start, time.end));
    let mut all: Vec<Range<u64>> = Vec::with_capacity(times.len());
    for time in times {
        match all.last_mut() {
            Some(last) if time.start <= last.end => last.end = last.end.max(time.end),
            _ => all.push(time),
        }
    }
    all
}
