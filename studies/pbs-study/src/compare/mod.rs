// SPDX-License-Identifier: GPL-2.0
//! Plans against other schedulers: the simulated twin of `scripts/compare-schedulers`.
//!
//! The jobs are those that the virtual machine runs ([`pbs_gen::deadline_jobs`]), and the
//! planner, its control loop and the policy are those of a node. The other schedulers are
//! [`crate::yardsticks`].

mod bars;
mod draw;
mod figures;
mod planned;
mod scheduler;
mod text;

use std::collections::BTreeMap;

use pbs_gen::deadline_jobs::{jobs, ErrorShape, Workload};
use pbs_plan::Config;
use serde::Serialize;

use crate::node::{for_each_plan, Error, Options};
use crate::Study;
use bars::Bar;
pub use bars::{swept_settings, SWEPT_SCHEDULERS};
use draw::{run, Admissions};
use figures::{Figures, Sums};
pub use scheduler::Scheduler;

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
    /// Hold the rows against the bars.
    pub has_bars: bool,
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
    plans: u64,
    seed: u64,
    rows: Vec<Row>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bars: Option<Vec<Bar>>,
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
    let rows: Vec<Row> = rows.collect();
    let bars = parameters.has_bars.then(|| bars::bars(&rows, parameters.uses_unallocated));
    Ok(Comparison { plans: options.plans, seed: options.seed, rows, bars })
}

/// Sums of a draw, by setting and scheduler.
type SumsOfDraw = Vec<((Setting, Scheduler), Sums)>;

/// All settings and schedulers with the draw of that seed.
fn of_draw(seed: u64, parameters: &Parameters) -> Result<SumsOfDraw, Error> {
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
