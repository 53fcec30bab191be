// SPDX-License-Identifier: GPL-2.0
//! Traces: written, and replayed under several schedulers.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use pbs_cluster_sim::{
    against, against_text, as_they_came, check, replay, swf, workload, Against, Comparison,
    Estimates, Format, Lublin, NeverRan, Outcome, Planning, Policy, RunTimeErrors, Size, Summary,
    TraceJob, Unstarted,
};
use serde::Serialize;

use super::ledger::duration_s;
use super::replay_cluster::{Cluster, MOST_CORES};
use super::replay_policy::{Contender, EstimatesName, PolicyOptions};
use super::replay_runs::{side_by_side, Progress};
use super::replay_timed::Timed;
use super::trace_file::read_trace;
use crate::failure::Failure;
use crate::files::{picture, write};
use crate::given::{Conditional, Given};
use crate::output::{counted, write_out, Output};

#[derive(Args, Debug)]
pub(super) struct ReplayOptions {
    /// Trace in the Standard Workload Format; - reads standard input
    #[arg(value_name = "TRACE", required_unless_present = "generate", conflicts_with = "generate")]
    trace: Option<PathBuf>,

    /// Generate jobs for the cluster instead of reading a trace
    #[arg(long, value_enum, value_name = "MODEL")]
    generate: Option<Model>,

    /// Number of jobs to generate
    #[arg(
        long,
        value_name = "N",
        default_value_t = 10_000,
        requires = "generate",
        conflicts_with = "trace",
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    jobs: u32,

    /// Load while the generated jobs arrive: core time that they use, in percent of the capacity
    #[arg(
        long,
        value_name = "PERCENT",
        default_value_t = 90,
        requires = "generate",
        conflicts_with = "trace",
        value_parser = clap::value_parser!(u64).range(1..=1_000)
    )]
    load: u64,

    /// Seed of the generated jobs
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        requires = "generate",
        conflicts_with = "trace"
    )]
    seed: u64,

    /// Replay this many traces, with --seed and the seeds after it, and print the gain of the last
    /// scheduler over the others
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        requires = "generate",
        conflicts_with = "trace",
        value_parser = clap::value_parser!(u64).range(1..=1_000)
    )]
    seeds: u64,

    /// Mean run time, in percent of the requested time; for lublin only, since oculus has its own
    #[arg(
        long,
        value_name = "PERCENT",
        default_value_t = OCULUS_ACCURACY_PERCENT,
        requires = "generate",
        conflicts_with = "trace",
        value_parser = clap::value_parser!(u64).range(1..=100)
    )]
    accuracy: u64,

    /// Percentage of jobs that have a deadline
    #[arg(
        long,
        value_name = "PERCENT",
        default_value_t = 0,
        value_parser = clap::value_parser!(u64).range(0..=100)
    )]
    deadlines: u64,

    /// Latest deadline after the end of a job that starts at once, in percent of its requested time
    #[arg(long, value_name = "PERCENT", default_value_t = 200, requires = "deadlines")]
    slack: u64,

    /// Site file of the cluster to replay on; by default one node with the cores that the header of
    /// the trace names, and a cluster like OCuLUS if it names none
    #[arg(long, value_name = "SITE", conflicts_with = "cores")]
    site: Option<PathBuf>,

    /// Replay on one node with this many cores instead of a site
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=MOST_CORES))]
    cores: Option<u64>,

    #[command(flatten)]
    policies: PolicyOptions,

    /// Leave jobs out of the figures that were submitted within this time of the first submission
    /// or the last one, while the cluster fills or empties; they are replayed all the same
    #[arg(long, value_name = "TIME", value_parser = duration_s)]
    leave_out: Option<u64>,

    /// Write the schedule of the last scheduler to FILE, as a trace
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Draw utilisation and slowdown to FILE, as SVG
    #[arg(long, value_name = "FILE", value_parser = picture())]
    picture: Option<PathBuf>,
}

/// Option without which options of the model of Lublin and Feitelson have no effect.
const LUBLIN: &str = "--generate lublin";

/// Accuracy of the run times that users of OCuLUS declare (Keller, section 6).
const OCULUS_ACCURACY_PERCENT: u64 = 22;

/// Jobs of OCuLUS a day, on average.
const MEAN_DAY: u32 = workload::MEAN_DAY as u32;

#[derive(Args, Debug)]
pub(super) struct WorkloadOptions {
    /// Number of jobs
    #[arg(
        long,
        value_name = "N",
        default_value_t = 10_000,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    jobs: u32,

    /// Model of the jobs
    #[arg(long, value_enum, value_name = "MODEL", default_value = "oculus")]
    model: Model,

    /// Number of cores of the machine; for lublin only
    #[arg(
        long,
        value_name = "N",
        default_value_t = workload::CORES,
        value_parser = clap::value_parser!(u64).range(1..=1_000_000)
    )]
    cores: u64,

    /// Load while jobs arrive: core time that they use, in percent of the capacity; for lublin only
    #[arg(
        long,
        value_name = "PERCENT",
        default_value_t = 90,
        value_parser = clap::value_parser!(u64).range(1..=1_000)
    )]
    load: u64,

    /// Mean run time, in percent of the requested time; for lublin only
    #[arg(
        long,
        value_name = "PERCENT",
        default_value_t = OCULUS_ACCURACY_PERCENT,
        value_parser = clap::value_parser!(u64).range(1..=100)
    )]
    accuracy: u64,

    /// Number of jobs a day; for oculus only. OCuLUS had 3,082 on average and at most 196,217
    #[arg(
        long,
        value_name = "N",
        default_value_t = MEAN_DAY,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    per_day: u32,

    /// Seed of the jobs
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Write the trace to FILE instead of standard output. With --json, standard output has a
    /// summary of the jobs
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Jobs that are generated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Model {
    /// Jobs like those published of OCuLUS (Keller, section 6)
    Oculus,
    /// The model of Lublin and Feitelson (2003)
    Lublin,
}

/// Results of a replay.
#[derive(Serialize)]
struct Replayed {
    site: String,
    left_out: u64,
    too_large: usize,
    too_large_by_reason: Vec<Unstarted>,
    notes: Vec<swf::Note>,
    remarks: Vec<String>,
    #[serde(flatten)]
    comparison: Comparison,
}

/// Results of the replays of generated traces.
#[derive(Serialize)]
struct Generated {
    site: String,
    model: &'static str,
    load_percent: u64,
    cores: u64,
    remarks: Vec<String>,
    replays: Vec<OfSeed>,
    against: Vec<Against>,
}

#[derive(Serialize)]
struct OfSeed {
    seed: u64,
    too_large: usize,
    too_large_by_reason: Vec<Unstarted>,
    workload: Summary,
    #[serde(flatten)]
    comparison: Comparison,
}

/// Jobs that are written, and by which table.
#[derive(Serialize)]
pub(super) struct Written {
    #[serde(flatten)]
    pub(super) workload: Summary,
    pub(super) published: Option<Vec<Size>>,
}

/// Jobs with the outcomes of a scheduler; jobs as they came.
struct Schedule {
    /// Name of the scheduler.
    name: String,
    jobs: Vec<TraceJob>,
    outcomes: Vec<Outcome>,
    planning: Planning,
    unstarted: Vec<Unstarted>,
}

pub(super) fn replay_trace(out: Output, options: &Given<ReplayOptions>) -> Result<(), Failure> {
    match (&options.trace, options.generate) {
        (Some(path), _) => replay_file(out, options, path),
        (None, model) => {
            let on = Cluster::of(options.site.as_deref(), options.cores)?
                .with_rules(!options.policies.without_rules);
            replay_generated(out, options, &on, model.unwrap_or(Model::Oculus))
        }
    }
}

/// Refuses options that neither the jobs nor a scheduler read.
fn refuse_unread(options: &Given<ReplayOptions>, on: &Cluster) -> Result<(), Failure> {
    let is_lublin = options.generate == Some(Model::Lublin);
    let accuracy = Conditional { field: "accuracy", is_read: is_lublin, needs: LUBLIN };
    let mut all = options.policies.conditional(on);
    all.push(accuracy);
    options.refuse_unread(&all)?;
    let files = [("--output", &options.output), ("--picture", &options.picture)];
    match files.into_iter().find(|(_, file)| file.is_some() && options.seeds > 1) {
        Some((option, _)) => Err(Failure::Usage(format!(
            "{option} holds one replay, and --seeds {} replays several traces; leave one of them \
             out",
            options.seeds
        ))),
        None => Ok(()),
    }
}

fn replay_file(out: Output, options: &Given<ReplayOptions>, path: &Path) -> Result<(), Failure> {
    let mut trace = read_trace(path)?;
    let (on, machine) = Cluster::of_trace(options.site.as_deref(), options.cores, &trace.header)?;
    let on = on.with_rules(!options.policies.without_rules);
    refuse_unread(options, &on)?;
    let fits: Vec<bool> = trace.jobs.iter().map(|job| on.fits(job)).collect();
    if !fits.contains(&true) {
        let too_great = memory_remark(&on, &trace.jobs, &fits);
        return Err(no_jobs(path, &trace, fits.len(), too_great));
    }
    let too_large_by_reason = too_large(&on, &trace.jobs);
    let orphans = orphans_remark(&trace.jobs, &fits);
    let too_great = memory_remark(&on, &trace.jobs, &fits);
    let mut fit = fits.iter();
    trace.records.retain(|_| fit.next().is_some_and(|fits| *fits));
    let has_memory = trace.jobs.iter().any(|job| job.memory_bytes.is_some());
    let jobs = told(options, &on, trace.jobs, options.seed);
    let (comparison, schedule) = compare(options, &on, &crate::files::name(path), &jobs)?;
    if let (Some(file), Some(schedule)) = (&options.output, &schedule) {
        write(file, &replayed_text(&trace.header, &trace.records, schedule, on.cores))?;
    }
    write_picture(options, &comparison)?;
    let memory = on.memory_remark(has_memory, options.policies.has_pools());
    let rules = [on.calendar_remark(), options.policies.rules_remark(&on)];
    let remarks = [machine, memory].into_iter().chain(rules).chain([orphans, too_great]);
    let remarks = remarks.flatten();
    let replayed = Replayed {
        site: on.site.name.clone(),
        left_out: trace.notes.left_out(),
        too_large: fits.iter().filter(|fits| !**fits).count(),
        too_large_by_reason,
        notes: trace.notes.iter().cloned().collect(),
        remarks: remarks.collect(),
        comparison,
    };
    out.print(&replayed, || text(&replayed))
}

/// The failure for a trace without a job that can be replayed.
fn no_jobs(
    path: &Path,
    trace: &swf::Trace,
    too_large: usize,
    too_great: Option<String>,
) -> Failure {
    let mut why: Vec<String> = trace.notes.iter().map(ToString::to_string).collect();
    if too_large > 0 {
        let jobs = counted(too_large as u64, "job is", "jobs are");
        why.push(format!(
            "{jobs} too large for the cluster; describe a larger one with --site or --cores"
        ));
    }
    why.extend(too_great);
    if why.is_empty() {
        let what =
            "it has no line with a job; name a trace in the Standard Workload Format, or use \
                    --generate";
        why.push(what.into());
    }
    let file = crate::files::name(path);
    Failure::Failed(format!("{file}: no job can be replayed: {}", why.join("; ")))
}

/// Remark on jobs that are left out for their memory alone: many traces have bytes where the format
/// has KiB.
fn memory_remark(on: &Cluster, jobs: &[TraceJob], fits: &[bool]) -> Option<String> {
    let left_out = jobs.iter().zip(fits).filter(|(_, fits)| !**fits).map(|(job, _)| job);
    let mut of_memory =
        left_out.filter(|job| on.fits(&TraceJob { memory_bytes: None, ..**job })).peekable();
    let first = *of_memory.peek()?;
    let jobs = counted(of_memory.count() as u64, "job is", "jobs are");
    Some(format!(
        "{jobs} too large for the memory of the nodes alone, such as job {}, which has {} for each \
         core; fields 7 and 10 of a trace are in KiB for each core",
        first.number,
        pbs_text::bytes(first.memory_bytes.unwrap_or(0).div_ceil(first.cores.max(1)))
    ))
}

/// Counts jobs for which even the empty cluster has no room, by reason.
fn too_large(on: &Cluster, jobs: &[TraceJob]) -> Vec<Unstarted> {
    let why = |job: &TraceJob| {
        if on.fits(&TraceJob { memory_bytes: None, ..*job }) {
            NeverRan::Memory
        } else {
            NeverRan::Cores
        }
    };
    let too_large = jobs.iter().filter(|job| !on.fits(job));
    Unstarted::count(too_large.map(|job| (why(job), job.number)))
}

/// A line about jobs that are left out for their size; none without such jobs.
fn too_large_text(number: usize, by_reason: &[Unstarted]) -> String {
    if number == 0 {
        return String::new();
    }
    let jobs = counted(number as u64, "job is", "jobs are");
    let reasons = Unstarted::text(by_reason);
    format!("{jobs} larger than the cluster, and left out: {reasons}\n")
}

/// Remark on jobs whose preceding jobs are too large for the cluster.
fn orphans_remark(jobs: &[TraceJob], fits: &[bool]) -> Option<String> {
    let both = || jobs.iter().zip(fits);
    let too_large: BTreeSet<u64> =
        both().filter(|(_, fits)| !**fits).map(|(job, _)| job.number).collect();
    let is_orphan = |job: &TraceJob| job.preceding.is_some_and(|of| too_large.contains(&of));
    let orphans = both().filter(|(job, fits)| **fits && is_orphan(job)).count();
    (orphans > 0).then(|| {
        let jobs = counted(orphans as u64, "job follows", "jobs follow");
        format!(
            "{jobs} others that are too large for the cluster, at the times of the trace; to \
             replay all, describe a larger cluster with --site or --cores"
        )
    })
}

fn replay_generated(
    out: Output,
    options: &Given<ReplayOptions>,
    on: &Cluster,
    model: Model,
) -> Result<(), Failure> {
    refuse_unread(options, on)?;
    let mut replays = Vec::new();
    for seed in options.seed..options.seed.saturating_add(options.seeds) {
        let jobs = match model {
            Model::Oculus => {
                let jobs =
                    workload::Workload::oculus(options.jobs as usize, workload::MEAN_DAY, seed);
                jobs.with_load(on.cores, options.load).generate()
            }
            Model::Lublin => Lublin {
                jobs: options.jobs as usize,
                cores: on.cores,
                load_percent: options.load,
                accuracy_percent: options.accuracy,
                seed,
            }
            .generate(),
        };
        let too_large_by_reason = too_large(on, &jobs);
        let too_large = too_large_by_reason.iter().map(|of| of.jobs).sum();
        let jobs = told(options, on, jobs, seed);
        let name = format!("{}, seed {seed}", name_of(model));
        let (comparison, schedule) = compare(options, on, &name, &jobs)?;
        if let (Some(file), Some(of)) = (&options.output, &schedule) {
            write(file, &trace_text(&of.jobs, Some(&of.outcomes), on.cores))?;
        }
        write_picture(options, &comparison)?;
        let first = options.policies.contenders().first().map(|of| of.estimates);
        let workload = Summary::of(&estimated(&jobs, first.unwrap_or(EstimatesName::Users)));
        replays.push(OfSeed { seed, too_large, too_large_by_reason, workload, comparison });
    }
    let comparisons: Vec<Comparison> = replays.iter().map(|of| of.comparison.clone()).collect();
    let generated = Generated {
        site: on.site.name.clone(),
        model: name_of(model),
        load_percent: options.load,
        cores: on.cores,
        remarks: options.policies.rules_remark(on).into_iter().collect(),
        against: against(&comparisons),
        replays,
    };
    out.print(&generated, || {
        let mut text = format!("On {}:\n", generated.site);
        for remark in &generated.remarks {
            text += &format!("{remark}\n");
        }
        for of in &generated.replays {
            text += &too_large_text(of.too_large, &of.too_large_by_reason);
            text += &(of.comparison.text(Format::Text) + "\n");
        }
        text + &against_text(&generated.against, Format::Text)
    })
}

fn name_of(model: Model) -> &'static str {
    match model {
        Model::Oculus => "oculus",
        Model::Lublin => "lublin",
    }
}

/// Jobs that the cluster can have, with the run times that their users requested.
fn told(
    options: &ReplayOptions,
    on: &Cluster,
    mut jobs: Vec<TraceJob>,
    seed: u64,
) -> Vec<TraceJob> {
    jobs.retain(|job| on.fits(job));
    // By what users said, so that they are the same whatever is told.
    workload::add_deadlines(&mut jobs, options.deadlines, options.slack, seed);
    jobs
}

/// Jobs as schedulers with these estimates are told of them.
fn estimated(jobs: &[TraceJob], estimates: EstimatesName) -> Vec<TraceJob> {
    let estimates = match estimates {
        EstimatesName::Users | EstimatesName::Learned => Estimates::Users,
        EstimatesName::Perfect => Estimates::Perfect,
    };
    jobs.iter().map(|job| job.with(estimates)).collect()
}

/// Under all schedulers; also what the last of them made of the jobs.
fn compare(
    options: &ReplayOptions,
    on: &Cluster,
    name: &str,
    jobs: &[TraceJob],
) -> Result<(Comparison, Option<Schedule>), Failure> {
    let policies = &options.policies;
    let counts = counts(options, name, jobs)?;
    let mut comparison = Comparison::new(name, &counted_of(jobs, &counts), on.cores);
    comparison.jobs_left_out = jobs.len() - comparison.jobs;
    let contenders = policies.contenders();
    let replays = (contenders.len(), policies.threads());
    let schedules = side_by_side(jobs.len(), replays.0, replays.1, |place, progress| {
        run(options, on, (jobs, &counts), contenders[place], (place, progress))
    })?;
    for of in &schedules {
        let unstarted = of.unstarted.clone();
        let ran = (&of.jobs[..], &of.outcomes[..]);
        comparison.push_with(&of.name, ran, &counts, of.planning, unstarted);
    }
    let schedule = schedules.into_iter().next_back();
    if policies.run_time_errors {
        let errors = |of: &Schedule| RunTimeErrors::of(&of.jobs, &of.outcomes, &counts);
        comparison.run_time_errors = schedule.as_ref().map(errors);
    }
    Ok((comparison, schedule))
}

/// Whether each job is in the figures.
fn counts(options: &ReplayOptions, name: &str, jobs: &[TraceJob]) -> Result<Vec<bool>, Failure> {
    let left_out_s = options.leave_out.unwrap_or(0);
    let submits = || jobs.iter().map(|job| job.submit_s);
    let (first_s, last_s) = (submits().min().unwrap_or(0), submits().max().unwrap_or(0));
    let from_s = first_s.saturating_add(left_out_s);
    let until_s = last_s.saturating_sub(left_out_s);
    let counts: Vec<bool> = submits().map(|at_s| (from_s..=until_s).contains(&at_s)).collect();
    if !jobs.is_empty() && !counts.contains(&true) {
        let span = pbs_text::span((last_s - first_s).saturating_mul(1_000_000_000));
        return Err(Failure::Usage(format!(
            "--leave-out: no job is left, as all jobs of {name} were submitted within {span}; write \
             a shorter time"
        )));
    }
    Ok(counts)
}

/// Elements of a list that count.
fn counted_of<T: Clone>(all: &[T], counts: &[bool]) -> Vec<T> {
    let counted = all.iter().zip(counts).filter(|(_, counts)| **counts);
    counted.map(|(of, _)| of.clone()).collect()
}

fn write_picture(options: &ReplayOptions, comparison: &Comparison) -> Result<(), Failure> {
    match &options.picture {
        Some(file) => write(file, &comparison.picture()),
        None => Ok(()),
    }
}

/// Under one scheduler, which reports its progress as one of several replays.
fn run(
    options: &ReplayOptions,
    on: &Cluster,
    (jobs, counts): (&[TraceJob], &[bool]),
    contender: Contender,
    (place, progress): (usize, &Progress),
) -> Result<Schedule, Failure> {
    let jobs = estimated(jobs, contender.estimates);
    let mut policy = options.policies.scheduler(contender, on);
    let name = options.policies.name_of(contender, policy.name());
    progress.tell(place, &name, 0);
    let mut policy = Timed::new(policy.as_mut());
    let outcomes = replay(&jobs, &mut policy, |done| progress.tell(place, &name, done));
    let outcomes = outcomes.map_err(|fault| Failure::Failed(format!("{name}: {fault}")))?;
    let unstarted =
        Unstarted::of_replay(&jobs, &outcomes, on.cores, &policy.declined(), |place| counts[place]);
    let jobs = as_they_came(&jobs, &outcomes);
    check(&jobs, &outcomes, on.cores)
        .map_err(|invalid| Failure::Failed(format!("{name}: {invalid}")))?;
    Ok(Schedule { name, jobs, outcomes, planning: policy.planning(), unstarted })
}

fn text(replayed: &Replayed) -> String {
    let mut text = format!("On {}:\n", replayed.site);
    for note in &replayed.notes {
        text += &format!("{}: {note}\n", replayed.comparison.trace);
    }
    for remark in &replayed.remarks {
        text += &format!("{remark}\n");
    }
    text += &too_large_text(replayed.too_large, &replayed.too_large_by_reason);
    text + &replayed.comparison.text(Format::Text)
}

pub(super) fn write_workload(out: Output, options: &Given<WorkloadOptions>) -> Result<(), Failure> {
    let is_lublin = options.model == Model::Lublin;
    let of_lublin = |field| Conditional { field, is_read: is_lublin, needs: "--model lublin" };
    let per_day = Conditional { field: "per_day", is_read: !is_lublin, needs: "--model oculus" };
    let [cores, load, accuracy] = ["cores", "load", "accuracy"].map(of_lublin);
    options.refuse_unread(&[cores, load, accuracy, per_day])?;
    let count = options.jobs as usize;
    let (jobs, cores) = match options.model {
        Model::Oculus => {
            let jobs = workload::oculus(count, options.per_day as usize, options.seed);
            (jobs, workload::CORES)
        }
        Model::Lublin => {
            let lublin = Lublin {
                jobs: count,
                cores: options.cores,
                load_percent: options.load,
                accuracy_percent: options.accuracy,
                seed: options.seed,
            };
            (lublin.generate(), options.cores)
        }
    };
    let text = || trace_text(&jobs, None, cores);
    if let Some(file) = &options.output {
        write(file, &text())?;
    }
    match (&options.output, out.json) {
        (_, true) => {
            let written = Written {
                workload: Summary::of(&jobs),
                published: match options.model {
                    Model::Oculus => Some(workload::published()),
                    Model::Lublin => None,
                },
            };
            out.named("cluster-workload").print(&written, String::new)
        }
        (Some(_), false) => Ok(()),
        (None, false) => write_out(&text()),
    }
}

fn replayed_text(
    header: &swf::Header,
    records: &[swf::Record],
    of: &Schedule,
    cores: u64,
) -> String {
    in_memory(|to| swf::write_replayed(to, header, records, &of.jobs, &of.outcomes, cores))
}

fn trace_text(jobs: &[TraceJob], outcomes: Option<&[Outcome]>, cores: u64) -> String {
    in_memory(|to| swf::write(to, jobs, outcomes, cores))
}

/// Returns the text of a trace that is written into memory.
pub(super) fn in_memory(write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> String {
    let mut text = Vec::new();
    // Writing into memory succeeds.
    let _ = write(&mut text);
    String::from_utf8_lossy(&text).into_owned()
}
