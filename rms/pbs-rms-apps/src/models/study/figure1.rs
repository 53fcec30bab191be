// SPDX-License-Identifier: GPL-2.0
//! Figure 1: how working sets evolve.

use pbs_report::{curves, Curve, Plot};
use serde::Serialize;

use super::{share, Sample, Tolerance, Verdict};
use crate::{WorkingSet, MOST};

/// Number of working sets that are drawn.
const DRAWN: usize = 4;
/// Steps whose mean is compared with that of the next.
const STRETCH: usize = 50;

/// The working sets.
#[derive(Clone, Debug, Serialize)]
pub struct Figure1 {
    /// Meshes of the figure.
    pub sample: Sample,
    /// The sizes of each.
    pub sets: Vec<WorkingSet>,
}

/// Makes the data of the figure.
pub fn figure1(sample: Sample) -> Figure1 {
    Figure1 { sample, sets: sample.working_sets() }
}

fn mean(sizes: &[f64]) -> f64 {
    sizes.iter().sum::<f64>() / sizes.len().max(1) as f64
}

/// The mean of the first and of the last tenth.
fn tenths(set: &WorkingSet) -> (f64, f64) {
    let sizes = set.normalised();
    let tenth = sizes.len() / 10;
    let first = sizes.get(..tenth).unwrap_or_default();
    let last = sizes.get(sizes.len() - tenth..).unwrap_or_default();
    (mean(first), mean(last))
}

impl Figure1 {
    /// Mostly increasing, with noise, up to 1,000 (2.1).
    pub fn verdicts(&self) -> Vec<Verdict> {
        let most = |set: &WorkingSet| set.normalised().iter().copied().fold(0.0, f64::max);
        let off = self.sets.iter().map(|set| (most(set) - MOST).abs());
        let stretches = self.sets.iter().flat_map(|set| {
            let means: Vec<_> = set.normalised().chunks(STRETCH).map(mean).collect();
            let pairs = means.windows(2).map(|pair| pair.first() < pair.last());
            pairs.collect::<Vec<_>>()
        });
        let rises: Vec<bool> = stretches.collect();
        let grows = |set: &WorkingSet| {
            let (first, last) = tenths(set);
            last > 5.0 * first
        };
        vec![
            Verdict::new(
                "Figure 1: the greatest size is 1,000; it is off by",
                off.fold(0.0, f64::max),
                Tolerance::AtMost(0.0),
            ),
            Verdict::new(
                "Figure 1: meshes whose last tenth is more than five times the first",
                share(&self.sets, grows),
                Tolerance::AtLeast(1.0),
            ),
            Verdict::new(
                "Figure 1: stretches of 50 steps that are larger than those before",
                share(&rises, |&is| is),
                Tolerance::AtLeast(0.8),
            ),
        ]
    }

    /// Some of them as an SVG file.
    pub fn picture(&self) -> String {
        let seeds = self.sample.seeds();
        let drawn = seeds.zip(&self.sets).take(DRAWN);
        let curve = |(seed, set): (u64, &WorkingSet)| Curve {
            name: format!("seed {seed}"),
            points: (1..).map(f64::from).zip(set.normalised().iter().copied()).collect(),
        };
        let plot = Plot {
            title: "Examples of working sets of an adaptive mesh".into(),
            across: "step".into(),
            up: "size".into(),
            up_to: MOST * 1.02,
            curves: drawn.map(curve).collect(),
            ..Plot::default()
        };
        let description = "Sizes of the data over the steps of some meshes: mostly rising, with \
                           sudden and flat regions, and with noise. The greatest of each is 1,000.";
        curves("Klein and Pérez 2011, figure 1: working sets", description, &[plot])
    }
}
