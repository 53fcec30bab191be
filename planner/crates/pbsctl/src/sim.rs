// SPDX-License-Identifier: GPL-2.0
//! The command that runs plans in virtual time.

use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;

use clap::{Args, ValueEnum};
use pbs_plan::{config_from_toml, Config, Plan};
use pbs_report::{
    columns, config_by_name, describe, grouped, EventView, Outcome, RecordedPlan, Recording, Source,
};
use pbs_sim::{
    Command, Counts, CpuOutcome, JobScheduler, NoAnswer, Options, ProcessOutcome, Resolution,
    Simulation, Stretch, TaskOutcome, Timing,
};
use serde::Serialize;

use crate::failure::{Failure, INCOMPLETE};
use crate::files;
use crate::output::{ms, Output};

const SIM_HELP: &str = "\
Examples:
  pbsctl sim plan.toml
  pbsctl sim simulation.log --scheduler stretch
  pbsctl sim plan.toml --config idle_policy=least_slack --config thresholds=t1,t2_task
  pbsctl --json sim plan.toml > recording.json

Each task retires its real_insns, or what is planned where the plan does not
give them. All processes are there from the beginning. Decisions are made by the
code that the kernel runs.

The deadline of a process is the planned end of its last slot plus its plan
buffer, as a planner reckons that thinks the node slower by
capacity_buffer_permille, and leaves out unallocated time.

With --scheduler \"command ./plan-anew\" that command is run with sh for every
question. It reads JSON (failures, processes, remaining_toml and more) and
writes a plan in TOML, or nothing if the one in force shall stay. The plan
comes into force reschedule_time_insns later.";

/// The resolutions by name.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum ResolutionName {
    /// The moment in which something is to happen
    Event,
    /// The nominal ticks alone, as in Leppert's simulation
    Tick,
}

#[derive(Args, Debug)]
#[command(after_help = SIM_HELP)]
pub(crate) struct SimOptions {
    /// The plan in TOML or in Leppert's grammar; - reads standard input
    file: PathBuf,

    /// Instructions that a CPU retires in a millisecond
    #[arg(
        long,
        value_name = "N",
        default_value_t = pbs_sim::DEFAULT_RATE_INSNS_PER_MS,
        value_parser = clap::value_parser!(u64).range(1..=u32::MAX.into())
    )]
    rate: u64,

    /// When the node looks at the count of instructions
    #[arg(long, value_enum, default_value = "event")]
    resolution: ResolutionName,

    /// Who answers prediction failures: none, stretch, or "command LINE"
    #[arg(long, value_name = "WHO", default_value = "none")]
    scheduler: SchedulerName,

    /// stretch: what is late gets so many thousandths of its planned length
    #[arg(long, value_name = "PERMILLE", default_value_t = Stretch::default().late_permille)]
    late: u64,

    /// stretch: what is early gets so many thousandths of its planned length
    #[arg(long, value_name = "PERMILLE", default_value_t = Stretch::default().early_permille)]
    early: u64,

    /// A number of the policy instead of that of the plan, by its name in
    /// [config]; thresholds are given as names with commas between
    #[arg(long, value_name = "KEY=VALUE")]
    config: Vec<String>,

    /// What a process still retires after the count at which the node was to
    /// look at it
    #[arg(long, value_name = "INSNS", default_value_t = 0)]
    timer_delay: u64,

    /// Time that passes when the node looks at a count or at the time
    #[arg(long, value_name = "NS", default_value_t = 0)]
    look: u64,

    /// Time that passes when another process gets the CPU
    #[arg(long, value_name = "NS", default_value_t = 0)]
    switch: u64,

    /// Stop after so many milliseconds of simulated time; normally after a
    /// hundred times what the plan takes
    #[arg(long, value_name = "MS")]
    limit: Option<u64>,

    /// Print the events before the tables
    #[arg(long)]
    events: bool,
}

/// Who answers prediction failures.
#[derive(Clone, Debug)]
enum SchedulerName {
    Nobody,
    Stretch,
    Command(String),
}

impl FromStr for SchedulerName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(' ') {
            None if text == "none" => Ok(Self::Nobody),
            None if text == "stretch" => Ok(Self::Stretch),
            Some(("command", line)) => Ok(Self::Command(line.trim().into())),
            _ => Err("write none, stretch, or \"command LINE\"".into()),
        }
    }
}

impl SimOptions {
    fn scheduler(&self) -> Box<dyn JobScheduler> {
        match &self.scheduler {
            SchedulerName::Nobody => Box::new(NoAnswer),
            SchedulerName::Stretch => Box::new(Stretch {
                late_permille: self.late,
                early_permille: self.early,
            }),
            SchedulerName::Command(line) => Box::new(Command::new(line)),
        }
    }

    fn options(&self, config: Config) -> Options {
        Options {
            rate_insns_per_ms: self.rate,
            config,
            resolution: match self.resolution {
                ResolutionName::Event => Resolution::Event,
                ResolutionName::Tick => Resolution::Tick,
            },
            timing: Timing {
                timer_delay_insns: self.timer_delay,
                look_ns: self.look,
                switch_ns: self.switch,
            },
            limit_ns: self.limit.map(|ms| ms.saturating_mul(1_000_000)),
            record_grants: true,
        }
    }

    /// `base` with the numbers of the command line.
    fn config(&self, base: Config) -> Result<Config, Failure> {
        let failed = |words: &str| Failure::Failed(format!("--config: {words}"));
        let mut toml = String::new();
        for item in &self.config {
            let (key, value) = item
                .split_once('=')
                .ok_or_else(|| failed(&format!("\"{item}\" has no \"=\"; write KEY=VALUE")))?;
            let value = match key {
                "thresholds" => {
                    let names = value.split(',').filter(|name| !name.is_empty());
                    let names: Vec<_> = names.map(|name| format!("{name:?}")).collect();
                    format!("[{}]", names.join(", "))
                }
                "idle_policy" => format!("{value:?}"),
                _ => value.into(),
            };
            toml.push_str(&format!("{key} = {value}\n"));
        }
        let config = config_from_toml(&toml, &base).map_err(|problems| {
            let words: Vec<_> = problems
                .into_iter()
                .map(|problem| problem.message)
                .collect();
            failed(&words.join("; "))
        })?;
        config
            .check()
            .map_err(|refusal| failed(&refusal.to_string()))?;
        Ok(config)
    }
}

pub(crate) fn sim(out: Output, options: &SimOptions) -> Result<ExitCode, Failure> {
    let mut plan = files::read_any_plan(&options.file)?;
    let node_config = options.config(Config::DEFAULT)?;
    if let Some(config) = &mut plan.config {
        *config = options.config(*config)?;
    }
    let simulated = options.options(node_config);
    let simulation = pbs_sim::simulate(&plan, &simulated, &mut *options.scheduler())
        .map_err(|error| Failure::Failed(format!("{}: {error}", files::name(&options.file))))?;
    out.print(&Recorded::new(&plan, &simulated, &simulation), || {
        text(&plan, &simulation, options.events)
    })?;
    Ok(if simulation.ended() {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(INCOMPLETE)
    })
}

/// A recording with what only a simulation knows.
#[derive(Serialize)]
struct Recorded<'a> {
    #[serde(flatten)]
    recording: Recording,
    counts: Counts,
    tasks: &'a [TaskOutcome],
    processes: &'a [ProcessOutcome],
    cpus: &'a [CpuOutcome],
    replans: Vec<RecordedReplan<'a>>,
}

#[derive(Serialize)]
struct RecordedReplan<'a> {
    cpu: u32,
    plan_id: u64,
    dealt_seq: u64,
    asked_ns: u64,
    came_ns: u64,
    refused: Option<&'a str>,
}

impl<'a> Recorded<'a> {
    fn new(plan: &Plan, options: &Options, simulation: &'a Simulation) -> Self {
        let taken = simulation.replans.iter();
        let taken = taken.filter(|replan| replan.refused.is_none());
        let plans = std::iter::once(plan).chain(taken.map(|replan| &replan.plan));
        Self {
            recording: Recording {
                version: Recording::VERSION,
                source: Source::Simulation,
                kernel: format!("pbs-sim {}", env!("CARGO_PKG_VERSION")),
                tier: match options.resolution {
                    Resolution::Event => "event".into(),
                    Resolution::Tick => "tick".into(),
                },
                rate_insns_per_ms: options.rate_insns_per_ms,
                outcome: if simulation.ended() {
                    Outcome::Ended
                } else {
                    Outcome::Interrupted
                },
                config: config_by_name(&options.config),
                plans: plans.map(RecordedPlan::from).collect(),
                events: simulation.events.iter().map(EventView::from).collect(),
            },
            counts: simulation.counts(),
            tasks: &simulation.tasks,
            processes: &simulation.processes,
            cpus: &simulation.cpus,
            replans: simulation
                .replans
                .iter()
                .map(|replan| RecordedReplan {
                    cpu: replan.cpu,
                    plan_id: replan.plan.plan_id,
                    dealt_seq: replan.plan.dealt_seq,
                    asked_ns: replan.asked_ns,
                    came_ns: replan.came_ns,
                    refused: replan.refused.as_deref(),
                })
                .collect(),
        }
    }
}

fn text(plan: &Plan, simulation: &Simulation, events: bool) -> String {
    let mut out = String::new();
    if events {
        for event in &simulation.events {
            out.push_str(&describe(event));
            out.push('\n');
        }
        out.push('\n');
    }
    out.push_str(&task_table(plan, simulation));
    out.push('\n');
    out.push_str(&process_table(simulation));
    out.push('\n');
    out.push_str(&count_table(&simulation.counts()));
    for replan in &simulation.replans {
        let said = match &replan.refused {
            Some(words) => format!("was refused: {words}"),
            None => "came into force".into(),
        };
        out.push_str(&format!(
            "{} ms: plan {} for CPU {} {said}\n",
            ms(replan.came_ns),
            replan.plan.plan_id,
            replan.cpu
        ));
    }
    for cpu in &simulation.cpus {
        let end = if cpu.ended {
            "all processes ended after"
        } else {
            "NOT all processes ended; the simulation stopped after"
        };
        out.push_str(&format!(
            "CPU {}: {end} {} ms: running {}, lost {}, idle {}, unallocated {}\n",
            cpu.cpu,
            ms(cpu.ended_ns),
            ms(cpu.running_ns),
            ms(cpu.lost_ns),
            ms(cpu.idle_ns),
            ms(cpu.unallocated_ns)
        ));
    }
    out
}

fn label(plan: &Plan, id: u32) -> String {
    plan.process(id)
        .map_or_else(|| id.to_string(), pbs_plan::Process::label)
}

fn task_table(plan: &Plan, simulation: &Simulation) -> String {
    let titles = [
        "PROCESS",
        "TASK",
        "CPU",
        "PLANNED",
        "REAL",
        "RETIRED",
        "PREEMPTED",
        "ENDED (ms)",
    ];
    let mut rows = vec![titles.map(String::from).to_vec()];
    for task in &simulation.tasks {
        rows.push(vec![
            label(plan, task.process),
            task.task.to_string(),
            task.cpu.to_string(),
            grouped(task.planned_insns),
            grouped(task.real_insns),
            grouped(task.retired_insns),
            task.preemptions.to_string(),
            task.ended_ns.map_or_else(|| "not ended".into(), ms),
        ]);
    }
    columns(&rows, 2)
}

fn process_table(simulation: &Simulation) -> String {
    let titles = [
        "PROCESS",
        "DEADLINE",
        "CPU",
        "ENDED (ms)",
        "DEADLINE (ms)",
        "LEFT (ms)",
    ];
    let mut rows = vec![titles.map(String::from).to_vec()];
    for process in &simulation.processes {
        let id = process.id;
        let left = process.ended_ns.map(|ended_ns| {
            let sign = if process.kept { "" } else { "-" };
            format!("{sign}{}", ms(process.deadline_ns.abs_diff(ended_ns)))
        });
        rows.push(vec![
            process.name.clone().unwrap_or_else(|| id.to_string()),
            if process.kept { "kept" } else { "MISSED" }.into(),
            process.cpu.to_string(),
            process.ended_ns.map_or_else(|| "not ended".into(), ms),
            ms(process.deadline_ns),
            left.unwrap_or_default(),
        ]);
    }
    columns(&rows, 2)
}

fn count_table(counts: &Counts) -> String {
    let mut rows = Vec::new();
    for (&kind, &count) in &counts.kinds {
        let causes = counts.signals.get(kind).into_iter().flatten();
        let causes: Vec<_> = causes
            .map(|(cause, count)| format!("{cause} {}", grouped(*count)))
            .collect();
        rows.push(vec![kind.into(), causes.join(", "), grouped(count)]);
    }
    columns(&rows, 2)
}
