// SPDX-License-Identifier: GPL-2.0
//! Figure 11: what it helps that one sweep may fill what another leaves.

use pbs_report::{curves, Curve, Plot};
use pbs_rms_apps::study::{Quantiles, Sample, Tolerance, Verdict};
use pbs_rms_apps::Allocation;
use serde::Serialize;

use super::{for_all, meshes, updates_before, Evaluation, INTERVALS_S};

/// An announce interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FillingRow {
    /// Time from the announcement to the update, in seconds.
    pub interval_s: u64,
    /// Node time that was allocated and not wasted, in percent of all, if each sweep may use the
    /// nodes that the other leaves.
    pub filling: Quantiles,
    /// Node time that was allocated and not wasted, in percent of all, if each sweep has its half.
    pub strict: Quantiles,
}

/// All intervals.
#[derive(Clone, Debug, Serialize)]
pub struct Figure11 {
    /// Sample of meshes.
    pub sample: Sample,
    /// Rows by ascending interval.
    pub rows: Vec<FillingRow>,
    /// Meshes that did not come to their end.
    pub unfinished: usize,
}

/// Runs each mesh with each interval, twice, beside sweeps of 600 s and of 60 s.
pub fn figure11(sample: Sample) -> Figure11 {
    let used = |steps: &Allocation, interval_s, is_strict| {
        let evaluation = Evaluation {
            updates: updates_before(interval_s),
            tasks_s: vec![600, 60],
            is_strict,
            ..Evaluation::default()
        };
        Some(evaluation.run(steps)?.used_percent())
    };
    let all = for_all(&meshes(sample), |steps| {
        let both = INTERVALS_S.map(|interval_s| {
            Some((used(steps, interval_s, false)?, used(steps, interval_s, true)?))
        });
        both.into_iter().collect::<Option<Vec<(f64, f64)>>>()
    });
    let ended: Vec<&Vec<(f64, f64)>> = all.iter().flatten().collect();
    let rows = INTERVALS_S.iter().enumerate().map(|(place, &interval_s)| FillingRow {
        interval_s,
        filling: Quantiles::of(ended.iter().map(|mesh| mesh[place].0)),
        strict: Quantiles::of(ended.iter().map(|mesh| mesh[place].1)),
    });
    Figure11 { sample, rows: rows.collect(), unfinished: all.len() - ended.len() }
}

impl Figure11 {
    /// Filling is never worse and somewhere better (5.4).
    pub fn verdicts(&self) -> Vec<Verdict> {
        let gain = |row: &FillingRow| row.filling.median - row.strict.median;
        let gains = || self.rows.iter().map(gain);
        vec![
            Verdict::new(
                "Figure 11: meshes that did not end",
                self.unfinished as f64,
                Tolerance::AtMost(0.0),
            ),
            Verdict::new(
                "Figure 11: by how many points more is used with filling, at least",
                gains().fold(100.0, f64::min),
                Tolerance::AtLeast(0.0),
            ),
            Verdict::new(
                "Figure 11: by how many points more is used with filling, at most",
                gains().fold(-100.0, f64::max),
                Tolerance::AtLeast(f64::MIN_POSITIVE),
            ),
        ]
    }

    /// Over the interval, as an SVG file.
    pub fn picture(&self) -> String {
        let curve = |name: &str, of: fn(&FillingRow) -> f64| Curve {
            name: name.into(),
            points: (self.rows.iter()).map(|row| (row.interval_s as f64, of(row))).collect(),
        };
        let plot = Plot {
            title: "Idle or wasted beside two sweeps: what is not used".into(),
            across: "announce interval in seconds".into(),
            up: "percent of all".into(),
            curves: vec![
                curve("filling", |row| 100.0 - row.filling.median),
                curve("strict", |row| 100.0 - row.strict.median),
            ],
            ..Plot::default()
        };
        let description = format!(
            "Medians of {} meshes beside sweeps of 600 and of 60 seconds: more is used if each \
             may have what the other leaves.",
            self.sample.meshes
        );
        curves(
            "Klein and Pérez 2011, figure 11: filling and strict equi-partition",
            &description,
            &[plot],
        )
    }
}
