// SPDX-License-Identifier: GPL-2.0
//! Figure 10: what it helps to say beforehand that one needs other nodes, over how long
//! before.

use pbs_report::{curves, Band, Curve, Plot};
use pbs_rms_apps::study::{Quantiles, Sample, Tolerance, Verdict};
use pbs_rms_apps::{Allocation, KillOrder};
use serde::Serialize;

use super::{for_all, meshes, updates_before, Evaluation, INTERVALS_S};

/// Waste falls but for small bumps, of no more than so many percent of all node time: where it is
/// 250 s, as between the lengths at which holes fit tasks.
const BUMP_PERCENT: f64 = 0.25;

/// An announce interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct IntervalRow {
    /// Time from the announcement to the update, in seconds.
    pub interval_s: u64,
    /// End of the mesh, relative to its end without announcements.
    pub end: Quantiles,
    /// Lost work of killed tasks, in percent of all node time.
    pub wasted_percent: Quantiles,
    /// Node time that was allocated and not wasted, in percent of all.
    pub used_percent: Quantiles,
}

/// All intervals, with one of the orders in which a sweep may kill its tasks.
#[derive(Clone, Debug, Serialize)]
pub struct Figure10 {
    /// Sample of meshes.
    pub sample: Sample,
    /// Order in which tasks are killed, which the report leaves open.
    pub kill_order: KillOrder,
    /// Rows by ascending interval.
    pub rows: Vec<IntervalRow>,
    /// Number of meshes that did not reach their end.
    pub unfinished: usize,
}

#[derive(Clone, Copy)]
struct Found {
    end_s: f64,
    wasted: f64,
    used: f64,
}

/// Runs each mesh with each interval.
pub fn figure10(sample: Sample, kill_order: KillOrder) -> Figure10 {
    let found = |steps: &Allocation, interval_s| {
        let evaluation =
            Evaluation { updates: updates_before(interval_s), kill_order, ..Evaluation::default() };
        let outcome = evaluation.run(steps)?;
        Some(Found {
            end_s: outcome.end_s,
            wasted: outcome.wasted_percent(),
            used: outcome.used_percent(),
        })
    };
    let all = for_all(&meshes(sample), |steps| {
        let found = INTERVALS_S.map(|interval_s| found(steps, interval_s));
        found.into_iter().collect::<Option<Vec<Found>>>()
    });
    let ended: Vec<&Vec<Found>> = all.iter().flatten().collect();
    let rows = INTERVALS_S.iter().enumerate().map(|(place, &interval_s)| {
        let of = |of: fn(Found, Found) -> f64| {
            Quantiles::of(ended.iter().map(|mesh| of(mesh[place], mesh[0])))
        };
        IntervalRow {
            interval_s,
            end: of(|it, without| it.end_s / without.end_s),
            wasted_percent: of(|it, _| it.wasted),
            used_percent: of(|it, _| it.used),
        }
    });
    Figure10 { sample, kill_order, rows: rows.collect(), unfinished: all.len() - ended.len() }
}

impl Figure10 {
    fn used(&self, interval_s: u64) -> f64 {
        let row = self.rows.iter().find(|row| row.interval_s == interval_s);
        row.map_or(0.0, |row| row.used_percent.median)
    }

    /// The mesh ends later, nothing is wasted from the length of a task on, and most is used
    /// where a task fits once or twice (5.3).
    pub fn verdicts(&self) -> Vec<Verdict> {
        let order = match self.kill_order {
            KillOrder::Youngest => "the youngest killed first",
            KillOrder::Oldest => "the oldest killed first",
        };
        let rows = || self.rows.iter();
        let long = rows().filter(|row| row.interval_s >= 600);
        let wasted = |seconds: u64| {
            let row = rows().find(|row| row.interval_s == seconds);
            row.map_or(0.0, |row| row.wasted_percent.median)
        };
        let falls = wasted(0) > wasted(300) && wasted(300) > wasted(550);
        let end = rows().find(|row| row.interval_s == 600).map_or(0.0, |row| row.end.median);
        let ends = |pairs: &[IntervalRow]| match pairs {
            [before, after] => before.end.median - after.end.median,
            _ => 0.0,
        };
        // Without announcing it is another thing; see the documentation.
        let announced = self.rows.get(1..).unwrap_or_default();
        let falls_by = announced.windows(2).map(ends).fold(0.0, f64::max);
        let bump = self.rows.windows(2).map(|pair| match pair {
            [before, after] => after.wasted_percent.median - before.wasted_percent.median,
            _ => 0.0,
        });
        let peak =
            |at| (self.used(at) - self.used(at - 50)).min(self.used(at) - self.used(at + 50));
        let least = rows().map(|row| row.used_percent.median).fold(100.0, f64::min);
        let least_s = rows().find(|row| row.used_percent.median == least);
        let verdict = |claim: &str, found, tolerance| {
            Verdict::new(format!("Figure 10, {order}: {claim}"), found, tolerance)
        };
        vec![
            verdict("meshes that did not end", self.unfinished as f64, Tolerance::AtMost(0.0)),
            verdict(
                "waste from 600 s on, in percent, of the worst mesh",
                long.map(|row| row.wasted_percent.most).fold(0.0, f64::max),
                Tolerance::AtMost(0.0),
            ),
            verdict(
                "waste falls from 0 to 300 to 550 s (1: it does)",
                f64::from(u8::from(falls)),
                Tolerance::AtLeast(1.0),
            ),
            verdict(
                "by how many points waste rises from one interval to the next, at most",
                bump.fold(0.0, f64::max),
                Tolerance::AtMost(BUMP_PERCENT),
            ),
            verdict("the end with 600 s over that without, median", end, Tolerance::AtLeast(1.0)),
            verdict(
                "by how much earlier the end is with 50 s more from 50 s on, over that without",
                falls_by,
                Tolerance::AtMost(0.0),
            ),
            verdict(
                "the end with the shortest announcement over that without, median",
                announced.first().map_or(0.0, |row| row.end.median),
                Tolerance::AtLeast(1.0),
            ),
            verdict(
                "by how many points more is used at 300 s than beside it",
                peak(300),
                Tolerance::AtLeast(f64::MIN_POSITIVE),
            ),
            verdict(
                "by how many points more is used at 600 s than beside it",
                peak(600),
                Tolerance::AtLeast(f64::MIN_POSITIVE),
            ),
            verdict(
                "by how many points less is used at 550 s than beside it",
                (self.used(500) - self.used(550)).min(self.used(600) - self.used(550)),
                Tolerance::AtLeast(f64::MIN_POSITIVE),
            ),
            verdict(
                "the interval with which least is used, in seconds",
                least_s.map_or(0.0, |row| row.interval_s as f64),
                Tolerance::Between(550.0, 550.0),
            ),
        ]
    }

    /// Over the interval, as an SVG file.
    pub fn picture(&self) -> String {
        let spread = |of: Quantiles| (of.median, (of.p5, of.p95));
        let plot = |title: &str, up: &str, of: fn(&IntervalRow) -> Quantiles, is_rest: bool| {
            let of = |row: &IntervalRow| {
                let (median, (low, high)) = spread(of(row));
                if is_rest {
                    (100.0 - median, (100.0 - high, 100.0 - low))
                } else {
                    (median, (low, high))
                }
            };
            let all = || self.rows.iter().map(|row| (row.interval_s as f64, of(row)));
            Plot {
                title: title.into(),
                across: "announce interval in seconds".into(),
                up: up.into(),
                curves: vec![Curve {
                    name: "median".into(),
                    points: all().map(|(at, of)| (at, of.0)).collect(),
                }],
                bands: vec![Band {
                    name: "nine tenths of the meshes".into(),
                    points: all().map(|(at, of)| (at, of.1)).collect(),
                }],
                ..Plot::default()
            }
        };
        let (all, end) = ("percent of all", "End of the mesh, over that without announcing");
        let plots = [
            plot(end, "times", |row| row.end, false),
            plot("Wasted by the sweep", all, |row| row.wasted_percent, false),
            plot("Idle or wasted: what is not used", all, |row| row.used_percent, true),
        ];
        let description = format!(
            "Of {} meshes: the longer before they announce what they need, the later they end \
             and the less is wasted; nothing is from 600 seconds on, as long as a task takes.",
            self.sample.meshes
        );
        curves("Klein and Pérez 2011, figure 10: announced updates", &description, &plots)
    }
}
