// SPDX-License-Identifier: GPL-2.0
//! Duration of a step (Klein and Pérez 2011, 2.2 and figure 2), and the number of nodes that is
//! efficient (2.3).
//!
//! The constants are the published ones. The data of the fit are in another paper, therefore the
//! claim that it misses no point by more than 15 % can't be tested here.

use serde::Serialize;

/// The greatest size of the data in the report: 3.16 TiB.
pub const MOST_MIB: f64 = 3.16 * 1024.0 * 1024.0;

/// No application of this model takes more nodes: far more than any machine has, and few
/// enough that f64 tells each from the next.
const MOST_NODES: u64 = 1 << 40;

/// t(n, S) = A · S / n + B · n + C · S + D.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SpeedUp {
    /// A: what is computed in parallel, in s · node / MiB.
    pub parallel: f64,
    /// B: what each node costs all the others, in s / node.
    pub per_node: f64,
    /// C: what each node does about all of the data, in s / MiB.
    pub per_mib: f64,
    /// D: what is always there, in s.
    pub constant: f64,
}

impl Default for SpeedUp {
    /// The fit of figure 2.
    fn default() -> Self {
        Self { parallel: 7.26e-3, per_node: 1.23e-4, per_mib: 1.13e-6, constant: 1.38 }
    }
}

impl SpeedUp {
    /// t(n, S): seconds that a step takes with so much data on so many nodes. Equivalent
    /// allocations are no whole numbers, so neither are nodes here; there is at least one.
    pub fn seconds(&self, nodes: f64, size_mib: f64) -> f64 {
        let nodes = nodes.max(1.0);
        self.parallel * size_mib / nodes
            + self.per_node * nodes
            + self.per_mib * size_mib
            + self.constant
    }

    /// n · t(n, S): what a step takes, in node-seconds. It grows with every node.
    pub fn area(&self, nodes: f64, size_mib: f64) -> f64 {
        nodes.max(1.0) * self.seconds(nodes, size_mib)
    }

    /// e(n, S) = t(1, S) / (n · t(n, S)). The report does not say what its efficiency is;
    /// this is the usual one, and 1 on one node.
    pub fn efficiency(&self, nodes: f64, size_mib: f64) -> f64 {
        self.seconds(1.0, size_mib) / self.area(nodes, size_mib)
    }

    /// n_i: the most nodes that work at least that efficiently; one at least.
    ///
    /// ```
    /// use pbs_rms_apps::{SpeedUp, MOST_MIB};
    ///
    /// assert_eq!(SpeedUp::default().nodes(0.75, MOST_MIB), 1511);
    /// ```
    pub fn nodes(&self, target: f64, size_mib: f64) -> u64 {
        if target <= 0.0 {
            return MOST_NODES;
        }
        let budget = self.seconds(1.0, size_mib) / target;
        let sums = Sums { steps: 1.0, mib: size_mib };
        let root = sums.nodes_of_area(self, budget);
        let is_enough = |nodes: u64| self.efficiency(nodes as f64, size_mib) >= target;
        // The root is as exact as f64 is; on which side of a whole number it lies is decided
        // by the definition.
        let mut nodes = (root as u64).clamp(1, MOST_NODES);
        while nodes > 1 && !is_enough(nodes) {
            nodes -= 1;
        }
        while nodes < MOST_NODES && is_enough(nodes + 1) {
            nodes += 1;
        }
        nodes
    }
}

/// Several steps with the same nodes: as the model is linear in S, how many they are and
/// what their sizes add up to is all there is to know.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sums {
    pub(crate) steps: f64,
    pub(crate) mib: f64,
}

impl Sums {
    pub(crate) fn of(sizes_mib: &[f64]) -> Self {
        Self { steps: sizes_mib.len() as f64, mib: sizes_mib.iter().sum() }
    }

    /// Σ t(n, S_i).
    pub(crate) fn seconds(self, model: &SpeedUp, nodes: f64) -> f64 {
        let nodes = nodes.max(1.0);
        model.parallel * self.mib / nodes + self.per_node(model, nodes)
    }

    fn per_node(self, model: &SpeedUp, nodes: f64) -> f64 {
        self.steps * (model.per_node * nodes + model.constant) + model.per_mib * self.mib
    }

    /// n with Σ n · t(n, S_i) = area, at least 1: the positive root of a square equation.
    pub(crate) fn nodes_of_area(self, model: &SpeedUp, area: f64) -> f64 {
        let square = self.steps * model.per_node;
        let linear = self.per_node(model, 0.0);
        // What one may spend besides what is computed in parallel.
        let rest = (area - model.parallel * self.mib).max(0.0);
        let root = (linear * linear + 4.0 * square * rest).sqrt();
        // As usually written, it would cancel where the square term is small.
        let nodes = 2.0 * rest / (linear + root);
        if nodes.is_finite() {
            nodes.max(1.0)
        } else {
            1.0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greatest_mesh_is_worth_1511_nodes() {
        let model = SpeedUp::default();
        assert_eq!(MOST_MIB.round(), 3_313_500.0);
        assert_eq!(model.nodes(0.75, MOST_MIB), 1511);
        let efficiency = |nodes: f64| (model.efficiency(nodes, MOST_MIB) * 1e6).round() / 1e6;
        assert_eq!((efficiency(1511.0), efficiency(1512.0)), (0.750045, 0.749917));
        let seconds = model.seconds(1511.0, MOST_MIB);
        assert!((seconds - 21.2307).abs() < 5e-5, "{seconds}");
    }

    #[test]
    fn area_grows_with_every_node() {
        let model = SpeedUp::default();
        for size_mib in [0.0, 1.0, 1e3, 1e5, MOST_MIB, 8.0 * MOST_MIB] {
            let mut last = 0.0;
            for nodes in 1..20_000 {
                let area = model.area(f64::from(nodes), size_mib);
                assert!(area > last, "{nodes} nodes, {size_mib} MiB");
                last = area;
            }
        }
    }

    #[test]
    fn one_more_node_would_be_too_many() {
        let model = SpeedUp::default();
        for step in 0..=1_000 {
            let size_mib = MOST_MIB * f64::from(step) / 1_000.0;
            for target in [0.1, 0.3, 0.5, 0.6, 0.75, 0.79, 0.9, 0.999, 1.0] {
                let nodes = model.nodes(target, size_mib);
                assert!(nodes == 1 || model.efficiency(nodes as f64, size_mib) >= target);
                assert!(model.efficiency((nodes + 1) as f64, size_mib) < target);
            }
        }
    }

    #[test]
    fn more_data_are_worth_more_nodes() {
        let model = SpeedUp::default();
        let of = |step: u32| model.nodes(0.75, f64::from(step) * 3_313.5);
        assert!((0..1_000).all(|step| of(step) <= of(step + 1)));
        assert_eq!(of(0), 1);
    }

    #[test]
    fn nonsense_is_one_node_or_very_many() {
        let model = SpeedUp::default();
        assert_eq!(model.nodes(f64::NAN, 1.0), 1);
        assert_eq!(model.nodes(2.0, 1.0), 1);
        assert_eq!(model.nodes(0.75, f64::NAN), 1);
        assert_eq!(model.nodes(0.75, f64::INFINITY), 1);
        assert_eq!(model.nodes(0.0, 1.0), MOST_NODES);
    }

    #[test]
    fn sums_are_those_of_the_steps() {
        let model = SpeedUp::default();
        let sizes = [0.0, 5e3, 1e6, 3e6];
        let sums = Sums::of(&sizes);
        for nodes in [1.0, 7.5, 800.0, 1e4] {
            let seconds: f64 = sizes.iter().map(|&size| model.seconds(nodes, size)).sum();
            assert!((sums.seconds(&model, nodes) / seconds - 1.0).abs() < 1e-12);
            let back = sums.nodes_of_area(&model, nodes * seconds);
            assert!((back / nodes - 1.0).abs() < 1e-9, "{nodes} and not {back}");
        }
    }
}
