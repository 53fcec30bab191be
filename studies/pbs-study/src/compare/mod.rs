// SPDX-License-Identifier: GPL-2.0
//! Plans against other schedulers: the simulated twin of `scripts/compare-schedulers`.
//!
//! The jobs are those that the virtual machine runs ([`pbs_gen::deadline_jobs`]), and the
//! planner, its control loop and the policy are those of a node. The other schedulers are
//! [`crate::yardsticks`].

mod draw;
mod figures;
mod planned;
mod scheduler;

use std::collections::BTreeMap;

use pbs_gen::deadline_jobs::{jobs, ErrorShape, Workload};
use pbs_plan::Config;
use pbs_text::{grouped, Format, Table};
use serde::Serialize;

use crate::node::{for_each_plan, Error, Options};
use crate::Study;
use draw::{run, Admissions};
use figures::{Figures, Sums};
pub use scheduler::{with, Scheduler};

/// Jobs of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Setting {
    /// Distribution of the errors.
    pub shape: ErrorShape,
    /// Planned instructions of all jobs, in percent of the CPU.
    pub load_percent: u64,
    /// Greatest error of a declared length.
    pub error_percent: u64,
    /// Number of rogues.
    pub rogues: usize,
}

/// Parameters of the study.
#[derive(Clone, Debug)]
pub struct Parameters {
    /// Settings, each a table.
    pub settings: Vec<Setting>,
    /// Rows of each table.
    pub schedulers: Vec<Scheduler>,
    /// Length of a rogue, in declared lengths.
    pub rogue_factor: u64,
    /// Configuration of plans, before a scheduler pins its own values.
    pub config: Config,
    /// Jobs under plans use unallocated time, as if nothing else had to run then.
    pub uses_unallocated: bool,
}

#[derive(Clone, Debug, Serialize)]
struct Row {
    scheduler: Scheduler,
    #[serde(flatten)]
    setting: Setting,
    #[serde(flatten)]
    figures: Figures,
}

/// The comparison.
#[derive(Debug, Serialize)]
struct Comparison {
    schema: &'static str,
    draws: u64,
    seed: u64,
    rows: Vec<Row>,
}

/// Makes the study: as many draws of each setting as `options` has plans.
///
/// # Errors
///
/// A plan can't be made or simulated.
pub fn study(options: &Options<'_>, parameters: &Parameters) -> Result<impl Study, Error> {
    let draws = for_each_plan(options, |number| of_draw(options.seed + number, parameters))?;
    let mut sums: BTreeMap<(Setting, Scheduler), Sums> = BTreeMap::new();
    for (key, draw) in draws.into_iter().flatten() {
        sums.entry(key).or_default().add(&draw);
    }
    let rows = sums.into_iter().map(|((setting, scheduler), sums)| Row {
        scheduler,
        setting,
        figures: sums.figures(),
    });
    Ok(Comparison {
        schema: "pbs.study-compare/1",
        draws: options.plans,
        seed: options.seed,
        rows: rows.collect(),
    })
}

/// All settings and schedulers with the draw of that seed.
fn of_draw(seed: u64, parameters: &Parameters) -> Result<Vec<((Setting, Scheduler), Sums)>, Error> {
    let mut sums = Vec::new();
    let mut admissions = Admissions::default();
    for &setting in &parameters.settings {
        let workload = Workload {
            load_percent: setting.load_percent,
            error_percent: setting.error_percent,
            shape: setting.shape,
            rogues: setting.rogues,
            rogue_factor: parameters.rogue_factor,
            seed,
        };
        let jobs = jobs(&workload);
        for &scheduler in &parameters.schedulers {
            let run = run(scheduler, &workload, &jobs, parameters, &mut admissions);
            let run = run.map_err(|error| {
                Error(format!("{}, {setting:?}, seed {seed}: {error}", scheduler.name()))
            })?;
            sums.push(((setting, scheduler), Sums::of(&run)));
        }
    }
    Ok(sums)
}

impl Study for Comparison {
    fn text(&self, format: Format) -> String {
        let mut out = String::new();
        for group in self.rows.chunk_by(|a, b| a.setting == b.setting) {
            let setting = &group[0].setting;
            let rogues = match setting.rogues {
                0 => String::new(),
                1 => ", a rogue".into(),
                count => format!(", {count} rogues"),
            };
            out += &format!(
                "Load {} %, errors up to {} %, {}{rogues}, {} jobs:\n\n",
                setting.load_percent,
                setting.error_percent,
                setting.shape.name(),
                grouped(group[0].figures.jobs),
            );
            out += &table(group).print(format);
            out.push('\n');
        }
        out
    }
}

fn table(rows: &[Row]) -> Table {
    let titles = [
        "Scheduler",
        "Accepted",
        "Kept",
        "With rogues",
        "Of all",
        "Response (ms)",
        "Greatest lateness (ms)",
        "Longest wait (ms)",
        "Plans",
    ];
    let mut table = Table::new(&titles, 1);
    for Row { scheduler, figures, .. } in rows {
        let percent = |value: f64| format!("{value:.1} %");
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
