// SPDX-License-Identifier: GPL-2.0
//! The commands that co-schedule task graphs, without running them.

mod options;
pub(crate) mod study;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use pbs_cosched::MOST_TASKS;
use pbs_cosched_report::lanes::Question;
use pbs_cosched_report::{
    compare, explain, plan, sim, Case, Planned, SchedulerName, Settings, Slowed,
};
use pbs_job::graph::Graph;
use pbs_job::{job_to_toml, Machine};
use pbs_node::device::rate_insns_per_ms;
use pbs_node::sharing;
use pbs_report::placements_picture;
use pbs_text::grouped;
use serde::Serialize;

use crate::csi::{self, CsiOptions};
use crate::failure::Failure;
use crate::files;
use crate::history_file::HistoryFile;
use crate::interference::{self, InterferenceOptions};
use crate::jobs::{graphs_of, question, slowdowns_of, MachineFile};
use crate::output::{counted, Output};
use options::{At, DecisionOptions};

const COSCHED_HELP: &str = "\
Examples:
  cd samples/cosched
  pbsctl cosched plan p1.toml p2.toml --machine machine.toml
  pbsctl cosched plan p1.toml p2.toml --machine machine.toml --at 1ns --scheduler greedy
  pbsctl cosched explain p1.toml p2.toml --machine machine.toml --scheduler greedy
  pbsctl cosched sim p1.toml p2.toml --machine machine.toml -o schedule.html
  pbsctl cosched compare mandelbrot.toml filter.toml --machine node.toml

Each workload is a task graph: a process whose tasks have several variants. The process arrives
at its start_ns (Documentation/jobs.rst). Nothing is started, and root is not needed.
Documentation/coscheduling.rst describes the schedulers.";

const PLAN_HELP: &str = "\
Examples:
  pbsctl cosched plan p1.toml p2.toml --machine machine.toml
  pbsctl cosched plan p1.toml p2.toml --machine machine.toml --at 1ns -o schedule.svg
  pbsctl cosched plan urgent.toml --machine machine.toml --jobs lanes
  pbsctl --json cosched plan p1.toml p2.toml | jq '.measures.speed_up'

The scheduler knows all tasks of all processes at once, including processes that arrive later.
A mapping that is worse than not co-scheduling is rejected.";

const EXPLAIN_HELP: &str = "\
Examples:
  pbsctl cosched explain p1.toml p2.toml --machine machine.toml --scheduler greedy
  pbsctl cosched explain p1.toml p2.toml --machine machine.toml --at 1ns --cost 5ms

Prints the answer of each determination to the process that arrives last. For the greedy
scheduler it prints which task won which accelerator in which round. For each task it prints
the other variants, with the end of the task and of everything if only that were different.";

const SIM_HELP: &str = "\
Examples:
  pbsctl cosched sim p1.toml p2.toml --machine machine.toml --scheduler greedy
  pbsctl cosched sim p1.toml p2.toml --machine machine.toml --determination speedup --cost 5ms

Processes arrive one after the other. At each arrival the determination decides whether all
tasks that have not started are mapped again. Otherwise the new process takes its fastest
variants. --determination defaults to contention.";

const COMPARE_HELP: &str = "\
Examples:
  pbsctl cosched compare p1.toml p2.toml --machine machine.toml
  pbsctl cosched compare p1.toml p2.toml --machine machine.toml --priority runtime --cost 5ms

Simulates the workloads under each scheduler and each determination, as sim does.";

#[derive(Args, Debug)]
#[command(after_help = COSCHED_HELP)]
pub(crate) struct CoschedOptions {
    #[command(subcommand)]
    command: CoschedCommand,
}

#[derive(Debug, Subcommand)]
enum CoschedCommand {
    /// Map all waiting tasks once
    Plan(PlanOptions),
    /// Map the tasks, and explain the choice for each
    Explain(ExplainOptions),
    /// Simulate processes that arrive one after the other, in virtual time
    Sim(SimOptions),
    /// Compare all schedulers and determinations
    Compare(CompareOptions),
    /// Measure, show and predict how tasks slow each other down
    Interference(InterferenceOptions),
    /// Show the data that co-scheduled processes share, and remove leftovers
    Csi(CsiOptions),
}

/// Rate for workloads in which no task is given in instructions.
const ANY_RATE_INSNS_PER_MS: u64 = 1_000_000;

/// Workloads and the machine to co-schedule them on.
#[derive(Args, Debug)]
struct Workloads {
    /// Task graphs in TOML or JSON, one for each process; - reads standard input
    #[arg(required = true, value_name = "WORKLOAD")]
    workloads: Vec<PathBuf>,

    #[command(flatten)]
    machine: MachineFile,

    #[command(flatten)]
    history: HistoryFile,
}

/// Slow-downs of tasks that run at the same time.
#[derive(Args, Debug)]
struct SlowdownFile {
    /// Apply the slow-downs of this file (pbsctl cosched interference) to tasks that run at the
    /// same time; all decisions regard them, but not those of the random schedulers
    #[arg(id = "slowdowns", long = "slowdowns", value_name = "FILE")]
    path: Option<PathBuf>,
}

impl SlowdownFile {
    /// Reads the slow-downs in the file of the tasks that were read, if a file is named.
    fn read(&self, read: &Read) -> Result<Option<Slowed>, Failure> {
        let Some(path) = &self.path else {
            return Ok(None);
        };
        let entries = slowdowns_of(path)?;
        let cpus: Vec<u32> = read.machine.cpus().collect();
        let sharing = sharing(&read.machine).or_as_in(&entries, &cpus);
        let slowed = Slowed::new(&read.question, &entries, sharing);
        match slowed.known() {
            0 if !entries.is_empty() => Err(Failure::Usage(format!(
                "{} has no slow-down of these tasks; name them as PROCESS, PROCESS/TASK or \
                 PROCESS/TASK@VARIANT, with the workload's name for PROCESS",
                files::name(path)
            ))),
            _ => Ok(Some(slowed)),
        }
    }
}

/// A picture of what was decided.
#[derive(Args, Debug)]
struct PictureFile {
    /// Draw the schedule to FILE: as a page if its name ends in .html, as SVG if it ends in .svg
    #[arg(id = "picture", long = "output", short = 'o', value_name = "FILE",
          value_parser = picture_file)]
    path: Option<PathBuf>,
}

/// A file whose extension selects the format.
fn picture_file(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    if ends_in(&path, "html") || ends_in(&path, "svg") {
        Ok(path)
    } else {
        Err("the extension selects the format; name a file that ends in .svg, or in .html for a \
             page"
            .into())
    }
}

fn ends_in(path: &Path, wanted: &str) -> bool {
    path.extension().is_some_and(|end| end.eq_ignore_ascii_case(wanted))
}

impl PictureFile {
    /// Writes the picture or the page, if one is asked for.
    fn write(
        &self,
        written: &mut Vec<String>,
        picture: impl FnOnce() -> String,
        page: impl FnOnce() -> String,
    ) -> Result<(), Failure> {
        let Some(path) = &self.path else {
            return Ok(());
        };
        let is_page = ends_in(path, "html");
        files::write(path, &if is_page { page() } else { picture() })?;
        written.push(path.display().to_string());
        Ok(())
    }
}

/// Input and options of a decision.
#[derive(Args, Debug)]
struct Given {
    #[command(flatten)]
    workloads: Workloads,

    #[command(flatten)]
    decision: DecisionOptions,

    #[command(flatten)]
    slowdowns: SlowdownFile,
}

#[derive(Args, Debug)]
#[command(after_help = PLAN_HELP)]
struct PlanOptions {
    #[command(flatten)]
    given: Given,

    #[command(flatten)]
    at: At,

    #[command(flatten)]
    picture: PictureFile,

    /// Write the mapping as jobs of lanes into this directory: a file for each workload
    /// (Documentation/jobs.rst), for pbsctl run and pbsctl submit
    #[arg(long, value_name = "DIR")]
    jobs: Option<PathBuf>,
}

#[derive(Args, Debug)]
#[command(after_help = EXPLAIN_HELP)]
struct ExplainOptions {
    #[command(flatten)]
    given: Given,

    #[command(flatten)]
    at: At,
}

#[derive(Args, Debug)]
#[command(after_help = SIM_HELP)]
struct SimOptions {
    #[command(flatten)]
    given: Given,

    #[command(flatten)]
    picture: PictureFile,
}

#[derive(Args, Debug)]
#[command(after_help = COMPARE_HELP)]
struct CompareOptions {
    #[command(flatten)]
    workloads: Workloads,

    #[command(flatten)]
    decision: options::HowOptions,

    #[command(flatten)]
    slowdowns: SlowdownFile,
}

pub(crate) fn cosched(
    out: Output,
    device: &Path,
    options: &CoschedOptions,
) -> Result<ExitCode, Failure> {
    match &options.command {
        CoschedCommand::Interference(options) => {
            return interference::interference(out.named("interference"), options);
        }
        CoschedCommand::Csi(options) => return csi::csi(out.named("csi"), options),
        CoschedCommand::Plan(options) => {
            let mut read = options.given.workloads.read(device)?;
            if options.jobs.is_some() {
                read.question = read.question.for_plans();
            }
            let (case, settings) = options.given.case(&read, options.at.ns, Case::waiting)?;
            let planned = plan(&case, &settings);
            let planned = planned.map_err(Failure::Failed)?;
            let mut written = Vec::new();
            if let Some(directory) = &options.jobs {
                written =
                    write_jobs(directory, &options.given.workloads.workloads, &read, &planned)?;
            }
            options.picture.write(
                &mut written,
                || placements_picture(&planned.placements(&case)),
                || planned.page(&case),
            )?;
            let answer = Answer::new(&planned, &read, written);
            let out = out.named("cosched-plan");
            out.print(&answer, || answer.text(planned.text()))?;
        }
        CoschedCommand::Explain(options) => {
            let read = options.given.workloads.read(device)?;
            let (case, settings) = options.given.case(&read, options.at.ns, Case::waiting)?;
            let explanation = explain(&case, &settings);
            let explanation = explanation.map_err(Failure::Failed)?;
            let answer = Answer::new(&explanation, &read, Vec::new());
            let out = out.named("cosched-explain");
            out.print(&answer, || answer.text(explanation.text()))?;
        }
        CoschedCommand::Sim(options) => {
            let read = options.given.workloads.read(device)?;
            let all = |case: &Case<'_>| case.workload.tasks.len();
            let (case, settings) = options.given.case(&read, 0, all)?;
            let simulated = sim(&case, &settings).map_err(Failure::NotValid)?;
            let mut written = Vec::new();
            options.picture.write(
                &mut written,
                || placements_picture(&simulated.placements(&case)),
                || simulated.page(&case),
            )?;
            let answer = Answer::new(&simulated, &read, written);
            let out = out.named("cosched-sim");
            out.print(&answer, || answer.text(simulated.text()))?;
        }
        CoschedCommand::Compare(options) => {
            let read = options.workloads.read(device)?;
            let mut case = case(&read.question, 0)?;
            case.slowed = options.slowdowns.read(&read)?;
            let settings = options.decision.settings()?;
            let compared = compare(&case, &settings).map_err(Failure::NotValid)?;
            let out = out.named("cosched-compare");
            let answer = Answer::new(&compared, &read, Vec::new());
            out.print(&answer, || answer.text(compared.text()))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The input, as it was read.
struct Read {
    graphs: Vec<Graph>,
    machine: Machine,
    question: Question,
    /// Number of variants whose run times come from the history.
    profiled: usize,
}

impl Workloads {
    /// Reads all files; problems are reported for all tasks at once.
    fn read(&self, device: &Path) -> Result<Read, Failure> {
        let graphs = graphs_of(&self.workloads)?;
        let tasks = graphs.iter().flat_map(|graph| &graph.tasks);
        let mut all = tasks.flat_map(|task| &task.variants);
        // With all times known no rate is needed, and no kernel with the class.
        let needs_rate = all.any(|variant| variant.runtime_ns.is_none());
        let machine = self.machine.read(|| {
            if needs_rate {
                rate_insns_per_ms(device)
            } else {
                Ok(ANY_RATE_INSNS_PER_MS)
            }
        })?;
        let (question, profiled) = question(&graphs, &machine, &self.history.path())?;
        Ok(Read { graphs, machine, question, profiled })
    }
}

impl Given {
    /// Builds the case at a time, and the settings of the decision; `tasks` counts the tasks to be
    /// mapped.
    fn case<'r>(
        &self,
        read: &'r Read,
        at_ns: u64,
        tasks: impl Fn(&Case<'r>) -> usize,
    ) -> Result<(Case<'r>, Settings), Failure> {
        let mut case = case(&read.question, at_ns)?;
        case.slowed = self.slowdowns.read(read)?;
        let settings = self.decision.settings(&self.workloads.history.path())?;
        let settings = few_enough(settings, tasks(&case))?;
        Ok((case, settings))
    }
}

/// Refuses the oracle for more tasks than it takes.
fn few_enough(settings: Settings, tasks: usize) -> Result<Settings, Failure> {
    match settings.who {
        SchedulerName::Oracle if tasks > MOST_TASKS => Err(Failure::Usage(format!(
            "the oracle takes at most {MOST_TASKS} tasks, and these are {}; use --scheduler best, \
             which uses the oracle only for few tasks",
            grouped(tasks as u64)
        ))),
        _ => Ok(settings),
    }
}

fn case(question: &Question, at_ns: u64) -> Result<Case<'_>, Failure> {
    Case::new(question, at_ns).map_err(Failure::NotValid)
}

/// An answer, where its times are from, and the files that were written.
#[derive(Serialize)]
struct Answer<'a, T> {
    #[serde(flatten)]
    answer: &'a T,
    profiled: usize,
    written: Vec<String>,
}

impl<'a, T> Answer<'a, T> {
    fn new(answer: &'a T, read: &Read, written: Vec<String>) -> Self {
        Self { answer, profiled: read.profiled, written }
    }

    fn text(&self, mut text: String) -> String {
        if self.profiled > 0 {
            let many = counted(self.profiled as u64, "run time is", "run times are");
            text += &format!("{many} from the history.\n");
        }
        for file in &self.written {
            text += &format!("{file}: written\n");
        }
        text
    }
}

/// Writes the jobs of lanes, called as the workloads.
fn write_jobs(
    directory: &Path,
    workloads: &[PathBuf],
    read: &Read,
    planned: &Planned,
) -> Result<Vec<String>, Failure> {
    let (mapping, timeline) = (&planned.mapping, &planned.timeline);
    let jobs = pbs_cosched_report::lanes::jobs(
        &read.question,
        &read.graphs,
        &read.machine,
        mapping,
        timeline,
    );
    let jobs = jobs.map_err(|cannot| Failure::NotValid(vec![cannot.to_string()]))?;
    fs::create_dir_all(directory).map_err(|error| Failure::file(directory, &error))?;
    let mut written: Vec<String> = Vec::new();
    for (number, (workload, lowered)) in (1..).zip(workloads.iter().zip(&jobs)) {
        let name = workload.file_stem().unwrap_or(workload.as_os_str());
        let mut file = directory.join(name).with_extension("toml");
        if written.contains(&file.display().to_string()) {
            let name = format!("{}-{number}.toml", name.to_string_lossy());
            file = directory.join(name);
        }
        files::write(&file, &job_to_toml(&lowered.job))?;
        written.push(file.display().to_string());
    }
    Ok(written)
}
