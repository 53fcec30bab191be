// SPDX-License-Identifier: GPL-2.0
//! The command that runs many generated plans in virtual time.

mod deadlines;
mod idle;
mod memory;
mod plans;
mod table;

use std::io::{stderr, IsTerminal};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};

use clap::{Args, Subcommand, ValueEnum};
use pbs_plan::{Config, Plan};
use pbs_sim::{simulate, JobScheduler, NoAnswer, Options, ProcessOutcome, Simulation, Stretch};
use pbs_uapi::EventKind;
use serde::Serialize;

use crate::failure::Failure;
use crate::output::{ms, Output};

const STUDY_HELP: &str = "\
Examples:
  pbsctl study deadlines
  pbsctl study deadlines --plans 100 --list 50
  pbsctl study idle --seed 7 --format rst
  pbsctl study memory --plans 100
  pbsctl --json study deadlines | jq '.cases[] | select(.kind == \"idle slot\")'

The same options give the same numbers on every machine.";

#[derive(Args, Debug)]
#[command(after_help = STUDY_HELP)]
pub(crate) struct StudyOptions {
    #[command(subcommand)]
    what: What,

    /// How many plans are generated
    #[arg(
        long,
        global = true,
        value_name = "N",
        default_value_t = 1000,
        value_parser = clap::value_parser!(u64).range(1..=1_000_000)
    )]
    plans: u64,

    /// Another seed, other plans
    #[arg(long, global = true, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// How the tables are printed
    #[arg(long, global = true, value_enum, default_value = "text")]
    format: Format,
}

#[derive(Debug, Subcommand)]
enum What {
    /// How many processes meet their deadlines, and which of them miss theirs
    /// because of the policy (Leppert 2021, REQ-NF-2)
    ///
    /// The same plans run with all thresholds off and with more and more of
    /// them on. A process that meets its deadline with all off and misses it
    /// with some on misses it because of the policy: such cases are counted by
    /// what happened to them, with the configurations that avoid them.
    Deadlines {
        /// Print as many of those cases
        #[arg(long, value_name = "N", default_value_t = 0)]
        list: usize,
    },

    /// Compare who gets idle slots: the latest process, or the one with the
    /// least slack
    Idle,

    /// How many jobs keep their deadlines on nodes with more and with less memory,
    /// if the planner looks at memory and if it does not (Glaß 2024)
    ///
    /// Eight jobs come at once, of three processes each, to a node with four cores.
    /// Of those that are admitted it is simulated what becomes of them, on a node
    /// that kills whoever finds no memory left, and on one that swaps (pbsctl sim
    /// --memory-over). What they really take of time and memory scatters.
    Memory,
}

/// How tables are printed.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// For the terminal
    Text,
    /// reStructuredText
    Rst,
}

pub(crate) fn study(out: Output, options: &StudyOptions) -> Result<ExitCode, Failure> {
    match options.what {
        What::Deadlines { list } => {
            let study = deadlines::study(options)?;
            out.print(&study, || study.text(options.format, list))?;
        }
        What::Memory => {
            let study = memory::study(options)?;
            out.print(&study, || study.text(options.format))?;
        }
        What::Idle => {
            let study = idle::study(options)?;
            out.print(&study, || study.text(options.format))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Simulates a plan under a configuration; failures are answered by stretching
/// what is left, or not at all.
fn run(plan: &Plan, config: Config, answers: bool) -> Result<Simulation, Failure> {
    let options = Options {
        config,
        ..Options::default()
    };
    let mut scheduler: Box<dyn JobScheduler> = match answers {
        true => Box::new(Stretch::default()),
        false => Box::new(NoAnswer),
    };
    simulate(plan, &options, &mut *scheduler).map_err(|error| Failure::Failed(error.to_string()))
}

/// What became of processes, and what it took.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Tally {
    processes: u64,
    /// Those that met their deadlines.
    kept: u64,
    /// Sum of what deadlines were missed by.
    tardiness_ns: u64,
    /// Slots that ended at t1.
    preemptions: u64,
}

impl Tally {
    fn of(simulation: &Simulation) -> Self {
        let mut tally = Self {
            preemptions: count(simulation, EventKind::Preempted),
            ..Self::default()
        };
        for process in &simulation.processes {
            let ended_ns = process.ended_ns.unwrap_or(simulation.ended_ns());
            tally.processes += 1;
            tally.kept += u64::from(process.kept);
            tally.tardiness_ns += ended_ns.saturating_sub(process.deadline_ns);
        }
        tally
    }

    fn add(&mut self, other: &Self) {
        self.processes += other.processes;
        self.kept += other.kept;
        self.tardiness_ns += other.tardiness_ns;
        self.preemptions += other.preemptions;
    }

    /// Mean of what deadlines were missed by, in milliseconds.
    fn tardiness(&self) -> String {
        ms(self.tardiness_ns / self.processes.max(1))
    }
}

/// How often something happened.
fn count(simulation: &Simulation, kind: EventKind) -> u64 {
    let events = simulation.events.iter();
    events.filter(|event| event.kind == kind as u16).count() as u64
}

/// The processes that one simulation of a plan kept the deadlines of and
/// another did not.
fn kept_alone<'a>(
    here: &'a Simulation,
    there: &'a Simulation,
) -> impl Iterator<Item = (&'a ProcessOutcome, &'a ProcessOutcome)> {
    let pairs = here.processes.iter().zip(&there.processes);
    pairs.filter(|(here, there)| here.kept && !there.kept)
}

/// Calls `each` with the number of every plan, on all CPUs; the answers are in
/// the order of the numbers.
fn for_each_plan<T: Send>(
    options: &StudyOptions,
    each: impl Fn(u64) -> Result<T, Failure> + Sync,
) -> Result<Vec<T>, Failure> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let done = AtomicU64::new(0);
    let shows = stderr().is_terminal();
    let count = |result| {
        let done = done.fetch_add(1, Ordering::Relaxed) + 1;
        if shows && (done % 16 == 0 || done == options.plans) {
            eprint!("\r{done} of {} plans ", options.plans);
        }
        result
    };
    let mut results = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|first| {
                let numbers = (first..options.plans).step_by(threads as usize);
                scope.spawn(|| numbers.map(|n| (n, count(each(n)))).collect::<Vec<_>>())
            })
            .collect();
        let results = workers.into_iter().flat_map(|worker| {
            // A thread that panicked has said so; its plans have no answer.
            worker.join().unwrap_or_default()
        });
        results.collect::<Vec<_>>()
    });
    if shows {
        eprintln!();
    }
    results.sort_by_key(|&(number, _)| number);
    results.into_iter().map(|(_, result)| result).collect()
}
