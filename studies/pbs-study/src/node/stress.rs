// SPDX-License-Identifier: GPL-2.0
//! Whether stress keeps a job scheduler from being overloaded, and what that costs
//! (Leppert 2021, 3.3.6).
//!
//! Several nodes have one job scheduler, which needs time for each answer and gives one
//! after the other. A job that has changed is on all of them, so that all signal at once.

use pbs_gen::{generate, Parameters, Scenario, SlotOrder, Span};
use pbs_plan::{Config, Cpu, Plan, Slot, StressCause};
use pbs_sim::{simulate, Simulation, Stretch};
use pbs_text::{grouped, ms, Table};
use pbs_uapi::{Cause, EventKind};
use serde::Serialize;

use crate::node::{count, kept_alone, percent, sums, Error, Format, Options, Rows, Tally};
use crate::Study;

const NODES: [u32; 4] = [1, 4, 8, 16];

/// Time that the job scheduler needs for an answer.
const ANSWER_NS: [u64; 3] = [10_000_000, 100_000_000, 500_000_000];

const NS_PER_S: f64 = 1e9;

/// Extent to which a node holds back signals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
enum Stress {
    /// STRESS_GAIN is 0.
    Off,
    /// The default: 200 ms after each plan, and at first worth as much.
    On,
    /// STRESS_RESET is ten times the default: for 2 s, and worth as much.
    Tenfold,
    /// Stress as with `Tenfold`, set only by plans with new lengths (6.2.3).
    NewLengths,
    /// Stress as with `Tenfold`, set only by plans with new lengths of processes that failed.
    FailedLengths,
    /// Stress as with `On`, and each node measures RESCHEDULE_TIME (3.3.3).
    Measured,
}

impl Stress {
    const ALL: [Self; 6] =
        [Self::Off, Self::On, Self::Tenfold, Self::NewLengths, Self::FailedLengths, Self::Measured];

    fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::On => "on",
            Self::Tenfold => "tenfold",
            Self::NewLengths => "new lengths",
            Self::FailedLengths => "failed lengths",
            Self::Measured => "measured",
        }
    }

    fn config(self, answer_ns: u64) -> Config {
        let default = Config { reschedule_time_ns: answer_ns, ..Config::DEFAULT };
        let tenfold = Config { stress_reset: 10 * default.stress_reset, ..default };
        match self {
            Self::Off => Config { stress_gain_ns: 0, ..default },
            Self::On => default,
            Self::Measured => Config { reschedule_time_measured: 1, ..default },
            Self::Tenfold => tenfold,
            Self::NewLengths => Config { stress_cause: StressCause::NewLengths as u64, ..tenfold },
            Self::FailedLengths => {
                Config { stress_cause: StressCause::FailedLengths as u64, ..tenfold }
            }
        }
    }
}

/// Workload of the nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
enum Jobs {
    /// Every task of every node takes 15 % longer than planned, and scatters by 10 %: the
    /// job has changed.
    Changed,
    /// The job has not changed, and tasks scatter by 20 %.
    Scattered,
    /// Processes of three tasks of 5 to 40 ms with deadlines that are near, one of which
    /// takes twice as long as planned.
    Short,
}

impl Jobs {
    const ALL: [Self; 3] = [Self::Changed, Self::Scattered, Self::Short];

    fn name(self) -> &'static str {
        match self {
            Self::Changed => "changed",
            Self::Scattered => "scattered",
            Self::Short => "short",
        }
    }

    /// Plan of one node.
    fn plan(self, seed: u64) -> Result<Plan, Error> {
        let long = Parameters {
            processes: 3,
            tasks: Span::new(5, 15),
            task_insns: Span::new(5_000_000, 200_000_000),
            idle_permille: 100,
            idle_insns: Span::new(10_000_000, 100_000_000),
            buffer_permille: Span::new(0, 100),
            order: SlotOrder::Alternate,
            scenario: Scenario::AllSlightlyLate,
            task_sigma_permille: 100,
            seed,
            ..Parameters::default()
        };
        let parameters = match self {
            Self::Changed => long,
            Self::Scattered => {
                Parameters { scenario: Scenario::Normal, task_sigma_permille: 200, ..long }
            }
            Self::Short => Parameters {
                processes: 5,
                tasks: Span::new(3, 3),
                task_insns: Span::new(5_000_000, 40_000_000),
                idle_insns: Span::new(5_000_000, 20_000_000),
                scenario: Scenario::OneOver,
                deviation_permille: Some(1000),
                ..long
            },
        };
        generate(&parameters).map_err(|error| Error(error.to_string()))
    }

    /// Plan with as many nodes, each with a CPU of the plan.
    fn nodes(self, nodes: u32, seed: u64) -> Result<Plan, Error> {
        let mut whole = Plan { plan_id: 1, ..Plan::default() };
        for node in 0..nodes {
            let mut plan = self.plan(seed.wrapping_add(u64::from(node) << 32))?;
            let first = whole.processes.len();
            for process in &mut plan.processes {
                process.id += first as u32;
            }
            for cpu in &mut plan.cpus {
                for slot in &mut cpu.slots {
                    if let Slot::Process { process } = slot {
                        *process += first;
                    }
                }
            }
            whole.processes.extend(plan.processes);
            let cpus = plan.cpus.into_iter().map(|cpu| Cpu { cpu: node, ..cpu });
            whole.cpus.extend(cpus);
        }
        Ok(whole)
    }
}

/// Results of all nodes.
#[derive(Clone, Debug, Default)]
struct Sum {
    tally: Tally,
    /// Missed, and kept with stress off.
    because: u64,
    /// Kept, and missed with stress off.
    saved: u64,
    signals: u64,
    /// Signals of t2_process and t2_node, which stress holds back.
    of_sums: u64,
    info: u64,
    replans: u64,
    refused: u64,
    unanswered: u64,
    /// Until the last node is done.
    lasted_ns: u64,
    /// In which the job scheduler works.
    works_ns: u64,
    /// From the first signal to the plan that answers it, of each.
    responses_ns: Vec<u64>,
}

impl Sum {
    fn of(simulation: &Simulation, other: &Simulation, answer_ns: u64) -> Self {
        let replans = &simulation.replans;
        // Also those that came too late, when all had ended.
        let answers: u64 = simulation.cpus.iter().map(|cpu| cpu.answers).sum();
        let responses = replans.iter();
        let responses = responses.map(|replan| replan.came_ns - replan.failed_ns);
        Self {
            tally: Tally::of(simulation),
            because: kept_alone(other, simulation).count() as u64,
            saved: kept_alone(simulation, other).count() as u64,
            signals: count(simulation, EventKind::Late) + count(simulation, EventKind::Early),
            of_sums: of_sums(simulation),
            info: count(simulation, EventKind::Info),
            replans: replans.len() as u64,
            refused: replans.iter().filter(|it| it.refused.is_some()).count() as u64,
            unanswered: simulation.cpus.iter().map(|cpu| cpu.unanswered).sum(),
            lasted_ns: simulation.ended_ns(),
            // The last one may come when all is over.
            works_ns: (answers * answer_ns).min(simulation.ended_ns()),
            responses_ns: responses.collect(),
        }
    }

    fn add(&mut self, other: Self) {
        self.tally.add(&other.tally);
        self.because += other.because;
        self.saved += other.saved;
        self.signals += other.signals;
        self.of_sums += other.of_sums;
        self.info += other.info;
        self.replans += other.replans;
        self.refused += other.refused;
        self.unanswered += other.unanswered;
        self.lasted_ns += other.lasted_ns;
        self.works_ns += other.works_ns;
        self.responses_ns.extend(other.responses_ns);
    }
}

/// Signals that a process or the node is late.
fn of_sums(simulation: &Simulation) -> u64 {
    let late = simulation.events.iter().filter(|event| {
        event.kind == EventKind::Late as u16
            && [Cause::Process as u16, Cause::Node as u16].contains(&event.reason)
    });
    late.count() as u64
}

#[derive(Clone, Debug, Serialize)]
struct StressRow {
    jobs: Jobs,
    nodes: u32,
    /// Time that the job scheduler needs for an answer.
    answer_ns: u64,
    stress: Stress,
    #[serde(flatten)]
    tally: Tally,
    because: u64,
    saved: u64,
    signals: u64,
    of_sums: u64,
    info: u64,
    replans: u64,
    /// Answers that a node did not accept, since a process had ended meanwhile.
    refused: u64,
    unanswered: u64,
    /// Signals of all nodes together.
    signals_per_s: f64,
    replans_per_s: f64,
    /// The share of the time in which the job scheduler works.
    load_percent: f64,
    /// Time from a signal to the plan that answers it.
    response_mean_ns: u64,
    response_p99_ns: u64,
}

/// Jobs, nodes, place of the time for an answer, stress.
type Key = (Jobs, u32, usize, Stress);

/// Makes the study.
pub fn study(options: &Options<'_>) -> Result<impl Study, Error> {
    let sums = sums(options, |number| of_plan(options.seed.wrapping_add(number)), Sum::add)?;
    Ok(Rows::new(options, sums.into_iter().map(|(key, sum)| row(key, sum))))
}

fn of_plan(seed: u64) -> Result<Vec<(Key, Sum)>, Error> {
    let mut sums = Vec::new();
    for jobs in Jobs::ALL {
        for nodes in NODES {
            let plan = jobs.nodes(nodes, seed)?;
            for (place, answer_ns) in ANSWER_NS.into_iter().enumerate() {
                let runs = Stress::ALL.map(|stress| run(&plan, answer_ns, stress));
                let runs: Vec<_> = runs.into_iter().collect::<Result<_, _>>()?;
                for (stress, simulation) in Stress::ALL.into_iter().zip(&runs) {
                    let sum = Sum::of(simulation, &runs[0], answer_ns);
                    sums.push(((jobs, nodes, place, stress), sum));
                }
            }
        }
    }
    Ok(sums)
}

fn run(plan: &Plan, answer_ns: u64, stress: Stress) -> Result<Simulation, Error> {
    let options = pbs_sim::Options {
        config: stress.config(answer_ns),
        shared_answer_ns: Some(answer_ns),
        record_grants: false,
        ..pbs_sim::Options::default()
    };
    let simulation = simulate(plan, &options, &mut Stretch::default());
    simulation.map_err(|error| Error(error.to_string()))
}

fn row((jobs, nodes, place, stress): Key, mut sum: Sum) -> StressRow {
    let lasted_ns = sum.lasted_ns.max(1);
    let per_s = |count: u64| count as f64 * NS_PER_S / lasted_ns as f64;
    let responses = &mut sum.responses_ns;
    responses.sort_unstable();
    let p99 = responses.len().saturating_sub(1) * 99 / 100;
    let all_ns: u128 = responses.iter().map(|&ns| u128::from(ns)).sum();
    StressRow {
        jobs,
        nodes,
        answer_ns: ANSWER_NS[place],
        stress,
        tally: sum.tally,
        because: sum.because,
        saved: sum.saved,
        signals: sum.signals,
        of_sums: sum.of_sums,
        info: sum.info,
        replans: sum.replans,
        refused: sum.refused,
        unanswered: sum.unanswered,
        signals_per_s: per_s(sum.signals),
        replans_per_s: per_s(sum.replans),
        load_percent: 100.0 * sum.works_ns as f64 / lasted_ns as f64,
        response_mean_ns: (all_ns / responses.len().max(1) as u128) as u64,
        response_p99_ns: responses.get(p99).copied().unwrap_or(0),
    }
}

impl Study for Rows<StressRow> {
    fn text(&self, format: Format) -> String {
        let titles = [
            "Jobs",
            "Stress",
            "Nodes",
            "Answer (ms)",
            "Kept",
            "Of",
            "Share",
            "Because",
            "Saved",
            "Signals/s",
            "Of sums (%)",
            "Replans/s",
            "Load (%)",
            "Response (ms)",
            "99 of 100 (ms)",
        ];
        let mut table = Table::new(&titles, 2);
        for row in &self.rows {
            table.push(vec![
                row.jobs.name().into(),
                row.stress.name().into(),
                row.nodes.to_string(),
                (row.answer_ns / 1_000_000).to_string(),
                grouped(row.tally.kept),
                grouped(row.tally.processes),
                percent(row.tally.kept, row.tally.processes),
                grouped(row.because),
                grouped(row.saved),
                format!("{:.1}", row.signals_per_s),
                format!("{:.1}", 100.0 * row.of_sums as f64 / row.signals.max(1) as f64),
                format!("{:.1}", row.replans_per_s),
                format!("{:.1}", row.load_percent),
                ms(row.response_mean_ns),
                ms(row.response_p99_ns),
            ]);
        }
        table.print(format)
    }
}
