// SPDX-License-Identifier: GPL-2.0
//! Static against dynamic allocation (Klein and Pérez 2011, 2.3).
//!
//! An application that changes its nodes with each step consumes an area A(e_t). The
//! equivalent static allocation n_eq consumes the same. As areas grow with every node and
//! that of one node is the least possible, there is one for every e_t up to 1; that it
//! exists below 0.8 alone, as the report has found, does not follow from its model.

use std::ops::RangeInclusive;

use serde::Serialize;

use crate::models::speed_up::Sums;
use crate::{SpeedUp, WorkingSet};

/// Steps with their data, and the nodes of each at a target efficiency.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Allocation {
    /// S_i in MiB.
    pub sizes_mib: Vec<f64>,
    /// n_i.
    pub nodes: Vec<u64>,
    /// The target efficiency e_t.
    pub target: f64,
    /// The model of all steps.
    pub model: SpeedUp,
}

impl Allocation {
    /// Computes the allocation of a working set with a given maximum size.
    pub fn new(set: &WorkingSet, most_mib: f64, target: f64, model: SpeedUp) -> Self {
        let sizes_mib = set.in_mib(most_mib);
        let nodes = sizes_mib.iter().map(|&size| model.nodes(target, size));
        Self { nodes: nodes.collect(), sizes_mib, target, model }
    }

    /// Each step with its nodes and its size.
    fn steps(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        let nodes = self.nodes.iter().map(|&nodes| nodes as f64);
        nodes.zip(self.sizes_mib.iter().copied())
    }

    /// A(e_t), in node-seconds.
    pub fn area(&self) -> f64 {
        let steps = self.steps();
        steps.map(|(n, size)| self.model.area(n, size)).sum()
    }

    /// Returns the end if each step has its nodes.
    pub fn seconds(&self) -> f64 {
        let steps = self.steps();
        steps.map(|(n, size)| self.model.seconds(n, size)).sum()
    }

    /// The most nodes of a step.
    pub fn most_nodes(&self) -> u64 {
        self.nodes.iter().copied().max().unwrap_or(1)
    }

    /// n_eq, which is no whole number: each step with so many nodes makes the same area.
    pub fn equivalent(&self) -> f64 {
        Sums::of(&self.sizes_mib).nodes_of_area(&self.model, self.area())
    }

    /// n_eq as one may ask for it.
    pub fn equivalent_nodes(&self) -> u64 {
        self.overcommitted(1.0)
    }

    /// φ · n_eq (5.2): what somebody guesses who is wrong by a factor.
    pub fn overcommitted(&self, factor: f64) -> u64 {
        ((self.equivalent() * factor).round() as u64).max(1)
    }

    /// The area with so many nodes in each step.
    pub fn static_area(&self, nodes: f64) -> f64 {
        nodes.max(1.0) * self.static_seconds(nodes)
    }

    /// Returns the end with that many nodes in each step.
    pub fn static_seconds(&self, nodes: f64) -> f64 {
        Sums::of(&self.sizes_mib).seconds(&self.model, nodes)
    }

    /// Returns the relative increase of the end time with the equivalent static allocation (figure
    /// 3).
    pub fn end_increase(&self) -> f64 {
        self.static_seconds(self.equivalent()) / self.seconds() - 1.0
    }

    /// Returns these steps with at most that many nodes: the part that fits into a pre-allocation.
    pub fn at_most(&self, nodes: u64) -> Self {
        let capped = self.nodes.iter().map(|&wanted| wanted.min(nodes.max(1)));
        Self { nodes: capped.collect(), ..self.clone() }
    }

    /// Returns the static allocations with memory for the greatest size that consume at most
    /// `budget` times A(e_t) (figure 4); the range is empty if no allocation satisfies both. The
    /// report does not give the memory of a node.
    pub fn static_range(&self, node_mib: f64, budget: f64) -> RangeInclusive<u64> {
        self.least_for_memory(node_mib)..=self.most_for_budget(budget)
    }

    /// Returns the number of nodes that have memory for the greatest size.
    pub fn least_for_memory(&self, node_mib: f64) -> u64 {
        let most_mib = self.sizes_mib.iter().copied().fold(0.0, f64::max);
        ((most_mib / node_mib).ceil() as u64).max(1)
    }

    /// The most nodes that consume at most `budget` times A(e_t).
    pub fn most_for_budget(&self, budget: f64) -> u64 {
        let sums = Sums::of(&self.sizes_mib);
        sums.nodes_of_area(&self.model, budget * self.area()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MOST_MIB;

    fn of(seed: u64, target: f64) -> Allocation {
        Allocation::new(&WorkingSet::new(seed), MOST_MIB, target, SpeedUp::default())
    }

    #[test]
    fn the_equivalent_allocation_has_the_same_area() {
        for seed in 0..20 {
            for target in [0.1, 0.3, 0.75, 0.79, 0.8, 0.9, 0.99, 1.0] {
                let dynamic = of(seed, target);
                let area = dynamic.static_area(dynamic.equivalent());
                assert!((area / dynamic.area() - 1.0).abs() < 1e-9, "{seed}, {target}");
            }
        }
    }

    #[test]
    fn at_most_1400_nodes_are_equivalent() {
        // Klein and Pérez 2011, 5.2.
        let found: Vec<_> = (0..1_000).map(|seed| of(seed, 0.75).equivalent_nodes()).collect();
        assert!(found.iter().all(|nodes| (700..=1400).contains(nodes)), "{found:?}");
    }

    #[test]
    fn one_node_is_equivalent_to_one_node() {
        let alone = of(1, 1.0);
        assert_eq!((alone.most_nodes(), alone.equivalent_nodes()), (1, 1));
        assert!(alone.end_increase().abs() < 1e-9);
    }

    #[test]
    fn budget_and_memory_bound_the_choice() {
        let dynamic = of(2, 0.75);
        let (least, most) = dynamic.static_range(4096.0, 1.1).into_inner();
        // 809 · 4 GiB are just enough for 3.16 TiB.
        assert_eq!(least, 809);
        assert!(dynamic.static_area(most as f64) <= 1.1 * dynamic.area());
        assert!(dynamic.static_area((most + 1) as f64) > 1.1 * dynamic.area());
        assert!(dynamic.static_range(1024.0, 1.1).is_empty());
    }

    #[test]
    fn a_pre_allocation_caps_the_nodes() {
        let dynamic = of(3, 0.75);
        let capped = dynamic.at_most(dynamic.equivalent_nodes());
        assert_eq!(capped.most_nodes(), dynamic.equivalent_nodes());
        assert!(capped.area() < dynamic.area() && capped.seconds() > dynamic.seconds());
    }
}
