// SPDX-License-Identifier: GPL-2.0
//! Traces: written, and replayed under several schedulers.

use std::fs::File;
use std::io::{stderr, BufReader, IsTerminal};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::{Args, ValueEnum};
use pbs_cluster::{Machine, Rules, NCPUS};
use pbs_replay::{
    check, replay, swf, workload, Comparison, Conservative, Easy, Estimates, Fcfs, Format, Outcome,
    Planned, Policy, TraceJob,
};
use pbs_report::grouped;
use pbs_site::Site;
use serde::Serialize;

use super::read_site;
use crate::failure::Failure;
use crate::files::write;
use crate::output::{counted, write_err, write_out, Output};

#[derive(Args, Debug)]
pub(super) struct ReplayOptions {
    /// The trace
    #[arg(value_name = "TRACE")]
    trace: PathBuf,

    /// The cluster that it is replayed on; without it one like OCuLUS
    #[arg(long, value_name = "SITE", conflicts_with = "cores")]
    site: Option<PathBuf>,

    /// One node with so many cores instead of a site
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    cores: Option<u64>,

    /// Which schedulers
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "fcfs,easy,planned"
    )]
    policy: Vec<PolicyName>,

    /// What the schedulers are told of how long jobs run
    #[arg(long, value_enum, default_value = "users")]
    estimates: EstimatesName,

    /// After each event the planner and conservative backfilling look at so many jobs for an
    /// earlier place, and go on with the others after the next
    #[arg(long, value_name = "N", default_value_t = 10)]
    backfills: usize,

    /// Write the last scheduler's schedule as a trace
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Write a picture of use and slowdown: SVG
    #[arg(long, value_name = "FILE")]
    picture: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(super) struct WorkloadOptions {
    /// How many jobs
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    jobs: usize,

    /// How many of them come on a day; OCuLUS had 3,082 on average and 196,217 at most
    #[arg(long, value_name = "N", default_value_t = workload::MEAN_DAY)]
    per_day: usize,

    /// Another seed, other jobs
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Where to write it; standard output otherwise
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// The schedulers that there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum PolicyName {
    /// First come, first served
    Fcfs,
    /// EASY backfilling: the first of the queue has a reservation
    Easy,
    /// Conservative backfilling: every job has a reservation
    Conservative,
    /// The planner, after OpenCCS
    Planned,
}

/// What schedulers are told.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum EstimatesName {
    /// What users said
    Users,
    /// How long jobs do run
    Perfect,
}

/// What came of a replay.
#[derive(Serialize)]
struct Replayed {
    site: String,
    left_out: u64,
    too_large: usize,
    #[serde(flatten)]
    comparison: Comparison,
}

pub(super) fn replay_trace(out: Output, options: &ReplayOptions) -> Result<(), Failure> {
    let path = &options.trace;
    let file = File::open(path).map_err(|error| Failure::file(path, &error))?;
    let trace = swf::read(BufReader::new(file))
        .map_err(|error| Failure::Failed(format!("{}: {error}", path.display())))?;
    let site = match (&options.site, options.cores) {
        (Some(file), _) => read_site(file)?,
        (None, Some(cores)) => one_node(cores),
        (None, None) => Site::oculus(),
    };
    let machine = Arc::new(Machine::of_site(&site));
    let cores = machine.total(NCPUS);
    let estimates = match options.estimates {
        EstimatesName::Users => Estimates::Users,
        EstimatesName::Perfect => Estimates::Perfect,
    };
    let told = trace.jobs.iter().map(|job| job.with(estimates));
    let (jobs, too_large): (Vec<TraceJob>, Vec<_>) = told.partition(|job| job.cores <= cores);
    let mut comparison = Comparison::new(&path.display().to_string(), &jobs, cores);
    let mut schedule = None;
    for &name in &options.policy {
        let rules = Rules::of_site(&site, &machine, horizon());
        let mut policy: Box<dyn Policy> = match name {
            PolicyName::Fcfs => Box::new(Fcfs::new(cores)),
            PolicyName::Easy => Box::new(Easy::new(cores)),
            PolicyName::Conservative => {
                Box::new(Conservative::new(cores).with_most_looks(options.backfills))
            }
            PolicyName::Planned => {
                let policy = pbs_cluster::Policy::of_site(&site);
                let machine = machine.clone();
                let planned = Planned::with_policy(machine, rules, policy, options.backfills);
                Box::new(planned)
            }
        };
        let outcomes = run(&jobs, policy.as_mut(), cores)?;
        comparison.push(policy.name(), &jobs, &outcomes);
        schedule = Some(outcomes);
    }
    if let (Some(file), Some(outcomes)) = (&options.output, schedule) {
        write(file, &trace_text(&jobs, Some(&outcomes), cores))?;
    }
    if let Some(file) = &options.picture {
        write(file, &comparison.picture())?;
    }
    let replayed = Replayed {
        site: site.name.clone(),
        left_out: trace.left_out.total(),
        too_large: too_large.len(),
        comparison,
    };
    out.print(&replayed, || text(&replayed))
}

/// Under one scheduler; how far it is is shown where somebody looks.
fn run(jobs: &[TraceJob], policy: &mut dyn Policy, cores: u64) -> Result<Vec<Outcome>, Failure> {
    let shows = stderr().is_terminal();
    let name = policy.name().to_string();
    let all = grouped(jobs.len() as u64);
    let outcomes = replay(jobs, policy, |done| {
        if shows {
            write_err(&format!(
                "\r{name}: {} of {all} jobs ",
                grouped(done as u64)
            ));
        }
    });
    if shows {
        write_err("\n");
    }
    let outcomes = outcomes.map_err(|fault| Failure::Failed(format!("{name}: {fault}")))?;
    check(jobs, &outcomes, cores)
        .map_err(|invalid| Failure::Failed(format!("{name}: {invalid}")))?;
    Ok(outcomes)
}

fn text(replayed: &Replayed) -> String {
    let mut text = format!("On {}:\n", replayed.site);
    if replayed.left_out > 0 {
        let lines = counted(replayed.left_out, "line is", "lines are");
        text += &format!("{lines} no job that can be replayed\n");
    }
    if replayed.too_large > 0 {
        let jobs = counted(replayed.too_large as u64, "job is", "jobs are");
        text += &format!("{jobs} larger than the cluster, and left out\n");
    }
    text + &replayed.comparison.text(Format::Text)
}

fn one_node(cores: u64) -> Site {
    let text = format!("name = \"one node\"\n[[nodes]]\nname = \"n1\"\nhas = \"ncpus={cores}\"\n");
    // The text is ours.
    Site::from_toml(&text).unwrap_or_else(|_| Site::oculus())
}

/// Traces begin at any time; validities that repeat are told for ten years.
fn horizon() -> std::ops::Range<u64> {
    const TEN_YEARS_S: u64 = 10 * 366 * 86_400;
    let now_s = SystemTime::now().duration_since(UNIX_EPOCH);
    0..now_s.map_or(0, |now| now.as_secs()) + TEN_YEARS_S
}

pub(super) fn write_workload(options: &WorkloadOptions) -> Result<(), Failure> {
    let jobs = workload::oculus(options.jobs, options.per_day.max(1), options.seed);
    let text = trace_text(&jobs, None, workload::CORES);
    match &options.output {
        Some(file) => write(file, &text),
        None => write_out(&text),
    }
}

fn trace_text(jobs: &[TraceJob], outcomes: Option<&[Outcome]>, cores: u64) -> String {
    let mut text = Vec::new();
    // Writing into memory succeeds.
    let _ = swf::write(&mut text, jobs, outcomes, cores);
    String::from_utf8_lossy(&text).into_owned()
}
