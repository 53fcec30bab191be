// SPDX-License-Identifier: GPL-2.0
//! Output of the recomputed claims about co-scheduling.

use std::time::Duration;

use pbs_study::cosched::{
    claims, costs, gaps, overheads, ComparedClaim, Fitted, Gap, Overhead, Verdict,
};
use pbs_study::Study;
use pbs_text::{Format, Table};
use serde::Serialize;

/// Time for which each overhead is measured.
const EACH: Duration = Duration::from_millis(200);

/// A part of the study.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Part {
    /// The claims of the thesis, recomputed
    Claims,
    /// Distance of the schedulers from the optimum
    Gaps,
    /// Time of a decision on this machine
    Overheads,
    /// Time of a decision as a formula, C(n)
    Costs,
}

/// The parts that were asked for.
#[derive(Serialize)]
pub(crate) struct Parts {
    claims: Option<Vec<ComparedClaim>>,
    gaps: Option<Vec<Gap>>,
    overheads: Option<Vec<Overhead>>,
    costs: Option<Vec<Fitted>>,
}

impl Parts {
    /// Computes the named parts; by default those that are equal on every machine.
    pub(crate) fn new(only: &[Part], instances: usize, seed: u64) -> Self {
        let is_wanted = |part: Part| match only {
            [] => matches!(part, Part::Claims | Part::Gaps),
            only => only.contains(&part),
        };
        Self {
            claims: is_wanted(Part::Claims).then(claims),
            gaps: is_wanted(Part::Gaps).then(|| gaps(instances, seed)),
            overheads: is_wanted(Part::Overheads).then(|| overheads(EACH)),
            costs: is_wanted(Part::Costs).then(costs),
        }
    }
}

impl Study for Parts {
    fn text(&self, format: Format) -> String {
        let claims = self.claims.as_deref().map(|claims| match format {
            Format::Text => claim_text(claims),
            Format::Rst => claim_table(claims).print(format),
        });
        let tables = [
            self.gaps.as_deref().map(gap_table),
            self.overheads.as_deref().map(overhead_table),
            self.costs.as_deref().map(cost_table),
        ];
        let tables = tables.iter().flatten().map(|table| table.print(format));
        let texts = claims.into_iter().chain(tables);
        let mut text = texts.collect::<Vec<_>>().join("\n");
        if let Some(claims) = &self.claims {
            let many = |verdict| claims.iter().filter(|row| row.verdict == verdict).count();
            text += &format!(
                "\n{} claims hold, {} do not; {} figures are our own, since the thesis has none.\n",
                many(Verdict::Holds),
                many(Verdict::Off),
                many(Verdict::Ours)
            );
        }
        text
    }
}

fn verdict(row: &ComparedClaim) -> &'static str {
    match row.verdict {
        Verdict::Holds => "holds",
        Verdict::Off => "is off",
        Verdict::Ours => "ours",
    }
}

/// Columns of text.
const WIDTH: usize = 98;

/// A few lines for each claim, as most are too long for columns.
fn claim_text(rows: &[ComparedClaim]) -> String {
    let mut text = String::new();
    for row in rows {
        let published = match row.published.as_str() {
            "" => String::new(),
            published => format!(", published as {published}"),
        };
        let (section, claim, here) = (row.section, &row.claim, &row.recomputed);
        let words = format!("§{section}, {claim}: {here}{published}");
        text += &wrapped(verdict(row), &words);
        if !row.remark.is_empty() {
            text += &wrapped("", &format!("({})", row.remark));
        }
    }
    text
}

/// Words in lines, behind a first one that stands before them all.
fn wrapped(first: &str, words: &str) -> String {
    let mut line = format!("{first:7}");
    let mut text = String::new();
    let mut has_words = false;
    for word in words.split(' ') {
        if has_words && line.chars().count() + 1 + word.chars().count() > WIDTH {
            text += &format!("{line}\n");
            line = format!("{:9}", "");
        }
        line = format!("{line} {word}");
        has_words = true;
    }
    text + &line + "\n"
}

fn claim_table(rows: &[ComparedClaim]) -> Table {
    let titles = ["§", "CLAIM", "PUBLISHED", "HERE", "VERDICT", "REMARK"];
    let mut table = Table::new(&titles, titles.len());
    for row in rows {
        table.push(vec![
            row.section.into(),
            row.claim.clone(),
            row.published.clone(),
            row.recomputed.clone(),
            verdict(row).into(),
            row.remark.clone(),
        ]);
    }
    table
}

fn gap_table(gaps: &[Gap]) -> Table {
    let titles = ["ABOVE THE OPTIMUM, %", "OPTIMAL", "OF", "MEDIAN", "MEAN", "95 %", "WORST"];
    let mut table = Table::new(&titles, 1);
    for gap in gaps {
        table.push(vec![
            gap.scheduler.clone(),
            gap.optimal.to_string(),
            gap.instances.to_string(),
            format!("{:.2}", gap.median_percent),
            format!("{:.2}", gap.mean_percent),
            format!("{:.2}", gap.percentile_95_percent),
            format!("{:.1}", gap.worst_percent),
        ]);
    }
    table
}

fn overhead_table(overheads: &[Overhead]) -> Table {
    let titles = ["TAKES, µs", "REMARK", "TASKS", "MEDIAN", "95 %", "THESIS", "TARGET"];
    let mut table = Table::new(&titles, 2);
    let number = |of: Option<f64>| of.map_or_else(String::new, |us| format!("{us:.0}"));
    for of in overheads {
        table.push(vec![
            of.what.clone(),
            of.remark.clone(),
            of.tasks.to_string(),
            format!("{:.1}", of.median_us),
            format!("{:.1}", of.percentile_95_us),
            number(of.published_us),
            number(of.target_us),
        ]);
    }
    table
}

fn cost_table(costs: &[Fitted]) -> Table {
    let titles = ["C(n) = a·n² + b·n + c, ns", "a", "b", "c", "THESIS a", "b", "c"];
    let mut table = Table::new(&titles, 1);
    for of in costs {
        let numbers = of.coefficients_ns.iter().chain(&of.published_ns);
        let mut row = vec![of.scheduler.to_string()];
        row.extend(numbers.map(|number| format!("{number:.1}")));
        table.push(row);
    }
    table
}
