// SPDX-License-Identifier: GPL-2.0
//! Tables and pictures of the comparison.

use std::collections::BTreeSet;

use pbs_report::{curves, Curve, Plot};
use pbs_text::{grouped, Format, Table};

use super::bars::Bar;
use super::figures::Figures;
use super::{Comparison, Row, Setting};
use crate::Study;

impl Study for Comparison {
    fn text(&self, format: Format) -> String {
        if let Some(bars) = &self.bars {
            let cells = table_of_cells(&self.rows).print(format);
            return format!(
                "{}\nKept of accepted, in percent:\n\n{cells}",
                bar_table(bars).print(format)
            );
        }
        let mut out = String::new();
        for group in self.rows.chunk_by(|a, b| a.setting == b.setting) {
            let of_all = grouped(group[0].figures.jobs);
            out += &format!("{}, {of_all} jobs:\n\n", named(&group[0].setting));
            out += &table(group).print(format);
            out.push('\n');
        }
        out
    }

    fn pictures(&self) -> Vec<(&'static str, String)> {
        let plots = plots(&self.rows);
        let told = "Shares of the accepted jobs that keep their deadlines, for each scheduler.";
        vec![("compare.svg", curves("Plans beside other schedulers", told, &plots))]
    }
}

/// A setting in words.
fn named(setting: &Setting) -> String {
    let rogues = match setting.rogues {
        0 => String::new(),
        1 => ", a rogue".into(),
        count => format!(", {count} rogues"),
    };
    format!(
        "Load {} %, errors up to {} %, {}{rogues}",
        setting.load_percent,
        setting.error_percent,
        setting.shape.name()
    )
}

fn percent(value: f64) -> String {
    // Nearly all is not all.
    let shown = if value < 100.0 { value.min(99.9) } else { value };
    format!("{shown:.1} %")
}

fn table(rows: &[Row]) -> Table {
    let titles = [
        "Scheduler",
        "Accepted",
        "Kept",
        "With rogues",
        "Of all",
        "Response (ms)",
        "Latest (ms)",
        "Longest wait (ms)",
        "Plans",
    ];
    let mut table = Table::new(&titles, 1);
    for Row { scheduler, figures, .. } in rows {
        table.push(vec![
            scheduler.name().into(),
            percent(figures.accepted_percent),
            percent(figures.kept_of_accepted_percent),
            percent(figures.kept_with_rogues_percent),
            percent(figures.kept_of_all_percent),
            format!("{:.1}", figures.mean_response_ms),
            format!("{:.1}", figures.greatest_tardiness_ms),
            figures.longest_run_ms.map_or_else(|| "-".into(), |ms| format!("{ms:.1}")),
            grouped(figures.plans),
        ]);
    }
    table
}

fn bar_table(bars: &[Bar]) -> Table {
    let titles = [
        "Bar",
        "Reached",
        "Worst cell",
        "There",
        "Required",
        "Margin",
        "Mean margin",
        "Missed",
        "Of",
    ];
    let mut table = Table::new(&titles, 3);
    for bar in bars {
        table.push(vec![
            bar.name.into(),
            if bar.is_reached { "yes" } else { "no" }.into(),
            named(&bar.worst),
            format!("{:.2}", bar.worst_value),
            format!("{:.2}", bar.worst_required),
            format!("{:+.2}", bar.worst_margin),
            format!("{:+.2}", bar.mean_margin),
            bar.missed.to_string(),
            bar.cells.to_string(),
        ]);
    }
    table
}

/// A row for each setting and a column for each scheduler; behind them what plans keep of all
/// jobs and how late they are.
fn table_of_cells(rows: &[Row]) -> Table {
    let schedulers: BTreeSet<_> = rows.iter().map(|row| row.scheduler).collect();
    let mut titles = vec!["Shape", "Rogues", "Load", "Error"];
    titles.extend(schedulers.iter().map(|scheduler| scheduler.name()));
    titles.extend(["of all", "latest (ms)"]);
    let mut table = Table::new(&titles, 1);
    for group in rows.chunk_by(|a, b| a.setting == b.setting) {
        let setting = &group[0].setting;
        let mut cells = vec![
            setting.shape.name().into(),
            setting.rogues.to_string(),
            setting.load_percent.to_string(),
            setting.error_percent.to_string(),
        ];
        cells.extend(group.iter().map(|row| {
            let figures = &row.figures;
            let is_of_all = row.scheduler.takes_what_the_planner_declines();
            let share = if is_of_all { Figures::kept_of_all } else { Figures::kept_of_accepted };
            format!("{:.1}", share(figures))
        }));
        let plan = &group[0].figures;
        cells.push(format!("{:.1}", plan.kept_of_all_percent));
        cells.push(format!("{:.1}", plan.greatest_tardiness_ms));
        table.push(cells);
    }
    table
}

/// A plot for each shape and number of rogues: over loads, or over errors if there is one load.
fn plots(rows: &[Row]) -> Vec<Plot> {
    let loads: BTreeSet<u64> = rows.iter().map(|row| row.setting.load_percent).collect();
    let is_over_loads = loads.len() > 1;
    let fixed = |setting: &Setting| {
        if is_over_loads {
            setting.error_percent
        } else {
            setting.load_percent
        }
    };
    let across = |setting: &Setting| {
        if is_over_loads {
            setting.load_percent
        } else {
            setting.error_percent
        }
    };
    let keys: BTreeSet<_> = rows
        .iter()
        .map(|row| (row.setting.shape, row.setting.rogues, fixed(&row.setting)))
        .collect();
    let schedulers: BTreeSet<_> = rows.iter().map(|row| row.scheduler).collect();
    let plot = |&(shape, rogues, value): &(_, usize, u64)| {
        let is_here = |row: &&Row| {
            (row.setting.shape, row.setting.rogues, fixed(&row.setting)) == (shape, rogues, value)
        };
        let curve = |&scheduler: &_| {
            let here = rows.iter().filter(is_here).filter(|row| row.scheduler == scheduler);
            let point =
                |row: &Row| (across(&row.setting) as f64, row.figures.kept_of_accepted_percent);
            Curve { name: scheduler.name().into(), points: here.map(point).collect() }
        };
        let what = if is_over_loads { "errors up to" } else { "load" };
        Plot {
            title: format!("{}, {what} {value} %, rogues: {rogues}", shape.name()),
            across: if is_over_loads { "load (%)" } else { "greatest error (%)" }.into(),
            up: "kept of accepted (%)".into(),
            up_to: 100.0,
            curves: schedulers.iter().map(curve).collect(),
            ..Plot::default()
        }
    };
    keys.iter().map(plot).collect()
}
