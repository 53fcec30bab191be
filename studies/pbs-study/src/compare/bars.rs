// SPDX-License-Identifier: GPL-2.0
//! Bars that plans have to reach, over all settings of a sweep.

use std::collections::BTreeMap;

use pbs_gen::deadline_jobs::ErrorShape;
use serde::Serialize;

use super::figures::Figures;
use super::{Row, Scheduler, Setting};

/// Loads of a sweep.
const LOADS: [u64; 4] = [50, 70, 100, 130];
/// Errors of a sweep.
const ERRORS: [u64; 4] = [5, 10, 20, 40];
/// Least load of the settings in which plans are held against other schedulers.
const LEAST_COMPARED_LOAD: u64 = 70;
/// Rows that the bars need.
pub const SWEPT_SCHEDULERS: [Scheduler; 8] = [
    Scheduler::Plan,
    Scheduler::EdfAdmitted,
    Scheduler::EdfWindows,
    Scheduler::EdfAll,
    Scheduler::EevdfAdmitted,
    Scheduler::EevdfAll,
    Scheduler::DeadlinePadded,
    Scheduler::OptimumAll,
];

/// All settings of a sweep.
pub fn swept_settings() -> Vec<Setting> {
    let mut settings = Vec::new();
    for shape in ErrorShape::ALL {
        for load_percent in LOADS {
            for error_percent in ERRORS {
                for rogues in [0, 1] {
                    settings.push(Setting { shape, load_percent, error_percent, rogues });
                }
            }
        }
    }
    settings
}

/// A bar, and the cells in which it has to be reached.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Bar {
    pub(crate) name: &'static str,
    pub(crate) is_reached: bool,
    /// Cells, and those that miss the bar.
    pub(crate) cells: usize,
    pub(crate) missed: usize,
    /// Least margin of a cell; less than 0: the bar is missed.
    pub(crate) worst_margin: f64,
    pub(crate) mean_margin: f64,
    /// Value and requirement of the cell with the least margin.
    pub(crate) worst_value: f64,
    pub(crate) worst_required: f64,
    pub(crate) worst: Setting,
}

type Cells<'a> = BTreeMap<Setting, BTreeMap<Scheduler, &'a Figures>>;

/// Required value of a setting, and its actual value.
struct Cell {
    setting: Setting,
    value: f64,
    required: f64,
    /// Whether less is better.
    is_limit: bool,
}

impl Cell {
    fn margin(&self) -> f64 {
        if self.is_limit {
            self.required - self.value
        } else {
            self.value - self.required
        }
    }
}

fn bar(name: &'static str, cells: &[Cell]) -> Option<Bar> {
    let worst = cells.iter().min_by(|a, b| a.margin().total_cmp(&b.margin()))?;
    // Percents are quotients of whole numbers: what differs by less is equal.
    let missed = cells.iter().filter(|cell| cell.margin() < -1e-9).count();
    let sum: f64 = cells.iter().map(Cell::margin).sum();
    Some(Bar {
        name,
        is_reached: missed == 0,
        cells: cells.len(),
        missed,
        worst_margin: worst.margin(),
        mean_margin: sum / cells.len() as f64,
        worst_value: worst.value,
        worst_required: worst.required,
        worst: worst.setting,
    })
}

/// The bars for which there are settings; `uses_unallocated`: those of plans that may use
/// unallocated time.
pub(crate) fn bars(rows: &[Row], uses_unallocated: bool) -> Vec<Bar> {
    let mut cells: Cells<'_> = BTreeMap::new();
    for row in rows {
        cells.entry(row.setting).or_default().insert(row.scheduler, &row.figures);
    }
    let kept = Figures::kept_of_accepted;
    let all = Figures::kept_of_all;
    let against =
        |name, scheduler, less, figure| bar(name, &against(&cells, scheduler, less, figure));
    let least_kept = if uses_unallocated { [99.9, 99.6] } else { [99.8, 98.9] };
    let fixed = |name, figure, is_limit, required: &[(u64, usize, f64)]| {
        bar(name, &fixed(&cells, figure, is_limit, required))
    };
    let at_100 = |[calm, rogue]: [f64; 2]| [(100, 0, calm), (100, 1, rogue)];
    [
        fixed("kept of accepted", kept, false, &at_100(least_kept)),
        against("kept, EDF of the same jobs", Scheduler::EdfAdmitted, 1.0, kept),
        against("kept, EDF in execution time", Scheduler::EdfWindows, 1.0, kept),
        against("kept, EEVDF of the same jobs", Scheduler::EevdfAdmitted, 0.0, kept),
        against("of all, padded DEADLINE", Scheduler::DeadlinePadded, 0.0, all),
        against("of all, EDF of all", Scheduler::EdfAll, 0.0, all),
        against("of all, EEVDF of all", Scheduler::EevdfAll, 0.0, all),
        fixed("of all", all, false, &OF_ALL),
        fixed("of all, a rogue", all, false, &OF_ALL_WITH_A_ROGUE),
        fixed("greatest lateness (ms)", Figures::greatest_ms, true, &at_100([6.0, 30.0])),
        bar("response (ms)", &response(&cells)),
        fixed("longest wait (ms)", Figures::longest_ms, true, &at_100([20.0, 20.0])),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Least share of all jobs, by load and number of rogues.
const OF_ALL: [(u64, usize, f64); 4] =
    [(50, 0, 96.0), (70, 0, 91.0), (100, 0, 81.0), (130, 0, 69.0)];
const OF_ALL_WITH_A_ROGUE: [(u64, usize, f64); 4] =
    [(50, 1, 95.0), (70, 1, 90.0), (100, 1, 79.0), (130, 1, 67.0)];

/// Settings with evenly spread errors up to 20 %, of which a number is required.
fn fixed(
    cells: &Cells<'_>,
    figure: fn(&Figures) -> f64,
    is_limit: bool,
    required: &[(u64, usize, f64)],
) -> Vec<Cell> {
    let found = required.iter().filter_map(|&(load_percent, rogues, required)| {
        let setting =
            Setting { shape: ErrorShape::Uniform, load_percent, error_percent: 20, rogues };
        let plan = cells.get(&setting)?.get(&Scheduler::Plan)?;
        Some(Cell { setting, value: figure(plan), required, is_limit })
    });
    found.collect()
}

/// All settings in which plans may have no less than another scheduler, but for `less`.
fn against(
    cells: &Cells<'_>,
    scheduler: Scheduler,
    less: f64,
    figure: fn(&Figures) -> f64,
) -> Vec<Cell> {
    let compared = cells.iter().filter(|(setting, _)| setting.load_percent >= LEAST_COMPARED_LOAD);
    let found = compared.filter_map(|(&setting, of)| {
        let (plan, other) = (of.get(&Scheduler::Plan)?, of.get(&scheduler)?);
        let required = figure(other) - less;
        Some(Cell { setting, value: figure(plan), required, is_limit: false })
    });
    found.collect()
}

/// No more than a millisecond above that of EDF in execution time.
fn response(cells: &Cells<'_>) -> Vec<Cell> {
    let setting =
        Setting { shape: ErrorShape::Uniform, load_percent: 100, error_percent: 20, rogues: 0 };
    let cell = cells.get(&setting).and_then(|of| {
        let (plan, edf) = (of.get(&Scheduler::Plan)?, of.get(&Scheduler::EdfWindows)?);
        let required = edf.mean_response_ms + 1.0;
        Some(Cell { setting, value: plan.mean_response_ms, required, is_limit: true })
    });
    cell.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::super::figures::Sums;
    use super::*;

    fn row(scheduler: Scheduler, load_percent: u64, kept: f64) -> Row {
        let setting =
            Setting { shape: ErrorShape::Uniform, load_percent, error_percent: 20, rogues: 0 };
        let figures = Figures { kept_of_accepted_percent: kept, ..Sums::default().figures() };
        Row { scheduler, setting, figures }
    }

    fn named(rows: &[Row], name: &str) -> Option<Bar> {
        bars(rows, false).into_iter().find(|bar| bar.name == name)
    }

    #[test]
    fn a_sweep_has_all_settings_once() {
        let mut settings = swept_settings();
        assert_eq!(settings.len(), 4 * 4 * 4 * 2);
        settings.sort();
        settings.dedup();
        assert_eq!(settings.len(), 128);
    }

    #[test]
    fn the_worst_cell_decides() {
        let rows = [
            row(Scheduler::Plan, 70, 99.0),
            row(Scheduler::EdfAdmitted, 70, 97.0),
            row(Scheduler::Plan, 100, 94.0),
            row(Scheduler::EdfAdmitted, 100, 98.0),
        ];
        let bar = named(&rows, "kept, EDF of the same jobs").unwrap();
        assert!(!bar.is_reached);
        assert_eq!((bar.cells, bar.missed, bar.worst.load_percent), (2, 1, 100));
        assert_eq!((bar.worst_value, bar.worst_required, bar.worst_margin), (94.0, 97.0, -3.0));
        assert_eq!(bar.mean_margin, 0.0);
    }

    #[test]
    fn one_point_less_than_edf_is_allowed_and_none_than_eevdf() {
        let rows = [
            row(Scheduler::Plan, 100, 97.0),
            row(Scheduler::EdfAdmitted, 100, 98.0),
            row(Scheduler::EevdfAdmitted, 100, 97.1),
        ];
        assert!(named(&rows, "kept, EDF of the same jobs").unwrap().is_reached);
        assert!(!named(&rows, "kept, EEVDF of the same jobs").unwrap().is_reached);
    }

    #[test]
    fn a_bar_without_settings_is_left_out() {
        let rows = [row(Scheduler::Plan, 50, 10.0), row(Scheduler::EdfAdmitted, 50, 90.0)];
        assert_eq!(named(&rows, "kept, EDF of the same jobs"), None);
        assert_eq!(named(&rows, "kept of accepted"), None);
        assert!(named(&rows, "of all").is_some_and(|bar| bar.cells == 1));
    }
}
