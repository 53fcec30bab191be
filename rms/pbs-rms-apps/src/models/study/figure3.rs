// SPDX-License-Identifier: GPL-2.0
//! Figure 3: by how much an application ends later with the equivalent static allocation.

use pbs_report::{curves, Band, Curve, Plot};
use serde::Serialize;

use super::{allocations, share, Quantiles, Sample, Tolerance, Verdict, TARGET};
use crate::MOST_MIB;

/// Target efficiencies below 0.8, for which the report has found equivalent static allocations. The
/// drawn ones can't be read from the figure.
const TARGETS: [f64; 12] = [0.2, 0.3, 0.4, 0.5, 0.55, 0.6, 0.65, 0.7, 0.725, TARGET, 0.775, 0.79];
/// From here on the claim holds; below, fewer and fewer meshes keep it.
const CLAIMED_FROM: f64 = 0.6;
/// Claim of the report, in percent.
const MOST_PERCENT: f64 = 2.5;

/// End times for one target efficiency.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct EndTimeRow {
    /// e_t.
    pub target: f64,
    /// Increase of the end time, in percent.
    pub increase_percent: Quantiles,
    /// Share of the meshes that end at most 2.5 % later.
    pub within: f64,
}

/// The end-time increases.
#[derive(Clone, Debug, Serialize)]
pub struct Figure3 {
    /// Meshes of the figure.
    pub sample: Sample,
    /// Rows by growing target efficiency.
    pub rows: Vec<EndTimeRow>,
}

/// Makes the data of the figure.
pub fn figure3(sample: Sample) -> Figure3 {
    let sets = sample.working_sets();
    let row = |target| {
        let steps = allocations(&sets, MOST_MIB, target);
        let increases = steps.iter().map(|steps| 100.0 * steps.end_increase());
        let increases: Vec<f64> = increases.collect();
        EndTimeRow {
            target,
            within: share(&increases, |&percent| percent <= MOST_PERCENT),
            increase_percent: Quantiles::of(increases),
        }
    };
    Figure3 { sample, rows: TARGETS.map(row).to_vec() }
}

impl Figure3 {
    /// At most 2.5 % (2.3), for nearly all meshes.
    pub fn verdicts(&self) -> Vec<Verdict> {
        let claimed = self.rows.iter().filter(|row| row.target >= CLAIMED_FROM);
        let mut verdicts = vec![Verdict::new(
            "Figure 3: meshes that end at most 2.5 % later, at the worst target from 0.6 on",
            claimed.map(|row| row.within).fold(1.0, f64::min),
            Tolerance::AtLeast(0.95),
        )];
        let at_target = self.rows.iter().filter(|row| row.target == TARGET);
        verdicts.extend(at_target.map(|row| {
            Verdict::new(
                "Figure 3: median of the increase at 75 %, in percent",
                row.increase_percent.median,
                Tolerance::Between(0.0, MOST_PERCENT),
            )
        }));
        verdicts
    }

    /// Over the target efficiency, as an SVG file.
    pub fn picture(&self) -> String {
        let curve = |name: &str, of: fn(&EndTimeRow) -> f64| Curve {
            name: name.into(),
            points: self.rows.iter().map(|row| (row.target, of(row))).collect(),
        };
        let band = |name: &str, of: fn(&Quantiles) -> (f64, f64)| Band {
            name: name.into(),
            points: (self.rows.iter()).map(|row| (row.target, of(&row.increase_percent))).collect(),
        };
        let plot = Plot {
            title: "End-time increase with an equivalent static allocation".into(),
            across: "target efficiency".into(),
            up: "percent".into(),
            curves: vec![
                curve("median", |row| row.increase_percent.median),
                curve("greatest", |row| row.increase_percent.most),
                curve("claimed at most", |_| MOST_PERCENT),
            ],
            bands: vec![
                band("half of the meshes", |of| (of.p25, of.p75)),
                band("nine tenths", |of| (of.p5, of.p95)),
            ],
            ..Plot::default()
        };
        let description = format!(
            "By how many percent {} meshes end later if each step has the equivalent static \
             allocation: the more, the lower the target efficiency.",
            self.sample.meshes
        );
        curves("Klein and Pérez 2011, figure 3: static against dynamic", &description, &[plot])
    }
}
