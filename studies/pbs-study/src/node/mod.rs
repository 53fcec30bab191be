// SPDX-License-Identifier: GPL-2.0
//! Many generated plans in virtual time: what the policy and the planner do to deadlines.
//!
//! The same options give the same numbers on every machine, but for [`arrays`], which
//! measures time.

pub mod ablation;
pub mod admission;
pub mod arrays;
pub mod deadlines;
pub mod deviations;
pub mod idle;
pub mod memory;
pub mod messages;
mod plans;
pub mod resolution;
pub mod strategies;
pub mod stress;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use pbs_plan::{Config, Plan};
use pbs_sim::{simulate, JobScheduler, NoAnswer, ProcessOutcome, Simulation, Stretch};
use pbs_text::ms;
pub use pbs_text::Format;
use pbs_uapi::EventKind;
use serde::Serialize;

/// Options of all studies.
#[derive(Clone, Copy)]
pub struct Options<'a> {
    /// Number of plans that are generated.
    pub plans: u64,
    /// Another seed, other plans.
    pub seed: u64,
    /// Receives the number of plans that are done, from any thread.
    pub done: &'a (dyn Fn(u64) + Sync),
}

/// `part` of `whole` in percent, to a tenth.
fn percent(part: u64, whole: u64) -> String {
    // Nearly all is not all.
    let most = if part < whole { 99.9 } else { f64::INFINITY };
    format!("{:.1} %", (100.0 * part as f64 / whole.max(1) as f64).min(most))
}

/// A plan could not be made or simulated, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(pub(crate) String);

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

/// Simulates a plan under a configuration; failures are answered by stretching
/// what is left, or not at all.
fn run(plan: &Plan, config: Config, answers: bool) -> Result<Simulation, Error> {
    let options = pbs_sim::Options { config, ..pbs_sim::Options::default() };
    let mut scheduler: Box<dyn JobScheduler> =
        if answers { Box::new(Stretch::default()) } else { Box::new(NoAnswer) };
    simulate(plan, &options, &mut *scheduler).map_err(|error| Error(error.to_string()))
}

/// Results of processes, and their costs.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Tally {
    processes: u64,
    /// Processes that met their deadlines.
    kept: u64,
    /// Sum of what deadlines were missed by.
    tardiness_ns: u64,
    /// Slots that ended at t1.
    preemptions: u64,
}

impl Tally {
    fn of(simulation: &Simulation) -> Self {
        let mut tally =
            Self { preemptions: count(simulation, EventKind::Preempted), ..Self::default() };
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

/// Results of many generated plans, a row for each setup.
#[derive(Debug, Serialize)]
struct Rows<R> {
    plans: u64,
    seed: u64,
    rows: Vec<R>,
}

impl<R> Rows<R> {
    fn new(options: &Options<'_>, rows: impl IntoIterator<Item = R>) -> Self {
        Self { plans: options.plans, seed: options.seed, rows: rows.into_iter().collect() }
    }
}

/// The sums of all plans by their keys, in the order of the keys.
fn sums<K: Ord + Send, S: Default + Send>(
    options: &Options<'_>,
    of_plan: impl Fn(u64) -> Result<Vec<(K, S)>, Error> + Sync,
    add: impl Fn(&mut S, S),
) -> Result<BTreeMap<K, S>, Error> {
    let mut sums: BTreeMap<K, S> = BTreeMap::new();
    for (key, sum) in for_each_plan(options, of_plan)?.into_iter().flatten() {
        add(sums.entry(key).or_default(), sum);
    }
    Ok(sums)
}

/// Number of events of a kind.
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
pub(crate) fn for_each_plan<T: Send>(
    options: &Options<'_>,
    each: impl Fn(u64) -> Result<T, Error> + Sync,
) -> Result<Vec<T>, Error> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let done = AtomicU64::new(0);
    let count = |result| {
        (options.done)(done.fetch_add(1, Ordering::Relaxed) + 1);
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
            // A study of fewer plans than it was asked for would be a wrong one.
            worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        results.collect::<Vec<_>>()
    });
    results.sort_by_key(|&(number, _)| number);
    results.into_iter().map(|(_, result)| result).collect()
}
