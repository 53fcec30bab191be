// SPDX-License-Identifier: GPL-2.0
//! Whether the policy makes processes miss deadlines that they could meet
//! (Leppert 2021, REQ-NF-2).

use std::collections::BTreeMap;

use pbs_plan::{Config, IdlePolicy, Threshold};
use pbs_sim::Simulation;
use pbs_text::{grouped, ms, Table};
use pbs_uapi::{EventKind, Grant, NO_SLOT};
use serde::Serialize;

use crate::node::plans::{plan, Deviation, LONGEST_TASK_INSNS};
use crate::node::{count, for_each_plan, kept_alone, percent, run, Error, Format, Options, Tally};
use crate::Study;

/// Parts of the policy that are switched on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
enum Setup {
    #[serde(rename = "off")]
    Off,
    /// t1 alone, in the last slot of a process, too.
    #[serde(rename = "t1")]
    T1,
    #[serde(rename = "t1, spared")]
    T1Spared,
    #[serde(rename = "t1, t2")]
    T1T2,
    /// The defaults.
    #[serde(rename = "all")]
    All,
    // What follows changes one thing of "all".
    #[serde(rename = "no answers")]
    NoAnswers,
    #[serde(rename = "least slack")]
    LeastSlack,
    #[serde(rename = "not spared")]
    NotSpared,
    #[serde(rename = "no leeway")]
    NoLeeway,
    #[serde(rename = "small gain")]
    SmallGain,
    #[serde(rename = "t1 20 %")]
    T1At20,
    #[serde(rename = "no t1")]
    NoT1,
}

impl Setup {
    const ALL: [Setup; 12] = [
        Setup::Off,
        Setup::T1,
        Setup::T1Spared,
        Setup::T1T2,
        Setup::All,
        Setup::NoAnswers,
        Setup::LeastSlack,
        Setup::NotSpared,
        Setup::NoLeeway,
        Setup::SmallGain,
        Setup::T1At20,
        Setup::NoT1,
    ];

    /// The setups that change one thing of "all".
    const VARIANTS: &'static [Setup] = Self::ALL.split_at(5).1;

    fn name(self) -> &'static str {
        match self {
            Setup::Off => "off",
            Setup::T1 => "t1",
            Setup::T1Spared => "t1, spared",
            Setup::T1T2 => "t1, t2",
            Setup::All => "all",
            Setup::NoAnswers => "no answers",
            Setup::LeastSlack => "least slack",
            Setup::NotSpared => "not spared",
            Setup::NoLeeway => "no leeway",
            Setup::SmallGain => "small gain",
            Setup::T1At20 => "t1 20 %",
            Setup::NoT1 => "no t1",
        }
    }

    fn config(self) -> Config {
        let bits = |thresholds: &[Threshold]| thresholds.iter().map(|&t| t as u64).sum();
        let all = Config::DEFAULT;
        match self {
            // Ceilings so far out that no slot reaches its own.
            Setup::Off => Config {
                thresholds: 0,
                ceiling_factor_permille: 1_000_000,
                ceiling_extra_ns: 3_600_000_000_000,
                ..all
            },
            Setup::T1 => Config { t1_spares_last_slot: 0, ..Setup::T1Spared.config() },
            Setup::T1Spared => Config { thresholds: bits(&[Threshold::T1]), ..all },
            Setup::T1T2 => Config {
                thresholds: bits(&[
                    Threshold::T1,
                    Threshold::T2Task,
                    Threshold::T2Process,
                    Threshold::T2Node,
                    Threshold::T2Preemptions,
                ]),
                ..all
            },
            Setup::All | Setup::NoAnswers => all,
            Setup::LeastSlack => Config { idle_policy: IdlePolicy::LeastSlack as u64, ..all },
            Setup::NotSpared => Config { t1_spares_last_slot: 0, ..all },
            Setup::NoLeeway => Config { no_preemption_ns: 0, ..all },
            // T2_MIN_PROCESS and RESCHEDULE_TIME hide all of it.
            Setup::SmallGain => Config { stress_gain_ns: all.nominal_tick_ns / 10, ..all },
            // PREEMPTION_LIMIT leaves it so for the longest slots of the studies.
            Setup::T1At20 => Config {
                sigma_t1_permille: 1200,
                preemption_limit_ns: LONGEST_TASK_INSNS / 5,
                ..all
            },
            Setup::NoT1 => Config { thresholds: all.thresholds & !(Threshold::T1 as u64), ..all },
        }
    }

    /// Whether a job scheduler answers.
    fn answers(self) -> bool {
        !matches!(self, Setup::Off | Setup::T1 | Setup::T1Spared | Setup::NoAnswers)
    }
}

/// Cause for which a process misses its deadline because of the policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
enum Kind {
    /// The last slot ended by t1 or its ceiling. An idle slot, or the slot of a process that could
    /// not run, went to another process before this one ended.
    #[serde(rename = "idle slot")]
    IdleSlot,
    /// The last slot ended by t1 or its ceiling, and the rest waited behind the slots of the
    /// others.
    #[serde(rename = "last slot")]
    LastSlot,
    /// An earlier slot of it ended so, and it did not catch up.
    #[serde(rename = "earlier slot")]
    EarlierSlot,
    /// None of its slots ended so; an answer to a failure gave the plan other
    /// lengths.
    #[serde(rename = "answer")]
    Answer,
    /// None of this: the others had more of the CPU before it.
    #[serde(rename = "others")]
    Others,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::IdleSlot => "idle slot",
            Kind::LastSlot => "last slot",
            Kind::EarlierSlot => "earlier slot",
            Kind::Answer => "answer",
            Kind::Others => "others",
        }
    }

    fn of(simulation: &Simulation, process: u32) -> Self {
        let mut cut = None;
        let mut last_cut = None;
        let mut filled_by_others = false;
        for event in &simulation.events {
            match EventKind::from_raw(event.kind) {
                Some(EventKind::Preempted | EventKind::Ceiling) if event.process == process => {
                    cut = Some(event.time_ns);
                    last_cut = Some(event.time_ns);
                    filled_by_others = false;
                }
                // A slot of its own came after the cut.
                Some(EventKind::Grant)
                    if event.process == process && event.reason == Grant::Slot as u16 =>
                {
                    last_cut = None;
                }
                Some(EventKind::Grant)
                    if event.process != process
                        && event.slot != NO_SLOT
                        && [Grant::IdleSlot as u16, Grant::BlockedSlot as u16]
                            .contains(&event.reason) =>
                {
                    filled_by_others = true;
                }
                Some(EventKind::ProcessEnded) if event.process == process => break,
                _ => {}
            }
        }
        match (cut, last_cut, filled_by_others) {
            (_, Some(_), true) => Kind::IdleSlot,
            (_, Some(_), false) => Kind::LastSlot,
            (Some(_), None, _) => Kind::EarlierSlot,
            (None, None, _) if !simulation.replans.is_empty() => Kind::Answer,
            (None, None, _) => Kind::Others,
        }
    }
}

/// Results of all processes of a setup.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Cell {
    #[serde(flatten)]
    tally: Tally,
    /// Missed, and kept with all off.
    because: u64,
    /// Kept, and missed with all off.
    saved: u64,
    /// Kept, and missed with all on.
    kept_here_alone: u64,
    /// Missed, and kept with all on.
    missed_here_alone: u64,
    failures: u64,
    answers: u64,
}

impl Cell {
    fn add(&mut self, other: &Cell) {
        self.tally.add(&other.tally);
        self.because += other.because;
        self.saved += other.saved;
        self.kept_here_alone += other.kept_here_alone;
        self.missed_here_alone += other.missed_here_alone;
        self.failures += other.failures;
        self.answers += other.answers;
    }
}

/// A process that meets its deadline with all off and misses it otherwise.
#[derive(Clone, Debug, Serialize)]
struct Case {
    deviation: Deviation,
    setup: Setup,
    kind: Kind,
    /// Number of the plan, from 0.
    plan: u64,
    process: u32,
    deadline_ns: u64,
    ended_ns: Option<u64>,
    /// End of the process with all off.
    ended_off_ns: Option<u64>,
    /// The setups that avoid it.
    avoided_by: Vec<Setup>,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct DeadlineRow {
    deviation: Deviation,
    setup: Setup,
    #[serde(flatten)]
    cell: Cell,
}

/// Results of the study.
#[derive(Debug, Serialize)]
struct Deadlines {
    plans: u64,
    seed: u64,
    rows: Vec<DeadlineRow>,
    cases: Vec<Case>,
    /// Number of cases that are printed.
    #[serde(skip)]
    listed: usize,
}

/// Makes the study; its text lists so many of the cases.
pub fn study(options: &Options<'_>, listed: usize) -> Result<impl Study, Error> {
    let of_plans = for_each_plan(options, |number| of_plan(options.seed, number))?;
    let mut cells: BTreeMap<(Deviation, Setup), Cell> = BTreeMap::new();
    let mut cases = Vec::new();
    for (rows, of_plan) in of_plans {
        for row in rows {
            let cell = cells.entry((row.deviation, row.setup)).or_default();
            cell.add(&row.cell);
        }
        cases.extend(of_plan);
    }
    cases.sort_by_key(|case| (case.deviation, case.setup, case.plan, case.process));
    let rows =
        cells.into_iter().map(|((deviation, setup), cell)| DeadlineRow { deviation, setup, cell });
    Ok(Deadlines { plans: options.plans, seed: options.seed, rows: rows.collect(), cases, listed })
}

fn of_plan(seed: u64, number: u64) -> Result<(Vec<DeadlineRow>, Vec<Case>), Error> {
    let (mut rows, mut cases) = (Vec::new(), Vec::new());
    for deviation in Deviation::WITH_COMMON {
        let plan = plan(seed, number, deviation)?;
        let simulations = Setup::ALL.map(|setup| run(&plan, setup.config(), setup.answers()));
        let simulations: Vec<_> = simulations.into_iter().collect::<Result<_, _>>()?;
        let [off, all] = [Setup::Off, Setup::All].map(|setup| &simulations[setup as usize]);
        for (setup, simulation) in Setup::ALL.into_iter().zip(&simulations) {
            rows.push(DeadlineRow {
                deviation,
                setup,
                cell: Cell {
                    tally: Tally::of(simulation),
                    because: kept_alone(off, simulation).count() as u64,
                    saved: kept_alone(simulation, off).count() as u64,
                    kept_here_alone: kept_alone(simulation, all).count() as u64,
                    missed_here_alone: kept_alone(all, simulation).count() as u64,
                    failures: count(simulation, EventKind::Late)
                        + count(simulation, EventKind::Early),
                    answers: simulation.replans.len() as u64,
                },
            });
            for (before, process) in kept_alone(off, simulation) {
                let avoids = |other: &Simulation| {
                    let mut outcomes = other.processes.iter();
                    outcomes.any(|outcome| outcome.id == process.id && outcome.kept)
                };
                let others = Setup::ALL.into_iter().zip(&simulations).skip(1);
                cases.push(Case {
                    deviation,
                    setup,
                    kind: Kind::of(simulation, process.id),
                    plan: number,
                    process: process.id,
                    deadline_ns: process.deadline_ns,
                    ended_ns: process.ended_ns,
                    ended_off_ns: before.ended_ns,
                    avoided_by: others
                        .filter(|(_, other)| avoids(other))
                        .map(|(setup, _)| setup)
                        .collect(),
                });
            }
        }
    }
    Ok((rows, cases))
}

impl Study for Deadlines {
    fn text(&self, format: Format) -> String {
        let mut out = self.cells().print(format);
        if self.cases.is_empty() {
            return out;
        }
        out.push_str(
            "\nDeadlines missed because of the policy, by what happened, and how many of them \
             each variant keeps:\n\n",
        );
        out.push_str(&self.kinds().print(format));
        if self.listed > 0 {
            out.push('\n');
            out.push_str(&self.list(self.listed).print(format));
        }
        out
    }
}

impl Deadlines {
    fn cells(&self) -> Table {
        let titles = [
            "Deviation",
            "Setup",
            "Kept",
            "Of",
            "Share",
            "Because",
            "Saved",
            "Tardiness (ms)",
            "Preemptions",
            "Failures",
            "Answers",
        ];
        let mut table = Table::new(&titles, 2);
        for DeadlineRow { deviation, setup, cell } in &self.rows {
            table.push(vec![
                deviation.name().into(),
                setup.name().into(),
                grouped(cell.tally.kept),
                grouped(cell.tally.processes),
                percent(cell.tally.kept, cell.tally.processes),
                grouped(cell.because),
                grouped(cell.saved),
                cell.tally.tardiness(),
                grouped(cell.tally.preemptions),
                grouped(cell.failures),
                grouped(cell.answers),
            ]);
        }
        table
    }

    fn kinds(&self) -> Table {
        let mut titles = vec!["Deviation", "Setup", "Kind", "Cases"];
        titles.extend(Setup::VARIANTS.iter().map(|setup| setup.name()));
        let mut table = Table::new(&titles, 3);
        let mut kinds: BTreeMap<_, Vec<&Case>> = BTreeMap::new();
        for case in &self.cases {
            if !Setup::VARIANTS.contains(&case.setup) {
                let key = (case.deviation, case.setup, case.kind);
                kinds.entry(key).or_default().push(case);
            }
        }
        for ((deviation, setup, kind), cases) in kinds {
            let mut row = vec![
                deviation.name().into(),
                setup.name().into(),
                kind.name().into(),
                grouped(cases.len() as u64),
            ];
            row.extend(Setup::VARIANTS.iter().map(|by| {
                let avoided = cases.iter().filter(|case| case.avoided_by.contains(by));
                grouped(avoided.count() as u64)
            }));
            table.push(row);
        }
        table
    }

    fn list(&self, list: usize) -> Table {
        let titles = [
            "Deviation",
            "Setup",
            "Kind",
            "Plan",
            "Process",
            "Deadline (ms)",
            "Ended (ms)",
            "Ended, all off (ms)",
        ];
        let mut table = Table::new(&titles, 3);
        for case in self.cases.iter().take(list) {
            table.push(vec![
                case.deviation.name().into(),
                case.setup.name().into(),
                case.kind.name().into(),
                case.plan.to_string(),
                case.process.to_string(),
                ms(case.deadline_ns),
                case.ended_ns.map_or_else(|| "not ended".into(), ms),
                case.ended_off_ns.map_or_else(|| "not ended".into(), ms),
            ]);
        }
        table
    }
}
