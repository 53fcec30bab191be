// SPDX-License-Identifier: GPL-2.0
//! Figure 9, top, as far as it needs no manager: what the mesh consumes if somebody guesses
//! its equivalent allocation wrong by a factor.

use serde::Serialize;

use super::{allocations, Quantiles, Sample, Tolerance, Verdict, TARGET};
use crate::MOST_MIB;

/// The report's own can't be read.
const FACTORS: [f64; 8] = [0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 4.0];
/// What another implementation of the same readings has found of a static allocation.
const KNOWN: [(f64, f64); 3] = [(1.0, 1.0), (2.0, 1.27), (4.0, 1.88)];
const KNOWN_WITHIN: f64 = 0.02;

/// An overcommit factor.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Row {
    /// φ.
    pub factor: f64,
    /// Consumed over A(75 %) if all that is pre-allocated is used.
    pub fixed: Quantiles,
    /// The same if each step takes what it wants of it.
    pub dynamic: Quantiles,
}

/// What meshes consume.
#[derive(Clone, Debug, Serialize)]
pub struct Overcommit {
    /// Of which meshes.
    pub sample: Sample,
    /// By factor, which grows.
    pub rows: Vec<Row>,
}

/// Finds it.
pub fn overcommit(sample: Sample) -> Overcommit {
    let steps = allocations(&sample.working_sets(), MOST_MIB, TARGET);
    let row = |factor| {
        let fixed = steps.iter().map(|steps| {
            let nodes = steps.overcommitted(factor);
            steps.static_area(nodes as f64) / steps.area()
        });
        let dynamic = steps.iter().map(|steps| {
            let nodes = steps.overcommitted(factor);
            steps.at_most(nodes).area() / steps.area()
        });
        Row {
            factor,
            fixed: Quantiles::of(fixed),
            dynamic: Quantiles::of(dynamic),
        }
    };
    Overcommit {
        sample,
        rows: FACTORS.map(row).to_vec(),
    }
}

impl Overcommit {
    /// A static allocation consumes more and more, a dynamic one does not (5.2).
    pub fn verdicts(&self) -> Vec<Verdict> {
        let medians = self.rows.iter().map(|row| row.fixed.median);
        let medians: Vec<f64> = medians.collect();
        let grows = medians.windows(2).all(|pair| pair.first() < pair.last());
        let dynamic = self.rows.iter().map(|row| row.dynamic.most);
        let mut verdicts = vec![
            Verdict::new(
                "Figure 9: a static allocation consumes more with each factor (1: it does)",
                f64::from(u8::from(grows)),
                Tolerance::AtLeast(1.0),
            ),
            Verdict::new(
                "Figure 9: what a dynamic allocation consumes over A(75 %), at most",
                dynamic.fold(0.0, f64::max),
                Tolerance::AtMost(1.01),
            ),
        ];
        verdicts.extend(KNOWN.into_iter().filter_map(|(factor, area)| {
            let row = self.rows.iter().find(|row| row.factor == factor)?;
            Some(Verdict::new(
                format!("Figure 9: static over A(75 %) at a factor of {factor}, median"),
                row.fixed.median,
                Tolerance::about(area, KNOWN_WITHIN),
            ))
        }));
        verdicts
    }
}
