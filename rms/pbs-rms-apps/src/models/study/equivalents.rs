// SPDX-License-Identifier: GPL-2.0
//! Equivalent number of nodes (2.3), and whether 1,400 are enough (5.2).

use serde::Serialize;

use super::{allocations, Quantiles, Sample, Tolerance, Verdict, TARGET};
use crate::MOST_MIB;

/// Number of nodes that was enough in the report.
const NODES: f64 = 1_400.0;

/// The equivalent static allocations at 75 %.
#[derive(Clone, Debug, Serialize)]
pub struct Equivalents {
    /// Meshes of the figure.
    pub sample: Sample,
    /// n_eq in whole nodes.
    pub nodes: Quantiles,
    /// The most nodes of a step over n_eq: from this overcommit factor on, a pre-allocation
    /// does not cap any step.
    pub peak: Quantiles,
}

/// Finds them.
pub fn equivalents(sample: Sample) -> Equivalents {
    let steps = allocations(&sample.working_sets(), MOST_MIB, TARGET);
    Equivalents {
        sample,
        nodes: Quantiles::of(steps.iter().map(|steps| steps.equivalent_nodes() as f64)),
        peak: Quantiles::of(
            (steps.iter()).map(|steps| steps.most_nodes() as f64 / steps.equivalent()),
        ),
    }
}

impl Equivalents {
    /// With so many nodes, the pre-allocation can succeed.
    pub fn verdicts(&self) -> Vec<Verdict> {
        vec![Verdict::new(
            "Section 5.2: n_eq at 75 %, the greatest of all meshes",
            self.nodes.most,
            Tolerance::AtMost(NODES),
        )]
    }
}
