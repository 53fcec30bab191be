// SPDX-License-Identifier: GPL-2.0
//! `pbsctl plan show`: the plan of jobs before they run.

mod schedule;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use pbs_node::{Answered, Declined, Planning};
use pbs_plan::{to_toml, Config, Plan};
use pbs_planner::plan_building::{
    class_plans, csv, planner_config, Entry, NodePlan, ProcessIds, Settings,
};
use pbs_report::{schedule_chart, schedule_picture, schedule_tables, Schedule};
use serde::Serialize;

use crate::complete;
use crate::config_option::with_numbers;
use crate::failure::Failure;
use crate::files;
use crate::jobs;
use crate::output::Output;
use crate::planning::{history_file, nanoseconds, MachineView, PlanningOptions};

const SHOW_HELP: &str = "\
Examples:
  pbsctl plan show job.toml --machine lab.toml
  pbsctl plan show a.toml b.toml --gantt plan.svg    One after the other, as a picture
  pbsctl plan show job.toml --strategy critical-path With one strategy only
  pbsctl plan show job.toml --output plan.toml       For plan check, sim, plan load and run
  pbsctl plan show job.toml --machine glass.toml --whole-rate --csv plan.csv

The machine is assumed to be empty, and times count from the time at which the plan comes into
force. pbsctl job explain includes the time until then (--lead) and tells whether a job meets its
deadline. Nothing is reserved or started, and root is not needed.

The output has a table for each core, a chart of the cores with a letter for each process, a
chart of the memory of their node, and one for each resource that is held. Tasks without instructions take no time and are left out.

If a job is declined, nothing is written and the exit status is 6; pbsctl job explain gives the
details. pbsctl plan dump shows the present plan of a CPU.";

/// Columns where the width of the terminal is not known.
const WIDTH: usize = 80;
/// Wider charts are no clearer.
const MOST_WIDTH: usize = 160;

#[derive(Args, Debug)]
#[command(after_help = SHOW_HELP)]
pub(crate) struct PlanShowOptions {
    /// Jobs in TOML or JSON; - reads standard input
    #[arg(value_name = "JOB")]
    jobs: Vec<PathBuf>,

    #[command(flatten)]
    planning: PlanningOptions,

    /// Draw the plan to FILE, as SVG
    #[arg(long, value_name = "FILE", value_parser = files::picture())]
    gantt: Option<PathBuf>,

    /// Write the plan of a node to FILE, in TOML, as the kernel executes it
    #[arg(long, short, value_name = "FILE", value_parser = files::toml_file())]
    output: Option<PathBuf>,

    /// Node whose plan is written, if the jobs use several
    #[arg(long, value_name = "NAME", requires = "output")]
    node: Option<String>,

    /// Number of the plan that is written
    #[arg(long, value_name = "N", default_value_t = 1, requires = "output")]
    plan_id: u64,

    /// Let processes in the written plan also wait for those whose memory they get
    #[arg(long, requires = "output")]
    memory_order: bool,

    /// Set a number of the policy in the plan that --output writes, as in [config] of a plan; with
    /// dispatch=thesis slots stay where they are planned
    #[arg(long, value_name = "KEY=VALUE", requires = "output", add = complete::config_keys())]
    config: Vec<String>,

    /// Write the plan of one job to FILE in the format of Glaß's prototype (listing 8), with times
    /// in ticks of the machine
    #[arg(long, value_name = "FILE", value_parser = files::csv_file())]
    csv: Option<PathBuf>,
}

pub(crate) fn show(
    out: Output,
    device: &Path,
    options: &PlanShowOptions,
) -> Result<ExitCode, Failure> {
    if options.jobs.is_empty() {
        return Err(Failure::Usage(
            "name the jobs to plan, such as pbsctl plan show job.toml --machine lab.toml; pbsctl \
             plan dump --cpu N shows the present plan of a CPU"
                .into(),
        ));
    }
    if options.csv.is_some() && options.jobs.len() > 1 {
        return Err(Failure::Usage(
            "--csv identifies tasks by their number only and takes one job; write a file for each \
             job"
            .into(),
        ));
    }
    files::refuse_same(&[
        ("--output", options.output.as_deref()),
        ("--gantt", options.gantt.as_deref()),
        ("--csv", options.csv.as_deref()),
    ])?;
    let jobs = jobs::read(&options.jobs)?;
    let mut planning = options.planning.planning(device)?;
    let mut planned = Vec::new();
    for submission in jobs {
        let answered = planning.admit(submission)?;
        if let Err(declined) = &answered.answer {
            return Err(Failure::Declined(Declined {
                why: declined.describe(&answered.job, 0),
                earliest_deadline_ns: planning.earliest_deadline(&answered).deadline_ns,
                job: answered.job.name,
                file: answered.submission.file,
            }));
        }
        planned.push(answered);
    }
    let schedule = schedule::schedule(&planning, &planned);
    // All that can fail is done before anything is written.
    let plan = match &options.output {
        Some(_) => Some(class_plan(&planning, &planned, options)?),
        None => None,
    };
    let csv = match planned.first() {
        Some(first) if options.csv.is_some() => csv(&planning.store, first.run, &first.job),
        _ => None,
    };
    let mut written = Vec::new();
    let files = [
        (&options.output, plan.as_ref().map(to_toml)),
        (&options.gantt, Some(schedule_picture(&schedule))),
        (&options.csv, csv),
    ];
    for (file, text) in files {
        if let (Some(file), Some(text)) = (file, text) {
            files::write(file, &text)?;
            written.push(file.display().to_string());
        }
    }
    let view = View {
        machine: MachineView::new(&planning.store),
        history: history_file(&planning),
        jobs: planned.iter().filter_map(JobView::new).collect(),
        schedule,
        written,
    };
    out.print(&view, || view.text())?;
    Ok(ExitCode::SUCCESS)
}

/// The plan of the node that is asked for, or of the only one.
fn class_plan(
    planning: &Planning,
    planned: &[Answered],
    options: &PlanShowOptions,
) -> Result<Plan, Failure> {
    let config = with_numbers(&options.config, planner_config(Config::DEFAULT))?;
    let entries = planned.iter().map(|answered| Entry {
        run: answered.run,
        job: &answered.job,
        progress: &[],
        deadline_ns: answered.job.deadline_ns,
    });
    let entries: Vec<_> = entries.collect();
    let settings = Settings {
        plan_id: options.plan_id,
        memory_order: options.memory_order,
        // A plan without one has that of its node.
        config: Some(config).filter(|config| *config != Config::DEFAULT),
        ..Settings::default()
    };
    let mut ids = ProcessIds::default();
    let plans = class_plans(&planning.store, &entries, &mut ids, &settings);
    let plans = plans.map_err(|problems| {
        let messages: Vec<_> = problems.into_iter().map(|p| p.message).collect();
        Failure::Failed(format!("the plan is not valid for the kernel: {}", messages.join("; ")))
    })?;
    let nodes = &planning.store.machine().nodes;
    let name = |plan: &NodePlan| nodes[plan.node].name.clone();
    let names: Vec<_> = plans.iter().map(name).collect();
    let found = match &options.node {
        Some(wanted) => names.iter().position(|name| name == wanted),
        None if names.len() == 1 => Some(0),
        None => None,
    };
    match (found, plans) {
        (Some(index), mut plans) => Ok(plans.swap_remove(index).plan),
        (None, plans) if plans.is_empty() => Err(Failure::Usage(
            "no task of the jobs has instructions, and there is no plan to write; leave out \
             --output"
                .into(),
        )),
        (None, _) => Err(Failure::Usage(format!(
            "the jobs have tasks on {}; name one of them with --node",
            names.join(", ")
        ))),
    }
}

#[derive(Serialize)]
struct View<'a> {
    machine: MachineView,
    /// The file of the runs before; `None`: there is none.
    history: Option<&'a str>,
    jobs: Vec<JobView>,
    schedule: Schedule,
    /// The files that were.
    written: Vec<String>,
}

/// Planning of a job.
#[derive(Serialize)]
struct JobView {
    file: String,
    job: String,
    strategy: &'static str,
    end_ns: u64,
    deadline_ns: u64,
    /// From the end to the deadline.
    slack_ns: u64,
}

impl JobView {
    fn new(answered: &Answered) -> Option<Self> {
        // A job that is refused has no picture; the refusal is printed instead.
        let planned = answered.answer.as_ref().ok()?;
        let deadline_ns = answered.job.deadline_ns;
        Some(Self {
            file: answered.submission.file.clone(),
            job: answered.job.name.clone(),
            strategy: planned.strategy.name(),
            end_ns: planned.end_ns,
            deadline_ns,
            slack_ns: deadline_ns.saturating_sub(planned.end_ns),
        })
    }
}

impl View<'_> {
    fn text(&self) -> String {
        let mut text = String::new();
        for job in &self.jobs {
            text += &format!(
                "{}: job {} ends at {}, {} before its deadline ({})\n",
                job.file,
                job.job,
                nanoseconds(job.end_ns),
                nanoseconds(job.slack_ns),
                job.strategy
            );
        }
        text.push('\n');
        text += &schedule_tables(&self.schedule);
        text += &schedule_chart(&self.schedule, width());
        for file in &self.written {
            text += &format!("{file}: written\n");
        }
        text
    }
}

/// Number of columns of the terminal.
fn width() -> usize {
    let terminal = terminal_size::terminal_size();
    let columns = terminal.map(|(width, _)| usize::from(width.0));
    let said = || std::env::var("COLUMNS").ok()?.parse().ok();
    columns.or_else(said).unwrap_or(WIDTH).min(MOST_WIDTH)
}
