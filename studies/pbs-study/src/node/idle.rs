// SPDX-License-Identifier: GPL-2.0
//! Policies of idle slots, and ways to treat tasks that are preempted again (Leppert 2021, 3.2.3
//! and 6.2.3).

use std::collections::BTreeMap;

use pbs_plan::{Config, IdlePolicy, PreemptionWay};
use pbs_sim::Simulation;
use pbs_text::{grouped, ms, Table};
use pbs_uapi::{EventKind, Grant};
use serde::Serialize;

use crate::node::plans::{plan, Deviation};
use crate::node::{kept_alone, percent, run, sums, Error, Format, Options, Rows, Tally};
use crate::Study;

/// Policy of a run, ordered like the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Setup {
    /// t1 ends the last slot of a process, too: as in the thesis.
    cuts_last_slot: bool,
    /// Place in [`IdlePolicy::ALL`].
    policy: usize,
    /// Place in [`PreemptionWay::ALL`].
    way: usize,
}

impl Setup {
    fn all() -> impl Iterator<Item = Self> {
        let policies = || 0..IdlePolicy::ALL.len();
        let ways = || 0..PreemptionWay::ALL.len();
        [false, true].into_iter().flat_map(move |cuts_last_slot| {
            policies()
                .flat_map(move |policy| ways().map(move |way| Self { cuts_last_slot, policy, way }))
        })
    }

    /// The setup that this one is compared with: the choice of the thesis.
    fn chosen(self) -> Self {
        Self { policy: IdlePolicy::Latest as usize, way: PreemptionWay::Capped as usize, ..self }
    }

    fn config(self) -> Config {
        Config {
            t1_spares_last_slot: u64::from(!self.cuts_last_slot),
            idle_policy: IdlePolicy::ALL[self.policy] as u64,
            preemption_way: PreemptionWay::ALL[self.way] as u64,
            ..Config::DEFAULT
        }
    }
}

/// Results of all processes under a setup.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Cell {
    #[serde(flatten)]
    tally: Tally,
    /// Kept, and missed under the choice of the thesis.
    kept_here_alone: u64,
    /// Missed, and kept under the choice of the thesis.
    missed_here_alone: u64,
    /// Number of times that another process than before got the CPU.
    switches: u64,
    /// Signals of t2_preemptions.
    preemption_failures: u64,
    /// Signals of t2_task.
    task_failures: u64,
    /// Execution time in which no process ran: idle slots that none filled.
    idle_ns: u64,
    /// Time in which idle slots were filled.
    filled_ns: u64,
    /// Part of that time of the process that had most of it, plan by plan.
    most_filled_ns: u64,
    /// Processes that had any of it, plan by plan.
    fillers: u64,
}

impl Cell {
    fn of(simulation: &Simulation, chosen: &Simulation) -> Self {
        let filled = filled_ns(simulation);
        let failures = |cause: &str| {
            let counts = simulation.counts();
            let late = counts.signals.get(EventKind::Late.name());
            late.and_then(|late| late.get(cause)).copied().unwrap_or(0)
        };
        Self {
            tally: Tally::of(simulation),
            kept_here_alone: kept_alone(simulation, chosen).count() as u64,
            missed_here_alone: kept_alone(chosen, simulation).count() as u64,
            switches: simulation.cpus.iter().map(|cpu| cpu.switches).sum(),
            preemption_failures: failures("preemptions"),
            task_failures: failures("task"),
            idle_ns: simulation.cpus.iter().map(|cpu| cpu.idle_ns).sum(),
            filled_ns: filled.values().sum(),
            most_filled_ns: filled.values().copied().max().unwrap_or(0),
            fillers: filled.len() as u64,
        }
    }

    fn add(&mut self, other: Self) {
        self.tally.add(&other.tally);
        self.kept_here_alone += other.kept_here_alone;
        self.missed_here_alone += other.missed_here_alone;
        self.switches += other.switches;
        self.preemption_failures += other.preemption_failures;
        self.task_failures += other.task_failures;
        self.idle_ns += other.idle_ns;
        self.filled_ns += other.filled_ns;
        self.most_filled_ns += other.most_filled_ns;
        self.fillers += other.fillers;
    }
}

/// The time that each process had of idle slots, by its number, as it is told.
fn filled_ns(simulation: &Simulation) -> BTreeMap<u32, u64> {
    let mut filled = BTreeMap::new();
    let grants = simulation.events.iter();
    let mut grants = grants.filter(|event| event.kind == EventKind::Grant as u16).peekable();
    while let Some(grant) = grants.next() {
        if grant.reason == Grant::IdleSlot as u16 {
            let until_ns = grants.peek().map_or(simulation.ended_ns(), |next| next.time_ns);
            *filled.entry(grant.process).or_default() += until_ns.saturating_sub(grant.time_ns);
        }
    }
    filled
}

#[derive(Clone, Copy, Debug, Serialize)]
struct IdlePolicyRow {
    deviation: Deviation,
    t1_spares_last_slot: bool,
    idle_policy: &'static str,
    preemption_way: &'static str,
    #[serde(flatten)]
    cell: Cell,
}

/// Makes the study.
pub fn study(options: &Options<'_>) -> Result<impl Study, Error> {
    let cells = sums(options, |number| of_plan(options.seed, number), Cell::add)?;
    let rows = cells.into_iter().map(|((deviation, setup), cell)| IdlePolicyRow {
        deviation,
        t1_spares_last_slot: !setup.cuts_last_slot,
        idle_policy: IdlePolicy::ALL[setup.policy].name(),
        preemption_way: PreemptionWay::ALL[setup.way].name(),
        cell,
    });
    Ok(Rows::new(options, rows))
}

type Cells = Vec<((Deviation, Setup), Cell)>;

fn of_plan(seed: u64, number: u64) -> Result<Cells, Error> {
    let mut cells = Vec::new();
    for deviation in Deviation::ALL {
        let plan = plan(seed, number, deviation)?;
        let mut simulations = BTreeMap::new();
        for setup in Setup::all() {
            simulations.insert(setup, run(&plan, setup.config(), false)?);
        }
        for (setup, simulation) in &simulations {
            let cell = Cell::of(simulation, &simulations[&setup.chosen()]);
            cells.push(((deviation, *setup), cell));
        }
    }
    Ok(cells)
}

impl Study for Rows<IdlePolicyRow> {
    fn text(&self, format: Format) -> String {
        let capped = PreemptionWay::Capped.name();
        let latest = IdlePolicy::Latest.name();
        let mut out = self.policies(capped).print(format);
        out.push_str("\nTasks that are preempted again, with idle slots for the latest:\n\n");
        out.push_str(&self.ways(latest).print(format));
        out
    }
}

impl Rows<IdlePolicyRow> {
    fn policies(&self, way: &str) -> Table {
        let titles = [
            "Deviation",
            "Last slots",
            "Idle policy",
            "Kept",
            "Of",
            "Share",
            "Here alone",
            "Not here",
            "Tardiness (ms)",
            "Preemptions",
            "Switches",
            "Idle (ms)",
            "Fillers",
            "Most",
        ];
        let mut table = Table::new(&titles, 3);
        for row in self.rows.iter().filter(|row| row.preemption_way == way) {
            let cell = &row.cell;
            let mut cells = row.begin(row.idle_policy);
            cells.extend([
                grouped(cell.tally.preemptions),
                grouped(cell.switches),
                ms(cell.idle_ns / self.plans.max(1)),
                grouped(cell.fillers),
                percent(cell.most_filled_ns, cell.filled_ns),
            ]);
            table.push(cells);
        }
        table
    }

    fn ways(&self, policy: &str) -> Table {
        let titles = [
            "Deviation",
            "Last slots",
            "Way",
            "Kept",
            "Of",
            "Share",
            "Here alone",
            "Not here",
            "Tardiness (ms)",
            "Preemptions",
            "Switches",
            "t2_preemptions",
            "t2_task",
        ];
        let mut table = Table::new(&titles, 3);
        for row in self.rows.iter().filter(|row| row.idle_policy == policy) {
            let cell = &row.cell;
            let mut cells = row.begin(row.preemption_way);
            cells.extend([
                grouped(cell.tally.preemptions),
                grouped(cell.switches),
                grouped(cell.preemption_failures),
                grouped(cell.task_failures),
            ]);
            table.push(cells);
        }
        table
    }
}

impl IdlePolicyRow {
    /// First columns of both tables.
    fn begin(&self, what: &str) -> Vec<String> {
        let Cell { tally, kept_here_alone, missed_here_alone, .. } = &self.cell;
        let last_slots = if self.t1_spares_last_slot { "spared" } else { "cut" };
        vec![
            self.deviation.name().into(),
            last_slots.into(),
            what.into(),
            grouped(tally.kept),
            grouped(tally.processes),
            percent(tally.kept, tally.processes),
            grouped(*kept_here_alone),
            grouped(*missed_here_alone),
            tally.tardiness(),
        ]
    }
}
