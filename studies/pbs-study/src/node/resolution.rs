// SPDX-License-Identifier: GPL-2.0
//! Precision with which a node checks the count of retired instructions, and its cost (Leppert
//! 2021, 3.1.3).
//!
//! The thesis names 250 timer interrupts a second, 1,000 of them, and overflow events of the
//! counter, and leaves the choice open.

use std::collections::HashMap;

use pbs_plan::{Config, Plan};
use pbs_sim::{simulate, NoAnswer, Resolution, Simulation, Timing};
use pbs_text::{grouped, Table};
use pbs_uapi::EventKind;
use serde::Serialize;

use crate::node::plans::{plan, short, Deviation};
use crate::node::{count, percent, sums, Error, Format, Options, Tally};
use crate::Study;

/// Measured costs of the class on a CPU that retires 10^9 instructions a second
/// (Documentation/benchmarks.rst): a timer that expires, a preemption with its switch, and the
/// excess of a slot over t1 in 99 of 100 cases.
const LOOK_NS: u64 = 2_000;
const SWITCH_NS: u64 = 5_110;
const DELAY_INSNS: u64 = 132;

/// Ticks that a node with a timer of its own has as well.
const TICKS_PER_S: u64 = 250;

const NS_PER_S: u64 = 1_000_000_000;

/// Times at which the node checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
enum Setup {
    #[serde(rename = "tick 250 Hz")]
    Tick250,
    #[serde(rename = "tick 1000 Hz")]
    Tick1000,
    /// A timer, or the counter's overflow, as the class has it.
    #[serde(rename = "timer")]
    Timer,
    /// A check that takes no time and occurs at the exact moment.
    #[serde(rename = "ideal")]
    Ideal,
}

impl Setup {
    const ALL: [Self; 4] = [Self::Tick250, Self::Tick1000, Self::Timer, Self::Ideal];

    fn name(self) -> &'static str {
        match self {
            Self::Tick250 => "tick 250 Hz",
            Self::Tick1000 => "tick 1000 Hz",
            Self::Timer => "timer",
            Self::Ideal => "ideal",
        }
    }

    fn options(self) -> pbs_sim::Options {
        let all = Config::DEFAULT;
        // Stress lasts as long as with the other tick, and is worth as much.
        let config = match self {
            Self::Tick1000 => Config {
                nominal_tick_ns: all.nominal_tick_ns / 4,
                stress_reset: all.stress_reset * 4,
                stress_gain_ns: all.stress_gain_ns / 4,
                ..all
            },
            _ => all,
        };
        let takes = |timer_delay_insns| Timing {
            timer_delay_insns,
            look_ns: LOOK_NS,
            switch_ns: SWITCH_NS,
        };
        let (resolution, timing) = match self {
            Self::Tick250 | Self::Tick1000 => (Resolution::Tick, takes(0)),
            Self::Timer => (Resolution::Event, takes(DELAY_INSNS)),
            Self::Ideal => (Resolution::Event, Timing::default()),
        };
        pbs_sim::Options {
            config,
            resolution,
            timing,
            record_grants: false,
            ..pbs_sim::Options::default()
        }
    }

    /// Interrupts a second, besides what the class looks at.
    fn ticks_per_s(self) -> u64 {
        match self {
            Self::Tick1000 => 1000,
            Self::Tick250 | Self::Timer => TICKS_PER_S,
            Self::Ideal => 0,
        }
    }

    /// Whether looks come with the ticks.
    fn looks_in_ticks(self) -> bool {
        matches!(self, Self::Tick250 | Self::Tick1000)
    }
}

/// Lengths of the tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
enum Lengths {
    /// 5 to 500 ms.
    Long,
    /// 1 to 20 ms.
    Short,
}

impl Lengths {
    const ALL: [Self; 2] = [Self::Long, Self::Short];

    fn name(self) -> &'static str {
        match self {
            Self::Long => "5 to 500 ms",
            Self::Short => "1 to 20 ms",
        }
    }

    fn plan(self, seed: u64, number: u64) -> Result<Plan, Error> {
        match self {
            Self::Long => plan(seed, number, Deviation::Normal10),
            Self::Short => short(seed, number, Deviation::Normal10),
        }
    }
}

/// Results of all plans.
#[derive(Clone, Debug, Default)]
struct Sum {
    tally: Tally,
    signals: u64,
    switches: u64,
    looks: u64,
    lasted_ns: u64,
    lost_ns: u64,
    /// Retired beyond t1 by tasks that began in the slot which it ended.
    overshoots_insns: Vec<u64>,
}

impl Sum {
    fn of(plan: &Plan, simulation: &Simulation) -> Self {
        let cpus = || simulation.cpus.iter();
        let switches = cpus().map(|cpu| cpu.switches).sum();
        let lost_ns: u64 = cpus().map(|cpu| cpu.lost_ns).sum();
        Self {
            tally: Tally::of(simulation),
            signals: count(simulation, EventKind::Late) + count(simulation, EventKind::Early),
            switches,
            looks: lost_ns.saturating_sub(switches * SWITCH_NS) / LOOK_NS,
            lasted_ns: cpus().map(|cpu| cpu.ended_ns).sum(),
            lost_ns,
            overshoots_insns: overshoots(plan, simulation),
        }
    }

    fn add(&mut self, other: Self) {
        self.tally.add(&other.tally);
        self.signals += other.signals;
        self.switches += other.switches;
        self.looks += other.looks;
        self.lasted_ns += other.lasted_ns;
        self.lost_ns += other.lost_ns;
        self.overshoots_insns.extend(other.overshoots_insns);
    }
}

/// Instructions retired beyond t1 by each task whose own slot t1 ended for the first time.
fn overshoots(plan: &Plan, simulation: &Simulation) -> Vec<u64> {
    let Some(cpu) = plan.cpus.first() else {
        return Vec::new();
    };
    let slots = plan.place(cpu).zip(0u64..);
    let owners = slots.filter_map(|(slot, number)| {
        let (process, task) = slot.task?;
        let process = &plan.processes[process];
        Some((number, (process.id, process.tasks[task].id)))
    });
    let owners: HashMap<_, _> = owners.collect();
    let ended = simulation.events.iter().filter(|event| {
        event.kind == EventKind::Preempted as u16
            && event.preemptions == 1
            && owners.get(&event.slot) == Some(&(event.process, event.task))
    });
    // Who shared the slot with the task before it has retired less.
    let beyond = ended.filter_map(|event| event.retired_insns.checked_sub(event.value));
    beyond.collect()
}

#[derive(Clone, Debug, Serialize)]
struct ResolutionRow {
    lengths: Lengths,
    setup: Setup,
    #[serde(flatten)]
    tally: Tally,
    signals: u64,
    /// Number of slots on which the next four values are based.
    overshoots: usize,
    overshoot_mean_insns: u64,
    overshoot_median_insns: u64,
    overshoot_p99_insns: u64,
    overshoot_max_insns: u64,
    /// Times that the class checks count or clock.
    looks_per_s: u64,
    /// Interrupts, the ticks among them.
    interrupts_per_s: u64,
    /// Share of the CPU that checks and switches take, in millionths.
    cost_ppm: u64,
}

/// Results of the study.
#[derive(Debug, Serialize)]
struct Resolutions {
    plans: u64,
    seed: u64,
    /// Times of a check and of a switch, and the delay of a timer.
    look_ns: u64,
    switch_ns: u64,
    timer_delay_insns: u64,
    rows: Vec<ResolutionRow>,
}

/// Makes the study.
pub fn study(options: &Options<'_>) -> Result<impl Study, Error> {
    let sums = sums(options, |number| of_plan(options.seed, number), Sum::add)?;
    let rows = sums.into_iter();
    let rows = rows.map(|((lengths, setup), sum)| row(lengths, setup, sum));
    Ok(Resolutions {
        plans: options.plans,
        seed: options.seed,
        look_ns: LOOK_NS,
        switch_ns: SWITCH_NS,
        timer_delay_insns: DELAY_INSNS,
        rows: rows.collect(),
    })
}

type Sums = Vec<((Lengths, Setup), Sum)>;

fn of_plan(seed: u64, number: u64) -> Result<Sums, Error> {
    let mut sums = Vec::new();
    for lengths in Lengths::ALL {
        let plan = lengths.plan(seed, number)?;
        for setup in Setup::ALL {
            let simulation = simulate(&plan, &setup.options(), &mut NoAnswer);
            let simulation = simulation.map_err(|error| Error(error.to_string()))?;
            let mut sum = Sum::of(&plan, &simulation);
            if setup == Setup::Ideal {
                // It takes no time, so nothing tells of it.
                sum.looks = 0;
            }
            sums.push(((lengths, setup), sum));
        }
    }
    Ok(sums)
}

fn row(lengths: Lengths, setup: Setup, mut sum: Sum) -> ResolutionRow {
    let beyond = &mut sum.overshoots_insns;
    beyond.sort_unstable();
    let quantile = |percent: usize| {
        let place = beyond.len().saturating_sub(1) * percent / 100;
        beyond.get(place).copied().unwrap_or(0)
    };
    let lasted_ns = u128::from(sum.lasted_ns.max(1));
    let per_s = |count: u64| (u128::from(count) * u128::from(NS_PER_S) / lasted_ns) as u64;
    let looks_per_s = per_s(sum.looks);
    // A tick at which the class has nothing to look at is one all the same.
    let ticks_per_s = setup.ticks_per_s();
    let interrupts_per_s =
        if setup.looks_in_ticks() { ticks_per_s } else { ticks_per_s + looks_per_s };
    let cost_ns = u128::from(interrupts_per_s * LOOK_NS) * lasted_ns / u128::from(NS_PER_S)
        + u128::from(match setup {
            Setup::Ideal => 0,
            _ => sum.switches * SWITCH_NS,
        });
    ResolutionRow {
        lengths,
        setup,
        tally: sum.tally,
        signals: sum.signals,
        overshoots: beyond.len(),
        overshoot_mean_insns: beyond.iter().sum::<u64>() / beyond.len().max(1) as u64,
        overshoot_median_insns: quantile(50),
        overshoot_p99_insns: quantile(99),
        overshoot_max_insns: quantile(100),
        looks_per_s,
        interrupts_per_s,
        cost_ppm: (cost_ns * 1_000_000 / lasted_ns) as u64,
    }
}

impl Study for Resolutions {
    fn text(&self, format: Format) -> String {
        let titles = [
            "Tasks",
            "Setup",
            "Kept",
            "Of",
            "Share",
            "Tardiness (ms)",
            "Preemptions",
            "Signals",
            "Beyond t1, mean (µs)",
            "99 of 100 (µs)",
            "Most (µs)",
            "Looks/s",
            "Interrupts/s",
            "Cost (%)",
        ];
        let mut table = Table::new(&titles, 2);
        // At 10^9 instructions a second.
        let us = |insns: u64| format!("{:.3}", insns as f64 / 1000.0);
        for row in &self.rows {
            table.push(vec![
                row.lengths.name().into(),
                row.setup.name().into(),
                grouped(row.tally.kept),
                grouped(row.tally.processes),
                percent(row.tally.kept, row.tally.processes),
                row.tally.tardiness(),
                grouped(row.tally.preemptions),
                grouped(row.signals),
                us(row.overshoot_mean_insns),
                us(row.overshoot_p99_insns),
                us(row.overshoot_max_insns),
                grouped(row.looks_per_s),
                grouped(row.interrupts_per_s),
                format!("{:.3}", row.cost_ppm as f64 / 10_000.0),
            ]);
        }
        table.print(format)
    }
}
