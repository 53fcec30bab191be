// SPDX-License-Identifier: GPL-2.0
//! Figure 4: which static allocations one may choose for a target efficiency of 75 %: enough
//! nodes for the memory, and no more than 10 % above A(75 %).

use pbs_report::{curves, Band, Curve, Plot};
use serde::Serialize;

use super::{allocations, share, Quantiles, Sample, Tolerance, Verdict, TARGET};
use crate::MOST_MIB;

/// Smallest factor of S_max. It is doubled several times, in four steps each. The range of the
/// report can't be read from the figure.
const LEAST_FACTOR: f64 = 0.125;
const DOUBLINGS: u32 = 6;
const QUARTERS: [f64; 4] =
    [1.0, 1.189_207_115_002_721, std::f64::consts::SQRT_2, 1.681_792_830_507_429];
/// 10 % more resources than A(75 %).
const BUDGET: f64 = 1.1;
/// The upper bounds that another implementation of the same readings has found, as medians.
/// The report's own can't be read.
const KNOWN: [(f64, f64); 3] = [(0.125, 406.0), (1.0, 1594.0), (8.0, 2679.0)];
const KNOWN_WITHIN: f64 = 0.05;
const MIB_PER_TIB: f64 = 1024.0 * 1024.0;

/// Static choices for one greatest size of the data.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct StaticChoiceRow {
    /// Times the S_max of the report.
    pub factor: f64,
    /// S_max.
    pub most_mib: f64,
    /// Nodes that have the memory.
    pub least_nodes: u64,
    /// Nodes that consume 1.1 · A(75 %), by mesh.
    pub most_nodes: Quantiles,
    /// Share of the meshes that have any choice at all.
    pub possible: f64,
}

/// The choices.
#[derive(Clone, Debug, Serialize)]
pub struct Figure4 {
    /// Meshes of the figure.
    pub sample: Sample,
    /// Memory of a node.
    pub node_mib: f64,
    /// Rows by growing S_max.
    pub rows: Vec<StaticChoiceRow>,
}

/// Makes the data of the figure. How much memory a node has the report does not say.
pub fn figure4(sample: Sample, node_mib: f64) -> Figure4 {
    let sets = sample.working_sets();
    let row = |factor| {
        let most_mib = factor * MOST_MIB;
        let steps = allocations(&sets, most_mib, TARGET);
        let bounds = steps.iter().map(|steps| steps.most_for_budget(BUDGET) as f64);
        let least_nodes = steps.iter().map(|steps| steps.least_for_memory(node_mib));
        StaticChoiceRow {
            factor,
            most_mib,
            // The greatest size is the same for all meshes.
            least_nodes: least_nodes.max().unwrap_or(1),
            most_nodes: Quantiles::of(bounds),
            possible: share(&steps, |steps| !steps.static_range(node_mib, BUDGET).is_empty()),
        }
    };
    let doubled = |times: u32| LEAST_FACTOR * f64::from(1u32 << times);
    let factors = (0..DOUBLINGS).flat_map(|times| QUARTERS.map(|part| part * doubled(times)));
    Figure4 { sample, node_mib, rows: factors.chain([doubled(DOUBLINGS)]).map(row).collect() }
}

impl Figure4 {
    /// Compares the upper bounds with those of another implementation of the same model, because no
    /// values are published.
    pub fn verdicts(&self) -> Vec<Verdict> {
        let known = KNOWN.into_iter().filter_map(|(factor, nodes)| {
            let row = self.rows.iter().find(|row| row.factor == factor)?;
            Some(Verdict::new(
                format!("Figure 4: median of the most nodes for 1.1 A(75 %), S_max times {factor}"),
                row.most_nodes.median,
                Tolerance::about(nodes, KNOWN_WITHIN),
            ))
        });
        known.collect()
    }

    /// Over S_max, as an SVG file.
    pub fn picture(&self) -> String {
        let over = |of: fn(&StaticChoiceRow) -> f64| {
            let points = self.rows.iter();
            points.map(move |row| (row.most_mib / MIB_PER_TIB, of(row)))
        };
        let high = self.rows.iter().map(|row| row.most_nodes.most);
        let choices = self.rows.iter().filter_map(|row| {
            let (least, most) = (row.least_nodes as f64, row.most_nodes.median);
            (least <= most).then_some((row.most_mib / MIB_PER_TIB, (least, most)))
        });
        let spread = self.rows.iter().map(|row| {
            let of = row.most_nodes;
            (row.most_mib / MIB_PER_TIB, (of.p5, of.p95))
        });
        let plot = Plot {
            title: format!(
                "Static allocations for 75 %, with {} of memory a node",
                pbs_text::bytes((self.node_mib * MIB_PER_TIB) as u64)
            ),
            across: "greatest size of the data, TiB".into(),
            up: "nodes".into(),
            is_logarithmic: true,
            up_to: 1.1 * high.fold(1.0, f64::max),
            curves: vec![
                Curve {
                    name: "most for 1.1 A(75 %), median".into(),
                    points: over(|row| row.most_nodes.median).collect(),
                },
                Curve {
                    name: "least for the memory".into(),
                    points: over(|row| row.least_nodes as f64).collect(),
                },
            ],
            bands: vec![
                Band { name: "most, nine tenths of the meshes".into(), points: spread.collect() },
                Band { name: "what one may choose, median".into(), points: choices.collect() },
            ],
        };
        let description = format!(
            "How many nodes {} meshes may have from begin to end, if their greatest size is to \
             fit into the memory and they are to consume at most 10 % more than A(75 %).",
            self.sample.meshes
        );
        curves("Klein and Pérez 2011, figure 4: static allocation choices", &description, &[plot])
    }
}
