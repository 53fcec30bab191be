// SPDX-License-Identifier: GPL-2.0
//! All figures of the report, as tables and pictures, with what became of its claims.

use pbs_rms_apps::study::{
    equivalents, figure1, figure2, figure3, figure4, Equivalents, Figure1, Figure2, Figure3,
    Figure4, Sample, Tolerance, Verdict,
};
use pbs_rms_apps::KillOrder;
use pbs_text::{Format, Table};
use serde::Serialize;

use super::{figure10, figure11, figure9, Figure10, Figure11, Figure9};
use crate::Study;

/// The figures that can be made.
pub const FIGURES: [u8; 7] = [1, 2, 3, 4, 9, 10, 11];

/// Figures to make, and their parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Sample of meshes.
    pub sample: Sample,
    /// Selection from [`FIGURES`]; none: all.
    pub figures: Vec<u8>,
    /// Memory of a node, for figure 4.
    pub node_mib: f64,
}

/// The requested figures.
#[derive(Clone, Debug, Serialize)]
pub struct Evolving {
    /// Sample of meshes.
    pub sample: Sample,
    /// Evolution of working sets, and the equivalent static allocations (2.3, 5.2).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub figure1: Option<(Figure1, Equivalents)>,
    /// Duration of a step, by the model alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub figure2: Option<Figure2>,
    /// Ends later with a static allocation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub figure3: Option<Figure3>,
    /// Static choices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub figure4: Option<Figure4>,
    /// Spontaneous updates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub figure9: Option<Figure9>,
    /// Announced updates, by who is killed first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub figure10: Option<[Figure10; 2]>,
    /// Two sweeps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub figure11: Option<Figure11>,
    /// Claims of the report, and the findings about them.
    pub verdicts: Vec<Verdict>,
}

/// Makes the figures. `done` is told of each.
pub fn evolving(options: &Options, done: impl Fn(u8)) -> Evolving {
    let sample = options.sample;
    let is_wanted = |figure| options.figures.is_empty() || options.figures.contains(&figure);
    let told = |figure| done(figure);
    let wanted = |figure| is_wanted(figure).then(|| told(figure));
    let mut all = Evolving {
        sample,
        figure1: wanted(1).map(|()| (figure1(sample), equivalents(sample))),
        figure2: wanted(2).map(|()| figure2()),
        figure3: wanted(3).map(|()| figure3(sample)),
        figure4: wanted(4).map(|()| figure4(sample, options.node_mib)),
        figure9: wanted(9).map(|()| figure9(sample)),
        figure10: wanted(10).map(|()| {
            [KillOrder::Youngest, KillOrder::Oldest].map(|order| figure10(sample, order))
        }),
        figure11: wanted(11).map(|()| figure11(sample)),
        verdicts: Vec::new(),
    };
    let verdicts = [
        all.figure1.as_ref().map(|both| [both.0.verdicts(), both.1.verdicts()].concat()),
        all.figure2.as_ref().map(Figure2::verdicts),
        all.figure3.as_ref().map(Figure3::verdicts),
        all.figure4.as_ref().map(Figure4::verdicts),
        all.figure9.as_ref().map(Figure9::verdicts),
        all.figure10.as_ref().map(|both| [both[0].verdicts(), both[1].verdicts()].concat()),
        all.figure11.as_ref().map(Figure11::verdicts),
    ];
    all.verdicts = verdicts.into_iter().flatten().flatten().collect();
    all
}

fn cell(value: f64) -> String {
    format!("{value:.3}")
}

fn tolerance(tolerance: Tolerance) -> String {
    match tolerance {
        Tolerance::AtMost(most) => format!("at most {most:.3}"),
        Tolerance::AtLeast(least) if least == f64::MIN_POSITIVE => "more than 0".into(),
        Tolerance::AtLeast(least) => format!("at least {least:.3}"),
        Tolerance::Between(least, most) if least == most => format!("{least:.3}"),
        Tolerance::Between(least, most) => format!("{least:.3} to {most:.3}"),
    }
}

impl Study for Evolving {
    fn pictures(&self) -> Vec<(&'static str, String)> {
        let all = [
            ("figure1.svg", self.figure1.as_ref().map(|both| both.0.picture())),
            ("figure3.svg", self.figure3.as_ref().map(Figure3::picture)),
            ("figure4.svg", self.figure4.as_ref().map(Figure4::picture)),
            ("figure9.svg", self.figure9.as_ref().map(Figure9::picture)),
            ("figure10.svg", self.figure10.as_ref().map(|both| both[0].picture())),
            ("figure11.svg", self.figure11.as_ref().map(Figure11::picture)),
        ];
        let made = all.into_iter().filter_map(|(name, picture)| Some((name, picture?)));
        made.collect()
    }

    fn text(&self, format: Format) -> String {
        let mut parts = Vec::new();
        let mut part = |title: &str, table: &Table| {
            parts.push(format!("{title}\n\n{}", table.print(format)));
        };
        if let Some(figure) = &self.figure2 {
            let titles = ["nodes", "S_max/1000", "S_max/100", "S_max/10", "S_max"];
            let mut table = Table::new(&titles, 0);
            for row in &figure.rows {
                let seconds = row.seconds.map(cell).to_vec();
                table.push([vec![row.nodes.to_string()], seconds].concat());
            }
            part(
                "Figure 2: seconds of a step by the model; what it was fitted to is in another paper",
                &table,
            );
        }
        if let Some(figure) = &self.figure3 {
            let mut table =
                Table::new(&["target", "later, %", "95 % of meshes", "at most 2.5 %"], 0);
            for row in &figure.rows {
                let of = &row.increase_percent;
                let cells = [row.target, of.median, of.p95, row.within];
                table.push(cells.map(cell).to_vec());
            }
            part("Figure 3: ends later with the equivalent static allocation", &table);
        }
        if let Some(figure) = &self.figure4 {
            let mut table =
                Table::new(&["S_max times", "least nodes", "most nodes", "possible"], 0);
            for row in &figure.rows {
                let cells =
                    [row.factor, row.least_nodes as f64, row.most_nodes.median, row.possible];
                table.push(cells.map(cell).to_vec());
            }
            part("Figure 4: nodes for 1.1 A(75 %)", &table);
        }
        if let Some(figure) = &self.figure9 {
            let mut table = Table::new(&["factor", "static", "dynamic", "waste", "pays for"], 0);
            for row in &figure.rows {
                let medians = [row.fixed, row.dynamic, row.waste].map(|of| of.median);
                let cells = [row.factor, medians[0], medians[1], medians[2], row.pays];
                table.push(cells.map(cell).to_vec());
            }
            part("Figure 9: node time over A(75 %), spontaneous updates", &table);
        }
        for figure in self.figure10.iter().flatten() {
            let mut table = Table::new(&["announced, s", "end", "wasted, %", "used, %"], 0);
            for row in &figure.rows {
                let medians =
                    [row.end, row.wasted_percent, row.used_percent].map(|of| cell(of.median));
                table.push([vec![row.interval_s.to_string()], medians.to_vec()].concat());
            }
            let title = match figure.kill_order {
                KillOrder::Youngest => "Figure 10: announced updates, the youngest killed first",
                KillOrder::Oldest => "Figure 10: announced updates, the oldest killed first",
            };
            part(title, &table);
        }
        if let Some(figure) = &self.figure11 {
            let mut table = Table::new(&["announced, s", "filling, %", "strict, %"], 0);
            for row in &figure.rows {
                let medians = [row.filling, row.strict].map(|of| cell(of.median));
                table.push([vec![row.interval_s.to_string()], medians.to_vec()].concat());
            }
            part("Figure 11: used with two sweeps", &table);
        }
        let mut table = Table::new(&["claim", "holds", "found", "should be"], 2);
        for verdict in &self.verdicts {
            table.push(vec![
                verdict.claim.clone(),
                if verdict.holds { "yes" } else { "NO" }.into(),
                cell(verdict.found),
                tolerance(verdict.tolerance),
            ]);
        }
        let meshes = self.sample.meshes;
        part(&format!("What is claimed, and what {meshes} meshes show"), &table);
        parts.join("\n")
    }
}
