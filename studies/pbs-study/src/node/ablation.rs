// SPDX-License-Identifier: GPL-2.0
//! Effect of each threshold: all of them on, each alone off, and none; and effect of the variants
//! that the thesis considers and does not choose.

use pbs_plan::{Config, StressCause, T1State, Threshold};
use pbs_text::{grouped, Table};
use pbs_uapi::EventKind;
use serde::Serialize;

use crate::node::plans::{plan, with_memory, Deviation};
use crate::node::{count, kept_alone, percent, run, sums, Error, Format, Options, Rows, Tally};
use crate::Study;

/// Thresholds that are on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Setup {
    All,
    Without(Threshold),
    /// No thresholds, and no ceiling that a slot could reach.
    None,
    /// All thresholds, and one number that is not its default.
    Variant(Variant),
}

/// A number that is not its default, as it is written in a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Variant {
    T1Lateness,
    T1Load,
    LeastProgress,
    SigmaTm2,
    InfoIsDealt,
    Measured,
    NewLengths,
    SuspendsFailed,
}

impl Variant {
    const ALL: [Self; 8] = [
        Self::T1Lateness,
        Self::T1Load,
        Self::LeastProgress,
        Self::SigmaTm2,
        Self::InfoIsDealt,
        Self::Measured,
        Self::NewLengths,
        Self::SuspendsFailed,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::T1Lateness => "t1_state=lateness",
            Self::T1Load => "t1_state=load",
            Self::LeastProgress => "least_progress_permille=100",
            Self::SigmaTm2 => "sigma_tm2_permille=800",
            Self::InfoIsDealt => "info_is_dealt=true",
            Self::Measured => "reschedule_time_measured=true",
            Self::NewLengths => "stress_cause=new_lengths",
            Self::SuspendsFailed => "suspends_failed=true",
        }
    }

    fn config(self) -> Config {
        let all = Config::DEFAULT;
        match self {
            Self::T1Lateness => Config { t1_state: T1State::Lateness as u64, ..all },
            Self::T1Load => Config { t1_state: T1State::Load as u64, ..all },
            Self::LeastProgress => Config { least_progress_permille: 100, ..all },
            Self::SigmaTm2 => Config { sigma_tm2_permille: 800, ..all },
            Self::InfoIsDealt => Config { info_is_dealt: 1, ..all },
            Self::SuspendsFailed => Config { suspends_failed: 1, ..all },
            Self::Measured => Config { reschedule_time_measured: 1, ..all },
            Self::NewLengths => Config { stress_cause: StressCause::NewLengths as u64, ..all },
        }
    }
}

impl Setup {
    fn all() -> Vec<Self> {
        let mut setups = vec![Self::All];
        // Generated plans have no messages.
        let of_messages = [Threshold::T2Message, Threshold::Tm2Message];
        let others = Threshold::ALL.into_iter().filter(|it| !of_messages.contains(it));
        setups.extend(others.map(Self::Without));
        setups.push(Self::None);
        setups.extend(Variant::ALL.map(Self::Variant));
        setups
    }

    /// Name of the thresholds that are off, or the number that is not its default.
    fn off(self) -> &'static str {
        match self {
            Self::All => "nothing",
            Self::Without(threshold) => threshold.name(),
            Self::None => "everything",
            Self::Variant(variant) => variant.name(),
        }
    }

    fn config(self) -> Config {
        let all = Config::DEFAULT;
        match self {
            Self::All => all,
            Self::Without(threshold) => {
                Config { thresholds: all.thresholds & !(threshold as u64), ..all }
            }
            Self::Variant(variant) => variant.config(),
            Self::None => Config {
                thresholds: 0,
                ceiling_factor_permille: 1_000_000,
                ceiling_extra_ns: 3_600_000_000_000,
                ..all
            },
        }
    }
}

/// Results of all processes of a setup.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Cell {
    #[serde(flatten)]
    tally: Tally,
    /// Missed, and kept with all thresholds.
    lost: u64,
    /// Kept, and missed with all thresholds.
    gained: u64,
    /// Prediction failures, and information on the way to one.
    signals: u64,
    info: u64,
    /// Plans that came as answers.
    replans: u64,
}

impl Cell {
    fn add(&mut self, other: Self) {
        self.tally.add(&other.tally);
        self.lost += other.lost;
        self.gained += other.gained;
        self.signals += other.signals;
        self.info += other.info;
        self.replans += other.replans;
    }
}

#[derive(Clone, Copy, Debug, Serialize)]
struct AblationRow {
    deviation: Deviation,
    /// Whether failures are answered by stretching what is left.
    answers: bool,
    /// The threshold that is off, `nothing`, or `everything`, the ceilings too; otherwise the
    /// number that is not its default.
    off: &'static str,
    #[serde(flatten)]
    cell: Cell,
}

/// Deviation, without or with answers, place among the setups.
type Key = (Deviation, bool, usize);

/// Makes the study.
pub fn study(options: &Options<'_>) -> Result<impl Study, Error> {
    let cells = sums(options, |number| of_plan(options.seed, number), Cell::add)?;
    let setups = Setup::all();
    let rows = cells.into_iter();
    let rows = rows.map(|((deviation, answers, setup), cell)| AblationRow {
        deviation,
        answers,
        off: setups[setup].off(),
        cell,
    });
    Ok(Rows::new(options, rows))
}

fn of_plan(seed: u64, number: u64) -> Result<Vec<(Key, Cell)>, Error> {
    let mut cells = Vec::new();
    for deviation in Deviation::ALL {
        let plan = with_memory(plan(seed, number, deviation)?, seed, number);
        for answers in [false, true] {
            let setups = Setup::all();
            let simulations = setups.iter().map(|setup| run(&plan, setup.config(), answers));
            let simulations: Vec<_> = simulations.collect::<Result<_, _>>()?;
            for (place, simulation) in simulations.iter().enumerate() {
                let all = &simulations[0];
                let cell = Cell {
                    tally: Tally::of(simulation),
                    lost: kept_alone(all, simulation).count() as u64,
                    gained: kept_alone(simulation, all).count() as u64,
                    signals: count(simulation, EventKind::Late)
                        + count(simulation, EventKind::Early),
                    info: count(simulation, EventKind::Info),
                    replans: simulation.replans.len() as u64,
                };
                cells.push(((deviation, answers, place), cell));
            }
        }
    }
    Ok(cells)
}

impl Study for Rows<AblationRow> {
    fn text(&self, format: Format) -> String {
        let titles = [
            "Deviation",
            "Answers",
            "Off, or set",
            "Kept",
            "Of",
            "Share",
            "Lost",
            "Gained",
            "Tardiness (ms)",
            "Preemptions",
            "Signals",
            "Info",
            "Replans",
        ];
        let mut table = Table::new(&titles, 3);
        for row in &self.rows {
            let Cell { tally, lost, gained, signals, info, replans } = row.cell;
            table.push(vec![
                row.deviation.name().into(),
                if row.answers { "stretch" } else { "none" }.into(),
                row.off.into(),
                grouped(tally.kept),
                grouped(tally.processes),
                percent(tally.kept, tally.processes),
                grouped(lost),
                grouped(gained),
                tally.tardiness(),
                grouped(tally.preemptions),
                grouped(signals),
                grouped(info),
                grouped(replans),
            ]);
        }
        table.print(format)
    }
}
