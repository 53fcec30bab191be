// SPDX-License-Identifier: GPL-2.0
//! Who gets idle slots (Leppert 2021, 3.2.3 and 6.2.3).

use std::collections::BTreeMap;

use pbs_plan::{Config, IdlePolicy};
use pbs_report::{grouped, Table};
use serde::Serialize;

use crate::plans::{plan, Deviation};
use crate::{for_each_plan, kept_alone, percent, run, Error, Format, Options, Tally};

/// What became of all processes under a policy.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Cell {
    #[serde(flatten)]
    tally: Tally,
    /// Kept, and missed under the other policy.
    kept_here_alone: u64,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct Row {
    deviation: Deviation,
    idle_policy: &'static str,
    #[serde(flatten)]
    cell: Cell,
}

/// What came of it.
#[derive(Debug, Serialize)]
pub struct Study {
    plans: u64,
    seed: u64,
    rows: Vec<Row>,
}

/// Makes the study.
pub fn study(options: &Options<'_>) -> Result<Study, Error> {
    let of_plans = for_each_plan(options, |number| of_plan(options.seed, number))?;
    let mut cells: BTreeMap<(Deviation, usize), Cell> = BTreeMap::new();
    for (key, cell) in of_plans.into_iter().flatten() {
        let sum = cells.entry(key).or_default();
        sum.tally.add(&cell.tally);
        sum.kept_here_alone += cell.kept_here_alone;
    }
    let rows = cells.into_iter().map(|((deviation, policy), cell)| Row {
        deviation,
        idle_policy: IdlePolicy::ALL[policy].name(),
        cell,
    });
    Ok(Study {
        plans: options.plans,
        seed: options.seed,
        rows: rows.collect(),
    })
}

type Cells = Vec<((Deviation, usize), Cell)>;

fn of_plan(seed: u64, number: u64) -> Result<Cells, Error> {
    let mut cells = Vec::new();
    for deviation in Deviation::ALL {
        let plan = plan(seed, number, deviation)?;
        let simulations = IdlePolicy::ALL.map(|policy| {
            let config = Config {
                idle_policy: policy as u64,
                ..Config::DEFAULT
            };
            run(&plan, config, false)
        });
        let simulations: Vec<_> = simulations.into_iter().collect::<Result<_, _>>()?;
        for (policy, simulation) in simulations.iter().enumerate() {
            let other = &simulations[1 - policy];
            let cell = Cell {
                tally: Tally::of(simulation),
                kept_here_alone: kept_alone(simulation, other).count() as u64,
            };
            cells.push(((deviation, policy), cell));
        }
    }
    Ok(cells)
}

impl Study {
    /// As tables.
    pub fn text(&self, format: Format) -> String {
        let titles = [
            "Deviation",
            "Idle policy",
            "Kept",
            "Of",
            "Share",
            "Kept here alone",
            "Tardiness (ms)",
            "Preemptions",
        ];
        let mut table = Table::new(&titles, 2);
        for Row {
            deviation,
            idle_policy,
            cell,
        } in &self.rows
        {
            let Cell {
                tally,
                kept_here_alone,
            } = cell;
            table.push(vec![
                deviation.name().into(),
                (*idle_policy).into(),
                grouped(tally.kept),
                grouped(tally.processes),
                percent(tally.kept, tally.processes),
                grouped(*kept_here_alone),
                tally.tardiness(),
                grouped(tally.preemptions),
            ]);
        }
        table.print(format)
    }
}
