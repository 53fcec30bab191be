// SPDX-License-Identifier: GPL-2.0
//! Benefit of a planner that considers memory.
//!
//! The thesis on memory (Glaß 2024) expects that more jobs keep their deadlines, and has no
//! figures.

use pbs_gen::{generate, Parameters, Span};
use pbs_job::{job_from_toml, Core, Job, Machine, Node, TICK_NS};
use pbs_plan::{Config, Dispatch, Plan, Process};
use pbs_planner::plan_building::{class_plans, Entry, ProcessIds, Settings};
use pbs_planner::{admit, Balancing, Capacity, Request, RunId, Store, Validation};
use pbs_sim::{simulate, MemoryOver, NoAnswer, Simulation, DEFAULT_SWAP_SLOWDOWN};
use pbs_text::{append, grouped, Table};
use serde::Serialize;

use crate::node::{percent, sums, Error, Format, Options, Rows};
use crate::Study;

const CORES: usize = 4;
const RATE_INSNS_PER_S: u64 = 1_000_000_000;

/// Jobs that come at once, and the processes of each: one forks and joins the others.
const JOBS: usize = 8;
const PROCESSES: usize = 3;

/// The memory of the node, of what all processes together are planned to take.
const MEMORY_PERCENT: [u64; 7] = [50, 30, 25, 20, 16, 13, 10];

/// The standard deviations of lengths and of peaks.
const TASK_SIGMA_PERMILLE: u64 = 100;
const MEMORY_SIGMA_PERMILLE: u64 = 50;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
enum Planner {
    /// A planner that ignores memory.
    #[serde(rename = "blind")]
    Blind,
    /// A planner that reserves the planned peaks.
    #[serde(rename = "aware")]
    Aware,
    /// A planner that reserves the planned peaks. A process that gets the memory of others waits
    /// for them.
    #[serde(rename = "aware, in order")]
    InOrder,
    /// A planner that reserves a tenth more: two of the standard deviations of peaks.
    #[serde(rename = "aware, +10 %")]
    Reserve,
    /// A planner with the waiting and the reserve.
    #[serde(rename = "aware, both")]
    Both,
    /// Both, and processes run by deadline.
    #[serde(rename = "aware, by deadline")]
    ByDeadline,
}

impl Planner {
    const ALL: [Self; 6] =
        [Self::Blind, Self::Aware, Self::InOrder, Self::Reserve, Self::Both, Self::ByDeadline];

    fn name(self) -> &'static str {
        match self {
            Self::Blind => "blind",
            Self::Aware => "aware",
            Self::InOrder => "aware, in order",
            Self::Reserve => "aware, +10 %",
            Self::Both => "aware, both",
            Self::ByDeadline => "aware, by deadline",
        }
    }

    fn reserved_bytes(self, planned_bytes: u64) -> u64 {
        match self {
            Self::Blind | Self::Aware | Self::InOrder => planned_bytes,
            Self::Reserve | Self::Both | Self::ByDeadline => planned_bytes + planned_bytes / 10,
        }
    }

    fn is_in_order(self) -> bool {
        matches!(self, Self::InOrder | Self::Both | Self::ByDeadline)
    }

    fn config(self) -> Config {
        let dispatch = match self {
            Self::ByDeadline => Dispatch::Deadline,
            _ => Dispatch::Thesis,
        };
        Config { dispatch: dispatch as u64, ..Config::DEFAULT }
    }

    fn balancing(self) -> Balancing {
        match self {
            Self::Blind => Balancing::Blind,
            _ => Balancing::Dynamic,
        }
    }
}

/// Results of all jobs.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Cell {
    jobs: u64,
    admitted: u64,
    /// Admitted jobs that met their deadlines on a node that kills.
    kept_kill: u64,
    /// Admitted jobs that met their deadlines on a node that swaps.
    kept_swap: u64,
    /// Processes that were killed.
    killed: u64,
    /// Plans with which the node swapped.
    swapped: u64,
}

impl Cell {
    fn add(&mut self, other: Self) {
        self.jobs += other.jobs;
        self.admitted += other.admitted;
        self.kept_kill += other.kept_kill;
        self.kept_swap += other.kept_swap;
        self.killed += other.killed;
        self.swapped += other.swapped;
    }
}

/// The number of the level of memory, and the planner.
type Key = (usize, Planner);

#[derive(Clone, Copy, Debug, Serialize)]
struct MemoryRow {
    memory_percent: u64,
    planner: Planner,
    #[serde(flatten)]
    cell: Cell,
}

/// Makes the study.
pub fn study(options: &Options<'_>) -> Result<impl Study, Error> {
    let cells = sums(options, |number| of_plan(options.seed, number), Cell::add)?;
    let rows = cells.into_iter().map(|((level, planner), cell)| MemoryRow {
        memory_percent: MEMORY_PERCENT[level],
        planner,
        cell,
    });
    Ok(Rows::new(options, rows))
}

fn of_plan(seed: u64, number: u64) -> Result<Vec<(Key, Cell)>, Error> {
    let real = processes(seed, number)?;
    let all_bytes: u64 = real.iter().map(|process| process.memory_bytes).sum();
    let mut cells = Vec::new();
    for (level, percent) in MEMORY_PERCENT.into_iter().enumerate() {
        let memory_bytes = all_bytes * percent / 100;
        for planner in Planner::ALL {
            let planned = Planned::new(&real, planner, memory_bytes)?;
            cells.push(((level, planner), planned.cell()?));
        }
    }
    Ok(cells)
}

/// Processes of all jobs: 3 to 8 tasks of 10 to 200 ms, peaks of 16 to 256 MiB.
fn processes(seed: u64, number: u64) -> Result<Vec<Process>, Error> {
    let parameters = Parameters {
        processes: (JOBS * PROCESSES) as u64,
        tasks: Span::new(3, 8),
        task_insns: Span::new(10_000_000, 200_000_000),
        idle_permille: 0,
        task_sigma_permille: TASK_SIGMA_PERMILLE,
        memory_bytes: Span::new(16 << 20, 256 << 20),
        memory_sigma_permille: MEMORY_SIGMA_PERMILLE,
        seed: seed.wrapping_add(number),
        plan_id: number + 1,
        ..Parameters::default()
    };
    let plan = generate(&parameters).map_err(|error| Error(error.to_string()))?;
    Ok(plan.processes)
}

/// The jobs that a planner has admitted to a node, and their plan with what really
/// happens.
struct Planned {
    jobs: Vec<Job>,
    /// `None`: it has admitted none.
    plan: Option<Plan>,
    ids: ProcessIds,
    admitted: Vec<RunId>,
}

impl Planned {
    fn new(real: &[Process], planner: Planner, memory_bytes: u64) -> Result<Self, Error> {
        let machine = machine(memory_bytes);
        let capacity = Capacity::default();
        let mut store = Store::with_capacity(machine, planner.balancing(), capacity);
        let jobs = jobs(real, planner, store.sites()[0].rate_insns_per_s)?;
        let mut admitted = Vec::new();
        for (run, job) in (0..).map(RunId).zip(&jobs) {
            let request = Request::new(run, job);
            let (validation, options) = (Validation::default(), pbs_planner::Options::default());
            if admit(&mut store, &request, &validation, &options).is_ok() {
                admitted.push(run);
            }
        }
        let entries = admitted.iter().map(|&run| Entry {
            run,
            job: &jobs[run.0 as usize],
            progress: &[],
            deadline_ns: jobs[run.0 as usize].deadline_ns,
        });
        let entries: Vec<_> = entries.collect();
        let mut ids = ProcessIds::default();
        let settings = Settings {
            memory_order: planner.is_in_order(),
            config: Some(planner.config()),
            ..Settings::default()
        };
        let plans = class_plans(&store, &entries, &mut ids, &settings);
        let plans = plans.map_err(|problems| {
            let words: Vec<_> = problems.into_iter().map(|it| it.message).collect();
            Error(words.join("; "))
        })?;
        let mut plan = plans.into_iter().next().map(|node| node.plan);
        let planned = plan.iter_mut().flat_map(|plan| &mut plan.processes);
        for process in planned {
            let Some((run, index)) = ids.process(process.id) else {
                continue;
            };
            let real = &real[run.0 as usize * PROCESSES + index];
            process.real_memory_bytes = real.real_memory_bytes;
            // Of the job's tasks those that fork and join have no slots.
            for (task, real) in process.tasks.iter_mut().zip(&real.tasks) {
                task.real_insns = real.real_insns;
            }
        }
        Ok(Self { jobs, plan, ids, admitted })
    }

    fn cell(&self) -> Result<Cell, Error> {
        let mut cell = Cell {
            jobs: self.jobs.len() as u64,
            admitted: self.admitted.len() as u64,
            ..Cell::default()
        };
        let Some(plan) = &self.plan else {
            return Ok(cell);
        };
        let slowdown = DEFAULT_SWAP_SLOWDOWN;
        let kill = run(plan, MemoryOver::Kill)?;
        let swap = run(plan, MemoryOver::Swap { slowdown })?;
        cell.kept_kill = self.kept(&kill);
        cell.kept_swap = self.kept(&swap);
        cell.killed = kill.memory.killed;
        cell.swapped = u64::from(swap.memory.peak_bytes > plan.memory_bytes);
        Ok(cell)
    }

    /// Number of jobs that met their deadlines.
    fn kept(&self, simulation: &Simulation) -> u64 {
        let runs = self.admitted.iter();
        runs.filter(|&&run| self.is_kept(run, simulation)).count() as u64
    }

    /// Whether all processes of the run have ended by its deadline.
    fn is_kept(&self, run: RunId, simulation: &Simulation) -> bool {
        let deadline_ns = self.jobs[run.0 as usize].deadline_ns;
        let of_run = simulation.processes.iter().filter(|process| {
            let of = self.ids.process(process.id);
            of.is_some_and(|(of, _)| of == run)
        });
        let mut ends = of_run.map(|process| process.ended_ns);
        ends.all(|end_ns| end_ns.is_some_and(|end_ns| end_ns <= deadline_ns))
    }
}

fn run(plan: &Plan, memory_over: MemoryOver) -> Result<Simulation, Error> {
    let options = pbs_sim::Options {
        rate_insns_per_ms: RATE_INSNS_PER_S / 1000,
        memory_over,
        ..pbs_sim::Options::default()
    };
    let simulation = simulate(plan, &options, &mut NoAnswer);
    simulation.map_err(|error| Error(error.to_string()))
}

fn machine(memory_bytes: u64) -> Machine {
    let core = |number| Core {
        name: format!("c{number}"),
        cpu: Some(number),
        rate_insns_per_s: RATE_INSNS_PER_S,
    };
    let node = Node {
        name: "n0".into(),
        memory_bytes,
        cores: (0..CORES as u32).map(core).collect(),
        line: None,
    };
    Machine { tick_ns: TICK_NS, nodes: vec![node], ..Machine::default() }
}

/// The jobs as they are asked for. With all cores busy all of them together would take
/// one unit of time; their deadlines are from one such unit to two.
fn jobs(real: &[Process], planner: Planner, rate_insns_per_s: u64) -> Result<Vec<Job>, Error> {
    let tasks = real.iter().flat_map(|process| &process.tasks);
    let insns: u64 = tasks.map(|task| task.planned_insns).sum();
    let all_ns = insns / CORES as u64 * 1_000_000_000 / rate_insns_per_s;
    let of_jobs = real.chunks(PROCESSES).enumerate();
    let jobs = of_jobs.map(|(number, processes)| {
        let deadline_ns = all_ns + all_ns * number as u64 / (JOBS as u64 - 1);
        let text = job_text(number, processes, planner, deadline_ns);
        job_from_toml(&text).map_err(|problems| {
            let words: Vec<_> = problems.into_iter().map(|it| it.message).collect();
            Error(words.join("; "))
        })
    });
    jobs.collect()
}

fn job_text(number: usize, processes: &[Process], planner: Planner, deadline_ns: u64) -> String {
    let mut text = format!("name = \"job-{number}\"\ndeadline_ns = {deadline_ns}\n");
    for (id, process) in processes.iter().enumerate() {
        let bytes = planner.reserved_bytes(process.memory_bytes);
        append!(text, "[[process]]\nid = {id}\nmemory_bytes = {bytes}\ntasks = [");
        let children = 1..if id == 0 { processes.len() } else { 1 };
        for child in children.clone() {
            append!(text, "{{ action = \"fork\", child = {child} }}, ");
        }
        for task in &process.tasks {
            append!(text, "{}, ", task.planned_insns);
        }
        for child in children {
            append!(text, "{{ action = \"join\", child = {child} }}, ");
        }
        text.push_str("]\n");
    }
    text
}

impl Study for Rows<MemoryRow> {
    fn text(&self, format: Format) -> String {
        let titles = [
            "Memory",
            "Planner",
            "Jobs",
            "Admitted",
            "Kept, kill",
            "Share",
            "Killed",
            "Kept, swap",
            "Share",
            "Swapped",
        ];
        let mut table = Table::new(&titles, 2);
        for row in &self.rows {
            let cell = &row.cell;
            table.push(vec![
                format!("{} %", row.memory_percent),
                row.planner.name().into(),
                grouped(cell.jobs),
                grouped(cell.admitted),
                grouped(cell.kept_kill),
                percent(cell.kept_kill, cell.admitted),
                grouped(cell.killed),
                grouped(cell.kept_swap),
                percent(cell.kept_swap, cell.admitted),
                grouped(cell.swapped),
            ]);
        }
        table.print(format)
    }
}
