// SPDX-License-Identifier: GPL-2.0
//! Preselection of nodes for a search: the longest gap of each node, by the number of cores that
//! are free in it.
//!
//! For most nodes, two numbers show that a request has no place before the node is empty, or before
//! the time that matters. Only the other nodes' steps are searched. Both numbers of neighbouring
//! nodes lie side by side in memory. They cover cores alone: they can exclude a node, but don't
//! guarantee a place.

use pbs_profile::FOREVER;

use crate::machine::{Class, NCPUS};
use crate::node_plan::NodePlan;

/// The gaps of the nodes of a class.
#[derive(Clone, Debug)]
pub(crate) struct Gaps {
    nodes: usize,
    cores: usize,
    /// The longest time with an end in which so many cores are free: `[cores][node]`.
    longest_s: Vec<u64>,
    /// Time from which on that many cores are free for ever.
    tail_s: Vec<u64>,
    /// Whether the plan of a node differs for a trial from that of its numbers.
    stale: Vec<bool>,
    /// Whether the plan of a node has changed since its numbers were computed.
    old: Vec<bool>,
    /// Reused.
    open: Vec<(u64, u64)>,
}

impl Gaps {
    pub(crate) fn new(class: &Class) -> Self {
        let nodes = class.nodes.len();
        let cores = class.has[NCPUS] as usize;
        Self {
            nodes,
            cores,
            longest_s: vec![0; nodes * (cores + 1)],
            tail_s: vec![0; nodes * (cores + 1)],
            stale: vec![false; nodes],
            old: vec![false; nodes],
            open: Vec::new(),
        }
    }

    /// The earliest time at which so many cores could be free for the duration on a node
    /// of the class; [`FOREVER`] if never.
    pub(crate) fn earliest_s(&self, node: usize, cores: u64, duration_s: u64) -> u64 {
        if cores as usize > self.cores {
            return FOREVER;
        }
        let at = cores as usize * self.nodes + node;
        if self.longest_s[at] >= duration_s || self.stale[node] || self.old[node] {
            return 0;
        }
        self.tail_s[at]
    }

    /// The numbers of the node are not to be believed until they are made anew, or until
    /// the node is as it was.
    pub(crate) fn set_stale(&mut self, node: usize, stale: bool) {
        self.stale[node] = stale;
    }

    /// Records that the plan of a node has changed. Returns whether its numbers were those of the
    /// plan.
    pub(crate) fn set_old(&mut self, node: usize) -> bool {
        !std::mem::replace(&mut self.old[node], true)
    }

    /// Makes the numbers of a node anew.
    pub(crate) fn renew(&mut self, node: usize, plan: &NodePlan) {
        self.stale[node] = false;
        self.old[node] = false;
        for cores in 0..=self.cores {
            self.longest_s[cores * self.nodes + node] = 0;
            self.tail_s[cores * self.nodes + node] = FOREVER;
        }
        // Rectangles that are as high and as long as can be: each opens where more becomes
        // free, and closes where less is.
        self.open.clear();
        for step in 0..plan.step_count() {
            let used = plan.used(step, NCPUS);
            let free = (self.cores as u64).saturating_sub(used);
            let mut begin_s = plan.begin_s(step);
            while let Some(&(high, since_s)) = self.open.last() {
                if high < free {
                    break;
                }
                let longest_s = &mut self.longest_s[high as usize * self.nodes + node];
                *longest_s = (*longest_s).max(plan.begin_s(step) - since_s);
                begin_s = since_s;
                self.open.pop();
            }
            self.open.push((free, begin_s));
        }
        // What is left open has no end.
        for &(high, since_s) in &self.open {
            self.tail_s[high as usize * self.nodes + node] = since_s;
        }
        // So many cores are free where more are.
        for cores in (0..self.cores).rev() {
            let (at, above) = (cores * self.nodes + node, (cores + 1) * self.nodes + node);
            self.longest_s[at] = self.longest_s[at].max(self.longest_s[above]);
            self.tail_s[at] = self.tail_s[at].min(self.tail_s[above]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_gap_is_found_for_each_height() {
        let class = Class {
            has: vec![4],
            words: Vec::new(),
            only_if: None,
            kept: None,
            weight: 0,
            nodes: 0..1,
        };
        let mut gaps = Gaps::new(&class);
        let mut plan = NodePlan::new(1);
        plan.add(0..10, &[(0, 2)]);
        plan.add(10..15, &[(0, 4)]);
        plan.add(15..35, &[(0, 1)]);
        plan.add(35..60, &[(0, 3)]);
        gaps.renew(0, &plan);
        let earliest_s = |cores, duration_s| gaps.earliest_s(0, cores, duration_s);
        assert_eq!(earliest_s(4, 1), 60);
        assert_eq!(earliest_s(3, 20), 0);
        assert_eq!(earliest_s(3, 21), 60);
        // What is open at the end has none.
        assert_eq!(earliest_s(1, 46), 15);
        assert_eq!(earliest_s(1, 10), 0);
        assert_eq!(earliest_s(5, 1), FOREVER);
    }
}
