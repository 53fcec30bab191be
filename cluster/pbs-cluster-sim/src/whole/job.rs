// SPDX-License-Identifier: GPL-2.0
//! The jobs of the cluster: what they ask for, and what they really are.

use pbs_gen::{generate, Parameters, Random, Scenario, SlotOrder, Span, Stream};

use crate::whole::node::span_s;
use crate::whole::{Error, Options};

/// Number of tasks of each process.
const TASKS: Span = Span::new(10, 30);
/// Length of each task: 0.1 s to 3 s.
const TASK_INSNS: Span = Span::new(100_000_000, 3_000_000_000);
/// Scenarios deviate by their default where that is the deviation of the options.
const DEFAULT_DEVIATION_PERMILLE: u64 = 100;
/// No task ends so early that nothing is left of it.
const MOST_EARLY_PERMILLE: u64 = 900;

/// Each as likely: five of ten jobs only scatter, two are late in all they do, and one each
/// is early, has a task and has a process that takes far longer than planned.
const SCENARIOS: [Scenario; 10] = [
    Scenario::Normal,
    Scenario::Normal,
    Scenario::Normal,
    Scenario::Normal,
    Scenario::Normal,
    Scenario::AllSlightlyLate,
    Scenario::AllSlightlyLate,
    Scenario::EarlyNode,
    Scenario::RogueTask,
    Scenario::OneOver,
];

/// The length of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Length {
    /// Planned length.
    pub planned_insns: u64,
    /// Actual length.
    pub real_insns: u64,
}

/// A job of the cluster: a chunk of cores on one node, with what runs there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WholeJob {
    /// Time of submission.
    pub submit_s: u64,
    /// Deadline for the end.
    pub deadline_s: u64,
    /// Requested duration: the span of the job's plan, which contains the capacity buffer.
    pub duration_s: u64,
    /// Number of cores, all on one node.
    pub cores: u32,
    /// The tasks of its processes, which wait for nobody.
    pub processes: Vec<Vec<Length>>,
}

impl WholeJob {
    /// A job that comes at the beginning; how long it asks for is found out by planning it.
    ///
    /// # Errors
    ///
    /// It can't be planned.
    pub fn new(cores: u32, processes: Vec<Vec<Length>>) -> Result<Self, Error> {
        let duration_s = span_s(cores, &processes)?;
        Ok(Self { submit_s: 0, deadline_s: duration_s, duration_s, cores, processes })
    }
}

/// The jobs that come, in the order of their coming.
///
/// # Errors
///
/// An option is out of range, or a job can't be planned.
pub fn jobs(options: &Options) -> Result<Vec<WholeJob>, Error> {
    check(options)?;
    let mut random = Random::new(options.seed, Stream::Trace);
    let mut jobs = Vec::with_capacity(options.jobs);
    for number in 0..options.jobs as u64 {
        let cores = 1 + random.below(options.cores.into());
        let most = cores * u64::from(options.most_processes_per_core);
        let count = cores + random.below(most - cores + 1);
        let scenario = SCENARIOS[random.below(SCENARIOS.len() as u64) as usize];
        let seed = random.below(u64::MAX) ^ number;
        let processes = processes(options.deviation_permille, count, scenario, seed)?;
        jobs.push(WholeJob::new(cores as u32, processes)?);
    }
    let asked = jobs.iter().map(|job| u128::from(job.cores) * u128::from(job.duration_s));
    let there = u128::from(options.total_cores()) * u128::from(options.load_permille);
    let span_s = asked.sum::<u128>() * 1000 / there.max(1);
    let span_s = u64::try_from(span_s).unwrap_or(u64::MAX).max(1);
    let mut deadlines = Random::new(options.seed, Stream::TraceDeadlines);
    for job in &mut jobs {
        job.submit_s = random.below(span_s);
        let slack_permille = deadlines.below(options.most_slack_permille + 1);
        let slack_s = job.duration_s * slack_permille / 1000;
        job.deadline_s = job.submit_s + job.duration_s + slack_s;
    }
    jobs.sort_by_key(|job| job.submit_s);
    Ok(jobs)
}

fn check(options: &Options) -> Result<(), Error> {
    let most = [
        ("nodes", u64::from(options.nodes), 1, 1_000),
        ("cores", u64::from(options.cores), 1, 256),
        ("processes", options.most_processes_per_core.into(), 1, 100),
        ("jobs", options.jobs as u64, 1, 100_000),
        ("deviation", options.deviation_permille, 0, 300),
        ("load", options.load_permille, 1, 10_000),
        ("slack", options.most_slack_permille, 0, 100_000),
    ];
    for (name, value, least, most) in most {
        if !(least..=most).contains(&value) {
            return Err(Error(format!("{name} is {value}; it must be between {least} and {most}")));
        }
    }
    Ok(())
}

/// Processes with what they really take.
fn processes(
    deviation_permille: u64,
    count: u64,
    scenario: Scenario,
    seed: u64,
) -> Result<Vec<Vec<Length>>, Error> {
    let scenario = match deviation_permille {
        0 => Scenario::Normal,
        _ => scenario,
    };
    let scaled = scenario.default_deviation_permille().map(|default| {
        let scaled = default * deviation_permille / DEFAULT_DEVIATION_PERMILLE;
        if scenario.is_early() {
            scaled.min(MOST_EARLY_PERMILLE)
        } else {
            scaled
        }
    });
    let parameters = Parameters {
        scenario,
        processes: count,
        tasks: TASKS,
        task_insns: TASK_INSNS,
        idle_permille: 0,
        buffer_permille: Span::new(0, 0),
        order: SlotOrder::Blocks,
        task_sigma_permille: deviation_permille,
        deviation_permille: scaled,
        seed,
        ..Parameters::default()
    };
    let plan = generate(&parameters).map_err(|error| Error::of(&error))?;
    let length = |task: &pbs_plan::Task| Length {
        planned_insns: task.planned_insns,
        real_insns: task.real_insns.unwrap_or(task.planned_insns),
    };
    let processes = plan.processes.iter();
    Ok(processes.map(|process| process.tasks.iter().map(length).collect()).collect())
}
