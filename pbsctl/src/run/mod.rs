// SPDX-License-Identifier: GPL-2.0
//! The command that runs a plan or jobs, in its own process.

mod admitted;
mod cosched;
mod live;
mod options;
mod outcome;
pub(crate) mod scheduler;
mod screen;

use std::path::Path;
use std::process::ExitCode;

use cosched::{Decision, Follow};
use pbs_job::graph::is_graph;
use pbs_launch::signals::Signals;
use pbs_node::device::kernel_release;
use pbs_node::{Answers, JobOutcome, Launch, Node, Settings, SlowdownSource, Submission};
use pbs_plan::{Dispatch, Plan};
use pbs_planner::plan_building::planner_config;
use pbs_report::gantt::gantt;
use pbs_report::{
    config_by_name, table, tier_name, EventView, Facts, Outcome, RecordedPlan, Recording, Report,
    Source,
};
use screen::Screen;
use serde::Serialize;
use serde_json::json;

use crate::config_option::with_numbers;
use crate::failure::{Failure, DEADLINE_MISSED, FAILED, INCOMPLETE, INTERRUPTED, NOT_ENDED};
use crate::jobs::slowdowns_of;
use crate::output::{to_json, write_err, Output};
use crate::{files, jobs};

pub(crate) use options::{ProfileOptions, RunOptions};

/// Word for slow-downs from earlier runs.
const HISTORY: &str = "history";

pub(crate) fn run(out: Output, path: &Path, options: &RunOptions) -> Result<ExitCode, Failure> {
    if options.resume {
        return resume(out, path, options);
    }
    let mut follow = None;
    let (mut node, launch) = match read(options)? {
        Work::Plan(plan) => {
            // What is wrong with a plan can be said without a device.
            let launch = Launch::of_plan(*plan, path, out.json, options.name())?;
            (open(out, path, options)?, Some(launch))
        }
        Work::Jobs(submissions) => {
            let mut node = open(out, path, options)?;
            let rate_insns_per_ms = node.info().rate_insns_per_ms;
            let machine = options.machine.read(|| Ok(rate_insns_per_ms))?;
            node.plan_jobs(machine.clone(), &settings(options, &node)?)?;
            use_slowdowns(&mut node, slowdowns(options)?)?;
            admitted::admit(&mut node, submissions, &machine, options)?;
            (node, None)
        }
        Work::Graphs => {
            let mut node = open(out, path, options)?;
            let rate_insns_per_ms = node.info().rate_insns_per_ms;
            let machine = options.machine.read(|| Ok(rate_insns_per_ms))?;
            let history = &options.history.path();
            let slowdowns = slowdowns(options)?;
            let entries = match &slowdowns {
                Some(SlowdownSource::File(entries)) => Some(&entries[..]),
                // The history knows no variants.
                Some(SlowdownSource::History) | None => None,
            };
            let mut decided = cosched::co_schedule(&options.files, &machine, history, entries)?;
            write_err(&decided.follow.decision.text());
            node.plan_jobs(machine, &settings(options, &node)?)?;
            use_slowdowns(&mut node, slowdowns)?;
            decided.follow.runs =
                node.admit_together(decided.submissions, &decided.steps, &options.name())?;
            follow = Some(decided.follow);
            (node, None)
        }
    };
    let signals = signals()?;
    let started = match launch {
        Some(launch) => node.start_plan(launch, &signals),
        None => start(&mut node, &signals),
    };
    if let Some(follow) = &mut follow {
        // What is over is forgotten.
        follow.note_processes(&node);
    }
    let followed = started.and_then(|()| node.follow(&signals));
    node.listener.clear();
    let outcome = node.end(followed, &signals)?;
    report(out, node, outcome, options, follow.as_ref())
}

/// Starts the jobs that were admitted: all of them, or it fails.
fn start(node: &mut Node<Screen>, signals: &Signals) -> Result<(), pbs_node::Error> {
    let failed = node.start(signals)?;
    failed.into_iter().next().map_or(Ok(()), |(_, why)| Err(why))
}

/// Takes over the jobs of a pbsctl that died, and follows them to their end.
fn resume(out: Output, path: &Path, options: &RunOptions) -> Result<ExitCode, Failure> {
    let mut node = open(out, path, options)?;
    let signals = signals()?;
    node.take_over(&settings(options, &node)?)?;
    let followed = node.follow(&signals);
    node.listener.clear();
    let outcome = node.end(followed, &signals)?;
    let jobs = outcomes(&mut node);
    let answers = node.answers();
    let mut all = json!({ "outcome": outcome, "jobs": jobs });
    if let (Some(answers), Some(all)) = (answers, all.as_object_mut()) {
        all.insert("scheduler".into(), json!(answers));
    }
    out.print(&all, || {
        outcome::table(&jobs) + &answers.map_or_else(String::new, scheduler::table)
    })?;
    Ok(match outcome {
        Outcome::Ended => of_jobs(&node, &jobs).unwrap_or(ExitCode::SUCCESS),
        _ => not_ended(outcome),
    })
}

/// Outcomes of the jobs, in the order of their numbers.
fn outcomes(node: &mut Node<Screen>) -> Vec<JobOutcome> {
    node.finish();
    let mut jobs = std::mem::take(&mut node.listener.jobs);
    jobs.sort_by_key(|job| job.run);
    jobs
}

fn open(out: Output, path: &Path, options: &RunOptions) -> Result<Node<Screen>, Failure> {
    let node_options = pbs_node::Options {
        lease_ns: options.lease,
        // With JSON nothing but pbsctl's own may be on standard output.
        output_to_error: out.json,
        learns_slowdowns: options.learn_slowdowns,
        ..pbs_node::Options::default()
    };
    let mut node = Node::open(path, node_options, Screen::new(!out.json))?;
    if let Some(command) = options.scheduler.command() {
        node.answer_with(command);
    }
    Ok(node)
}

fn signals() -> Result<Signals, Failure> {
    Signals::new().map_err(|error| Failure::file("signals", &error))
}

fn settings(options: &RunOptions, node: &Node<Screen>) -> Result<Settings, Failure> {
    // An order that was chosen for the sake of slow-downs or variants, or by a command, is kept.
    let is_by_command = options.admission.command().is_some();
    let has_order = options.slowdowns.is_some() || options.cosched || is_by_command;
    let mut config = planner_config(*node.config());
    if has_order {
        config.dispatch = Dispatch::Thesis as u64;
    }
    Ok(Settings {
        history: options.history.path(),
        // The service alone forgets what users have ordered from it.
        ended: pbs_history::EndedLimits::ENDLESS,
        account_of: pbs_node::AccountOf::default(),
        max_replans: options.max_replans,
        aim: pbs_node::Aim::Best,
        max_work: Settings::MAX_WORK,
        config: Some(with_numbers(&options.config, config)?),
    })
}

/// Reads the slow-downs, if they are requested.
fn slowdowns(options: &RunOptions) -> Result<Option<SlowdownSource>, Failure> {
    let source = options.slowdowns.as_ref().map(|path| match path.to_str() {
        Some(HISTORY) => Ok(SlowdownSource::History),
        _ => Ok(SlowdownSource::File(slowdowns_of(path)?)),
    });
    source.transpose()
}

/// Plans jobs with slow-downs, if there are any.
fn use_slowdowns(
    node: &mut Node<Screen>,
    slowdowns: Option<SlowdownSource>,
) -> Result<(), Failure> {
    match slowdowns {
        Some(source) => Ok(node.plan_with_slowdowns(source)?),
        None => Ok(()),
    }
}

/// Work to be run.
enum Work {
    Plan(Box<Plan>),
    Jobs(Vec<Submission>),
    Graphs,
}

/// A plan, or one or several jobs, or task graphs.
fn read(options: &RunOptions) -> Result<Work, Failure> {
    if options.cosched {
        return Ok(Work::Graphs);
    }
    let paths = &options.files;
    if paths.is_empty() && options.admission.command().is_some() {
        return Err(Failure::Usage(
            "--admission is for jobs that are named here; name their files, or leave it out".into(),
        ));
    }
    let mut submissions = Vec::new();
    for path in paths {
        let text = files::read(path)?;
        if is_graph(&text) {
            let file = files::name(path);
            return Err(Failure::Usage(format!(
                "{file} is a task graph, whose variants must be chosen; add --cosched"
            )));
        }
        if files::Kind::of(&text, files::Kind::Plan) != files::Kind::Job {
            if paths.len() > 1 {
                let file = files::name(path);
                return Err(Failure::Usage(format!(
                    "{file} is not a job; several files can only be run together if all are jobs"
                )));
            }
            if options.admission.command().is_some() {
                let file = files::name(path);
                return Err(Failure::Usage(format!(
                    "{file} is a plan, which needs no admission; leave --admission out, or name jobs"
                )));
            }
            let plan = files::plan_of(&text, path)?;
            refuse_options_of_jobs(options)?;
            return Ok(Work::Plan(Box::new(plan)));
        }
        let submission = jobs::job_of(text, path)?;
        let best_effort = options.best_effort;
        submissions.push(if best_effort { submission.as_best_effort() } else { submission });
    }
    Ok(Work::Jobs(submissions))
}

/// Refuses options that nothing reads where a plan is run: the plan decides what they would.
fn refuse_options_of_jobs(options: &RunOptions) -> Result<(), Failure> {
    let given = [
        ("--best-effort", options.best_effort),
        ("--config", !options.config.is_empty()),
        ("--machine", options.machine.is_named()),
        ("--slowdowns", options.slowdowns.is_some()),
    ];
    given.into_iter().find(|(_, is_given)| *is_given).map_or(Ok(()), |(option, _)| {
        Err(Failure::Usage(format!(
            "{option} is for jobs, and {} is a plan, which stands as it is in the file; leave \
             {option} out, or name jobs",
            options.name()
        )))
    })
}

/// Makes the recording of the run, for later views.
fn recording(node: &Node<Screen>, facts: &Facts) -> Recording {
    let Screen { plans, events, .. } = &node.listener;
    let config = plans.first().and_then(|plan| plan.config);
    Recording {
        version: Recording::VERSION,
        source: Source::Run,
        kernel: facts.kernel.clone(),
        tier: facts.tier.clone(),
        rate_insns_per_ms: facts.rate_insns_per_ms,
        outcome: facts.outcome,
        config: config_by_name(&config.unwrap_or(*node.config())),
        plans: plans.iter().map(RecordedPlan::from).collect(),
        events: events.iter().map(EventView::from).collect(),
    }
}

fn report(
    out: Output,
    mut node: Node<Screen>,
    outcome: Outcome,
    options: &RunOptions,
    follow: Option<&Follow>,
) -> Result<ExitCode, Failure> {
    let jobs = node.plans_jobs().then(|| outcomes(&mut node));
    let mut exits = node.exits();
    let jobs_of = jobs.iter().flatten();
    exits.extend(jobs_of.flat_map(|job| job.exits.clone()));
    let succeeded = exits.iter().all(pbs_report::Exit::success);
    let facts = Facts {
        kernel: kernel_release(),
        tier: tier_name(node.info().tier),
        rate_insns_per_ms: node.info().rate_insns_per_ms,
        exits,
        outcome,
    };
    let mut report = Report::of_plans(&node.listener.plans, &node.listener.events, &facts);
    report.deadlines = match (&jobs, node.listener.plans.first()) {
        (Some(jobs), _) => jobs.iter().filter_map(outcome::deadline).collect(),
        (None, Some(plan)) => report.implied_deadlines(plan, node.config()),
        (None, None) => Vec::new(),
    };
    let all = Recorded {
        recording: recording(&node, &facts),
        report: &report,
        jobs: jobs.as_deref(),
        cosched: follow.map(|follow| &follow.decision),
        scheduler: node.answers(),
    };
    let printed = out.print(&all, || {
        let jobs = jobs.as_deref().map_or_else(String::new, outcome::table);
        table(&report) + &jobs + &node.answers().map_or_else(String::new, scheduler::table)
    });
    let learnt = follow.map_or(Ok(()), |follow| follow.learn(&report, &options.history.path()));
    let report_file = options.report.as_deref();
    let gantt_file = options.gantt.as_deref();
    let kept = keep([(report_file, &|| to_json(&all) + "\n"), (gantt_file, &|| gantt(&report))]);
    printed?;
    if let Err(failure) = kept.and(learnt) {
        return Ok(out.tell_after(&failure));
    }
    // A run of plans has no jobs.
    let jobs = jobs.unwrap_or_default();
    Ok(match outcome {
        Outcome::Ended if !succeeded || !report.is_complete() => ExitCode::from(INCOMPLETE),
        Outcome::Ended => of_jobs(&node, &jobs).unwrap_or(ExitCode::SUCCESS),
        _ => not_ended(outcome),
    })
}

/// Writes all files that can be written: a run does not come again. The answer is what
/// failed first.
fn keep<const N: usize>(files: [(Option<&Path>, &dyn Fn() -> String); N]) -> Result<(), Failure> {
    let files = files.iter().filter_map(|(file, text)| Some(((*file)?, text)));
    let written = files.map(|(file, text)| files::write(file, &text()));
    // All are tried before the first failure is looked for.
    let written: Vec<_> = written.collect();
    written.into_iter().collect()
}

/// The exit status where all jobs have ended; `None`: as it should be.
fn of_jobs(node: &Node<Screen>, jobs: &[JobOutcome]) -> Option<ExitCode> {
    // Nothing is promised to best effort.
    if jobs.iter().any(|job| !job.kept && !job.best_effort) {
        return Some(ExitCode::from(DEADLINE_MISSED));
    }
    (!node.is_recorded()).then(|| ExitCode::from(FAILED))
}

/// The exit status of what did not come to its end.
fn not_ended(outcome: Outcome) -> ExitCode {
    match outcome {
        Outcome::Interrupted => ExitCode::from(INTERRUPTED),
        _ => ExitCode::from(NOT_ENDED),
    }
}

/// Stored result of a run: the recording, and the report that is made from it.
#[derive(Serialize)]
struct Recorded<'a> {
    #[serde(flatten)]
    recording: Recording,
    #[serde(flatten)]
    report: &'a Report,
    #[serde(skip_serializing_if = "Option::is_none")]
    jobs: Option<&'a [JobOutcome]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cosched: Option<&'a Decision>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scheduler: Option<&'a Answers>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_full_disk_does_not_keep_the_other_file_from_being_written() {
        let good = std::env::temp_dir().join(format!("pbsctl-keep-{}", std::process::id()));
        let text: &dyn Fn() -> String = &|| "drawn".into();
        let kept = keep([
            (Some(Path::new("/dev/full")), text),
            (None, &|| panic!("nobody asked for it")),
            (Some(&good), text),
        ]);
        let told = kept.unwrap_err().to_string();
        assert!(told.starts_with("pbsctl: /dev/full: No space left"), "{told}");
        assert_eq!(std::fs::read_to_string(&good).unwrap(), "drawn");
        std::fs::remove_file(&good).unwrap();
    }

    /// The answer of a run with each of its parts.
    #[test]
    fn the_answer_of_a_run_is_valid_under_its_schema() {
        let plan = "plan_id = 7\n[[process]]\nid = 1\nname = \"a\"\ntasks = [5_000, 9_000]\n\
                    [[cpu]]\ncpu = 0\nslots = [\"a\", \"idle 1k\", \"a\"]\n";
        let plan = pbs_plan::from_toml(plan).unwrap();
        let event = |kind: pbs_uapi::EventKind| pbs_uapi::Event {
            kind: kind as u16,
            plan_id: 7,
            process: 1,
            ..Default::default()
        };
        let events = [event(pbs_uapi::EventKind::Grant), event(pbs_uapi::EventKind::Late)];
        let facts = Facts {
            kernel: "7.1.0".into(),
            tier: "pmu".into(),
            rate_insns_per_ms: 1_000_000,
            exits: vec![pbs_report::Exit {
                process: 1,
                program: "true".into(),
                pid: 12,
                code: Some(3),
                signal: None,
                error: None,
            }],
            outcome: Outcome::Ended,
        };
        let mut report = Report::of_plans(std::slice::from_ref(&plan), &events, &facts);
        report.deadlines = report.implied_deadlines(&plan, &pbs_core::Config::DEFAULT);
        let recording = Recording {
            version: Recording::VERSION,
            source: Source::Run,
            kernel: facts.kernel.clone(),
            tier: facts.tier.clone(),
            rate_insns_per_ms: facts.rate_insns_per_ms,
            outcome: facts.outcome,
            config: config_by_name(&pbs_core::Config::DEFAULT),
            plans: vec![RecordedPlan::from(&plan)],
            events: events.iter().map(EventView::from).collect(),
        };
        let jobs = [outcome::failed()];
        let answers = Answers { command: "./a".into(), mean_ns: Some(5), ..Default::default() };
        let all = Recorded {
            recording,
            report: &report,
            jobs: Some(&jobs),
            cosched: Some(&cosched::a_decision()),
            scheduler: Some(&answers),
        };
        for schema in ["pbs.run/1", "pbs.profile/1"] {
            let mut answer = json!(all);
            answer["schema"] = json!(schema);
            assert_eq!(crate::schemas::Schemas::read().answer_problem(&answer), None);
        }
    }
}
