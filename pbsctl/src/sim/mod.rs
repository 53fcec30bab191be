// SPDX-License-Identifier: GPL-2.0
//! The command that runs plans in virtual time.

mod batch;
pub(crate) mod held;
mod recorded;
mod slowdowns;
mod text;
mod ticks;

use std::collections::HashSet;
use std::io::{stderr, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use pbs_plan::{Config, Plan};
use pbs_sim::{
    Command, JobScheduler, MemoryOver, NoAnswer, Options, Progress, Resolution, Simulation,
    Stretch, Timing,
};
use pbs_text::span;

use crate::complete;
use crate::config_option::{config_changes, with_numbers};
use crate::failure::{Failure, INCOMPLETE};
use crate::files;
use crate::given::{Conditional, Given};
use crate::output::{write_err, Output};
use crate::quantities;
use recorded::Recorded;
use slowdowns::SlowdownsOptions;

const SIM_HELP: &str = "\
Examples:
  pbsctl sim plan.toml
  pbsctl sim simulation.log --scheduler stretch
  pbsctl sim plan.toml --config idle_policy=least_slack --config thresholds=t1,t2_task
  pbsctl sim plan.toml --config t1_spares_last_slot=false
  pbsctl sim plan.toml --change 50ms:idle_policy=pieces --change 2s:thresholds=all
  pbsctl sim plan.toml --slowdowns slowdowns.toml
  pbsctl sim plan.toml --ticks ticks.csv   Write thresholds, sums and counts at each tick
  pbsctl --json sim plan.toml > recording.json
  pbsctl sim plan.toml --record sim.inputs && pbsctl node replay sim.inputs
  pbsctl sim --batch < cases > results      one plan a line

Each task retires its real_insns, or its planned length if the plan has none. Each process uses
its real_memory_bytes, or its planned memory_bytes, from its first instruction to its end. All
processes are present from the beginning. The code of the kernel makes the decisions.

The deadline of a process is that of the plan. Without one, it is the planned end of its last slot
plus its plan buffer, on a node that is slower by capacity_buffer_permille and has its unallocated
time.

By default, t1 does not end the last slot of a process, after which the process would only get idle
slots. With t1_spares_last_slot = false it does, as in the thesis.

--scheduler stretch is the sketch of Leppert 2021, 4.4.2 (listing 6), and not a good planner. One
failure makes all remaining tasks of its process longer or shorter, and tasks that were shortened
because one was early are late then. It may miss deadlines that are met without it; --early 1000
leaves early tasks unchanged.

With --scheduler \"command ./plan-anew\", sh runs that command for every question. It reads JSON
(failures, processes, the remaining plan and more) and writes a plan in TOML or JSON, or nothing to
keep the present plan. The plan comes into force reschedule_time_ns later.

--batch simulates many plans without a process for each. It reads an object a line, with the plan,
which is an object or text, and with options of this command:
  {\"plan\": {\"process\": [...], \"cpu\": [...]}, \"options\": [\"--scheduler\", \"stretch\"]}
It prints a line for each, in their order and as soon as it is simulated: the output of --json, or
pbs.failure.";

/// The resolutions by name.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum ResolutionName {
    /// At the exact instruction or time of each decision
    Event,
    /// Only at the nominal ticks, as in Leppert's simulation
    Tick,
}

/// Behaviour of a node whose memory is exceeded, by name.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum MemoryOverName {
    /// Only signal it: the node has more memory than the plan may use
    Tell,
    /// Kill a process that begins when there is too little memory left
    Kill,
    /// Swap: all processes are slower meanwhile (--swap-slowdown)
    Swap,
}

/// Arguments that `--batch` takes from its lines.
const OPTIONS_OF_ONE: [&str; 24] = [
    "file",
    "rate",
    "resolution",
    "scheduler",
    "late",
    "early",
    "max_answers",
    "shared_answer",
    "config",
    "change",
    "timer_delay",
    "look",
    "switch",
    "memory_over",
    "swap_slowdown",
    "slowdowns",
    "shared",
    "limit",
    "until",
    "ticks",
    "record",
    "record_from",
    "events",
    "tasks",
];

#[derive(Args, Debug)]
#[command(after_help = SIM_HELP)]
pub(crate) struct SimOptions {
    /// Plan in TOML, JSON or Leppert's grammar; - reads standard input
    #[arg(required_unless_present = "batch")]
    file: Option<PathBuf>,

    /// Instructions that a CPU retires in a millisecond, if the plan does not have it
    #[arg(
        long,
        value_name = "N",
        default_value_t = pbs_sim::DEFAULT_RATE_INSNS_PER_MS,
        value_parser = quantities::rate
    )]
    rate: u64,

    /// Times at which the node checks the count of instructions
    #[arg(long, value_enum, default_value = "event")]
    resolution: ResolutionName,

    /// Planner that answers prediction failures: none, stretch, or "command LINE"
    #[arg(long, value_name = "WHO", default_value = "none")]
    scheduler: SchedulerName,

    /// stretch: new length of late tasks, in thousandths of the planned one, at least 1000
    /// [default: 1200]
    #[arg(long, value_name = "PERMILLE", value_parser = late)]
    late: Option<u64>,

    /// stretch: new length of early tasks, in thousandths of the planned one, at most 1000, which
    /// leaves it unchanged [default: 800]
    #[arg(long, value_name = "PERMILLE", value_parser = early)]
    early: Option<u64>,

    /// Most answers that are requested for each CPU
    #[arg(long, value_name = "N", default_value_t = pbs_sim::DEFAULT_MAX_ANSWERS)]
    max_answers: u64,

    /// Let all CPUs share one planner, which answers one question after the other, each in this
    /// time instead of reschedule_time_ns
    #[arg(long, value_name = "NS", value_parser = quantities::ns)]
    shared_answer: Option<u64>,

    /// Value of the policy instead of that of the plan, by its name in [config], with or without a
    /// unit (nominal_tick_ns=4ms). thresholds takes names with commas, none or all
    #[arg(long, value_name = "KEY=VALUE", add = complete::config_keys())]
    config: Vec<String>,

    /// Change of a value of the policy while the plan is in force, at a time in milliseconds or with
    /// a unit (50ms:idle_policy=pieces), as pbsctl node configure changes it
    #[arg(long, value_name = "TIME:KEY=VALUE")]
    change: Vec<String>,

    /// Instructions that a process still retires after the count at which the node should check it
    #[arg(long, value_name = "INSNS", default_value_t = 0, value_parser = quantities::insns)]
    timer_delay: u64,

    /// Time of each check of a count or of the clock
    #[arg(long, value_name = "NS", default_value_t = 0, value_parser = quantities::ns)]
    look: u64,

    /// Time of each switch to another process
    #[arg(long, value_name = "NS", default_value_t = 0, value_parser = quantities::ns)]
    switch: u64,

    /// Reaction while more memory is in use than the plan may use (memory_bytes)
    #[arg(long, value_enum, value_name = "WHAT", default_value = "tell")]
    memory_over: MemoryOverName,

    /// swap: factor by which an instruction on swapped memory is slower [default: 10]
    #[arg(long, value_name = "TIMES", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    swap_slowdown: Option<u64>,

    #[command(flatten)]
    slowdowns: SlowdownsOptions,

    /// Stop after this much simulated time, in milliseconds or with a unit, such as 2s; by default
    /// a hundred times the length of the plan
    #[arg(long, value_name = "MS", value_parser = quantities::ms)]
    limit: Option<u64>,

    /// Stop after this many nominal ticks, and print the state of each node and its processes
    #[arg(long, value_name = "TICK", conflicts_with = "limit")]
    until: Option<u64>,

    /// Write the state of each node and its processes at each nominal tick to FILE: as JSON if its
    /// name ends in .json, otherwise as CSV
    #[arg(long, value_name = "FILE", value_parser = ticks::file())]
    ticks: Option<PathBuf>,

    /// Write all inputs of the policy to FILE, for pbsctl node replay
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,

    /// Record from this simulated time on, in milliseconds or with a unit, such as 780ms: the
    /// recording begins with a snapshot of each node
    #[arg(long, value_name = "MS", requires = "record", value_parser = quantities::ms)]
    record_from: Option<u64>,

    /// Print the events before the tables
    #[arg(long)]
    events: bool,

    /// Print the table of tasks even if there are more than 40
    #[arg(long)]
    tasks: bool,

    /// Simulate the plan of each line of standard input, and print a line of JSON for each
    #[arg(long, conflicts_with_all = OPTIONS_OF_ONE)]
    batch: bool,
}

fn late(text: &str) -> Result<u64, String> {
    match quantities::permille(text) {
        Ok(permille) if permille >= 1000 => Ok(permille),
        _ => Err("late tasks cannot become shorter; write thousandths from 1000 on, such as 1200 \
                  for a length of 120 %"
            .into()),
    }
}

fn early(text: &str) -> Result<u64, String> {
    match quantities::permille(text) {
        Ok(permille) if permille <= 1000 => Ok(permille),
        _ => {
            Err("early tasks cannot become longer; write thousandths up to 1000, such as 800 for \
                  a length of 80 %"
                .into())
        }
    }
}

/// Scheduler that answers prediction failures.
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
            Some(("command", line)) if line.trim().is_empty() => Err("the command line is empty; \
                 write it after the word command, such as \"command ./plan-anew\""
                .into()),
            Some(("command", line)) => Ok(Self::Command(line.trim().into())),
            _ => Err("write none, stretch, or \"command LINE\"".into()),
        }
    }
}

impl SimOptions {
    fn scheduler(&self) -> Result<Box<dyn JobScheduler>, Failure> {
        let factors = [("--late", self.late), ("--early", self.early)];
        let factor = factors.into_iter().find(|(_, factor)| factor.is_some());
        if let (Some((option, _)), false) = (factor, self.is_stretch()) {
            return Err(Failure::Usage(format!(
                "{option} is only for --scheduler stretch; add that, or leave {option} out"
            )));
        }
        Ok(match &self.scheduler {
            SchedulerName::Nobody => Box::new(NoAnswer),
            SchedulerName::Stretch => {
                let default = Stretch::default();
                Box::new(Stretch {
                    late_permille: self.late.unwrap_or(default.late_permille),
                    early_permille: self.early.unwrap_or(default.early_permille),
                })
            }
            SchedulerName::Command(line) => Box::new(Command::new(line)),
        })
    }

    fn memory_over(&self) -> Result<MemoryOver, Failure> {
        match (self.memory_over, self.swap_slowdown) {
            (MemoryOverName::Swap, slowdown) => Ok(MemoryOver::Swap {
                slowdown: slowdown.unwrap_or(pbs_sim::DEFAULT_SWAP_SLOWDOWN),
            }),
            (_, Some(_)) => Err(Failure::Usage(
                "--swap-slowdown is only for --memory-over swap; add that, or leave it out".into(),
            )),
            (MemoryOverName::Tell, None) => Ok(MemoryOver::Tell),
            (MemoryOverName::Kill, None) => Ok(MemoryOver::Kill),
        }
    }

    fn is_stretch(&self) -> bool {
        matches!(self.scheduler, SchedulerName::Stretch)
    }

    fn options(&self, config: Config, plan: &Plan) -> Result<Options, Failure> {
        let tick_ns = plan.config.unwrap_or(config).nominal_tick_ns;
        Ok(Options {
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
            memory_over: self.memory_over()?,
            interference: self.slowdowns.interference(plan)?,
            limit_ns: match self.until {
                Some(ticks) => Some(ticks.saturating_mul(tick_ns)),
                None => self.limit,
            },
            note_every_ns: self.ticks.as_ref().map(|_| tick_ns),
            changes: config_changes(&self.change, plan.config.unwrap_or(config))?,
            max_answers: self.max_answers,
            shared_answer_ns: self.shared_answer,
            asleep_at_start: false,
            linux_is_idle: true,
            record_grants: true,
            record_inputs: self.record.is_some(),
            record_from_ns: self.record_from.unwrap_or(0),
        })
    }
}

pub(crate) fn sim(out: Output, options: &Given<SimOptions>) -> Result<ExitCode, Failure> {
    let Some(file) = &options.file else {
        return batch::batch(out);
    };
    files::refuse_same(&[
        ("--ticks", options.ticks.as_deref()),
        ("--record", options.record.as_deref()),
    ])?;
    let plan = files::read_any_plan(file)?;
    let mut watch = ProgressLine::new();
    let simulated = simulated(options, plan, &files::name(file), &mut |progress| {
        watch.tell(progress);
    });
    watch.end();
    let Simulated { plan, options: of, simulation } = simulated?;
    let recorded = Recorded::new(&plan, &of, &simulation);
    let held = options.until.is_some();
    out.print(&if held { recorded.with_held(&simulation) } else { recorded }, || {
        let mut printed = text::text(&plan, &simulation, options.events, options.tasks);
        if held {
            let tick_ns = plan.config.unwrap_or(of.config).nominal_tick_ns;
            printed.push_str(&held::text(&simulation, tick_ns));
        }
        printed
    })?;
    // Stopping before the end is what --until asks for.
    Ok(if held || simulation.ended() { ExitCode::SUCCESS } else { ExitCode::from(INCOMPLETE) })
}

/// A simulation with its plan, in which the configuration of the command line is set.
struct Simulated {
    plan: Plan,
    options: Options,
    simulation: Simulation,
}

/// Simulates a plan, and records the inputs of the policy where that is requested.
fn simulated(
    options: &Given<SimOptions>,
    mut plan: Plan,
    name: &str,
    watch: &mut dyn FnMut(Progress),
) -> Result<Simulated, Failure> {
    // Whoever names all schedulers in turn may name none among them.
    let is_read = !matches!(options.scheduler, SchedulerName::Nobody) || options.has("scheduler");
    let needs = "--scheduler stretch, or a command";
    options.refuse_unread(&[
        Conditional { field: "max_answers", is_read, needs },
        Conditional { field: "shared_answer", is_read, needs },
    ])?;
    let mut scheduler = options.scheduler()?;
    let node_config = with_numbers(&options.config, Config::DEFAULT)?;
    if let Some(config) = &mut plan.config {
        *config = with_numbers(&options.config, *config)?;
    }
    let of = options.options(node_config, &plan)?;
    let simulation = pbs_sim::simulate_watched(&plan, &of, &mut *scheduler, watch)
        .map_err(|error| Failure::Failed(format!("{name}: {error}")))?;
    warn_of_equal_ids(plan.plan_id, &simulation);
    if let (Some(from_ns), []) = (options.record_from, &simulation.recorded[..]) {
        return Err(Failure::Usage(format!(
            "--record-from: the simulation ends after {}, before {}; write an earlier time",
            pbs_text::span(simulation.ended_ns()),
            pbs_text::span(from_ns)
        )));
    }
    // Before its end, --until and --limit stop it where they are told to.
    let is_late = |at_ns: u64| simulation.ended() && at_ns > simulation.ended_ns();
    if let Some(change) = of.changes.iter().find(|of| is_late(of.at_ns)) {
        return Err(Failure::Usage(format!(
            "--change: the simulation ends after {}, before {}; write an earlier time",
            span(simulation.ended_ns()),
            span(change.at_ns)
        )));
    }
    if let Some(file) = &options.record {
        let failed = |error: std::io::Error| Failure::file(file, &error);
        let to = std::fs::File::create(file).map_err(failed)?;
        let to = std::io::BufWriter::new(to);
        pbs_record::write_simulated(&simulation, to).map_err(failed)?;
    }
    if let Some(file) = &options.ticks {
        let tick_ns = plan.config.unwrap_or(of.config).nominal_tick_ns;
        files::write(file, &ticks::table(file, &simulation.ticks, tick_ns))?;
    }
    Ok(Simulated { plan, options: of, simulation })
}

/// Events tell plans apart by their numbers alone.
fn warn_of_equal_ids(first: u64, simulation: &Simulation) {
    let mut seen: HashSet<(u32, u64)> = HashSet::new();
    seen.extend(simulation.cpus.iter().map(|cpu| (cpu.cpu, first)));
    let mut taken = simulation.replans.iter();
    let again = taken.find(|replan| {
        let came = replan.refused.is_none();
        came && !seen.insert((replan.cpu, replan.plan.plan_id))
    });
    if let Some(replan) = again {
        write_err(&format!(
            "pbsctl: warning: the answer after {} has plan_id {}, like an earlier plan; events \
             cannot distinguish them, so give each answer a new plan_id\n",
            span(replan.came_ns),
            replan.plan.plan_id
        ));
    }
}

/// Progress of a long simulation on a terminal.
struct ProgressLine {
    shows: bool,
    told: Instant,
    any: bool,
}

impl ProgressLine {
    const PAUSE: Duration = Duration::from_secs(1);

    fn new() -> Self {
        Self { shows: stderr().is_terminal(), told: Instant::now(), any: false }
    }

    fn tell(&mut self, progress: Progress) {
        if !self.shows || self.told.elapsed() < Self::PAUSE {
            return;
        }
        self.told = Instant::now();
        self.any = true;
        let percent = u128::from(progress.now_ns) * 100 / u128::from(progress.planned_ns.max(1));
        write_err(&format!(
            "\rCPU {}: {} simulated, {percent} % of the plan; stops at {} (--limit) ",
            progress.cpu,
            span(progress.now_ns),
            span(progress.limit_ns)
        ));
    }

    fn end(&self) {
        if self.any {
            write_err("\n");
        }
    }
}
