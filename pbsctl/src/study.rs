// SPDX-License-Identifier: GPL-2.0
//! The command that runs many generated plans in virtual time.

use std::fs;
use std::io::{self, stderr, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand, ValueEnum};
use pbs_rms_apps::study::Sample;
use pbs_study::compare;
use pbs_study::evolving::study as evolving;
use pbs_study::node::{
    ablation, admission, arrays, deadlines, deviations, idle, memory, messages, resolution,
    strategies, stress, Error, Format, Options,
};
use pbs_study::Study;

use crate::compare_options::CompareOptions;
use crate::cosched::study::{Part, Parts};
use crate::failure::Failure;
use crate::files;
use crate::given::{Conditional, Given};
use crate::output::{write_err, Output};

const STUDY_HELP: &str = "\
Examples:
  pbsctl study deadlines
  pbsctl study deadlines --plans 100 --list 50
  pbsctl study idle --seed 7 --format rst
  pbsctl study memory --plans 100
  pbsctl study messages --format rst
  pbsctl study admission --plans 200
  pbsctl study deviations --measured ratios.txt --svg figures
  pbsctl study strategies --plans 100
  pbsctl study evolving --figure 9 --svg figures
  pbsctl study compare --load 70,100,130 --svg figures
  pbsctl study compare --config sigma_t2_permille=1700 --scheduler plan,edf-admitted
  pbsctl study cosched --only claims
  pbsctl study cosched --only overheads,costs
  pbsctl --json study deadlines | jq '.cases[] | select(.kind == \"idle slot\")'

The same options give the same numbers on every machine, but arrays, and
overheads and costs of cosched.";

#[derive(Args, Debug)]
#[command(after_help = STUDY_HELP)]
pub(crate) struct StudyOptions {
    #[command(subcommand)]
    what: StudyCommand,

    /// Number of plans to generate [default: 1000; for compare and strategies 300, for stress
    /// 100]
    #[arg(
        long,
        global = true,
        value_name = "N",
        value_parser = clap::value_parser!(u64).range(1..=1_000_000)
    )]
    plans: Option<u64>,

    /// Seed of the plans
    #[arg(long, global = true, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Format of the tables
    #[arg(long, global = true, value_enum, default_value = "text")]
    format: FormatName,
}

#[derive(Debug, Subcommand)]
enum StudyCommand {
    /// Count met deadlines, and deadlines missed because of the policy (Leppert 2021, REQ-NF-2)
    ///
    /// The same plans run with all thresholds off and with more and more of them on. A process that
    /// meets its deadline with all off and misses it with some on misses it because of the policy.
    /// Such cases are counted by their cause, with the configurations that avoid them.
    Deadlines {
        /// Print this many of those cases
        #[arg(long, value_name = "N", default_value_t = 0)]
        list: usize,
    },

    /// Compare thresholds: all on, each one off, and none
    ///
    /// The same plans run with answers that stretch the rest, and without answers. --plans is their
    /// number.
    Ablation,

    /// Measure preemptions in plans of 100 to 1,000,000 tasks, with the policy of the kernel and
    /// with an array whose tasks are moved (Leppert 2021, 5.2)
    ///
    /// This measures time on this machine.
    Arrays,

    /// Compare plans with EDF, EEVDF, SCHED_DEADLINE and the optimum of a clairvoyant
    ///
    /// The jobs are those that scripts/compare-schedulers runs in the virtual machine: 20 jobs
    /// with deadlines on one CPU. --plans is the number of draws. Several loads, errors, shapes or
    /// numbers of rogues give a table each.
    Compare(Given<CompareOptions>),

    /// Test whether deviations average out, as the thesis assumes (Leppert 2021, 1.3 and 3.3.6)
    ///
    /// Processes have up to 1,000 tasks with normal, skewed, common or listed deviations. The
    /// tables have the share of late tasks, the processes that exceed their capacity buffer, the
    /// growth of lateness with the number of tasks, and a test for a normal distribution. --plans
    /// is the number of processes.
    Deviations {
        /// File with measured ratios of retired to planned instructions, one a line; empty lines
        /// and text after # are ignored
        #[arg(long, value_name = "FILE")]
        measured: Option<PathBuf>,

        /// Write figure 9 of the thesis, with 1,000 bins, to this directory
        #[arg(long, value_name = "DIR", value_parser = files::pictures())]
        svg: Option<PathBuf>,
    },

    /// Compare the precision and the cost of checks of retired instructions (Leppert 2021, 3.1.3)
    ///
    /// The same plans run on nodes with only a tick, 250 or 1,000 times a second, on one with a
    /// timer, and on an ideal one.
    Resolution,

    /// Test whether stress keeps a planner from being overloaded, and its cost (Leppert 2021,
    /// 3.3.6)
    ///
    /// Up to 16 nodes share one planner that answers one question after the other. --plans is the
    /// number of clusters.
    Stress,

    /// Compare the strategies of the planner, with static and with dynamic balancing (Glaß 2024,
    /// 3.1 and 6.1.3)
    ///
    /// Small nets are planned by each strategy alone, by all rules together, and by local search.
    /// The results are compared with the best plan of a long search and with a lower bound. --plans
    /// is the number of nets.
    Strategies,

    /// Compare the recipients of idle slots, and of tasks that are preempted again (Leppert 2021,
    /// 3.2.3)
    ///
    /// The same plans run under each idle_policy with each preemption_way, with t1 sparing the last
    /// slots of processes and cutting them. The tables have the policies and the ways, each with
    /// the thesis's choice of the other; the JSON has all combinations.
    Idle,

    /// Compare met deadlines on nodes with more and with less memory, if the planner considers
    /// memory and if it does not (Glaß 2024)
    ///
    /// Eight jobs of three processes each arrive at once at a node with four cores. The admitted
    /// jobs are simulated on a node that kills processes without memory, and on one that swaps
    /// (pbsctl sim --memory-over). Their real times and memory scatter.
    Memory,

    /// Compare met deadlines in nets with messages, with planned arrivals and with receivers that only
    /// block (Leppert 2021, 6.2.1)
    ///
    /// Each net of two CPUs runs without arrivals, without arrivals but with answers that move begun
    /// tasks to the front, with arrivals whose late messages are answered with the rest of the plan
    /// as it is, and with answers that also put receivers behind one or two tasks of others.
    /// --plans is the number of nets.
    Messages,

    /// Measure how often each level of the validation is right (Glaß 2024, 6.1.4)
    ///
    /// Small nets have deadlines from too short to ample. The answer of each level is compared with
    /// a plan that meets the deadline, found by a long search, or with a lower bound that proves
    /// that there is none. --plans is the number of nets.
    Admission,

    /// Draw the figures of CooRMv2 and check its claims (Klein and Pérez 2011)
    ///
    /// An adaptive mesh that cannot predict its number of nodes, and parameter sweeps that use the
    /// rest, run under the resource manager of pbsctl rms in virtual time. Only the meshes are
    /// random.
    Evolving(Given<EvolvingOptions>),

    /// Recompute the claims about co-scheduling (Rados 2019), and the distance of its schedulers
    /// from the optimum
    ///
    /// Each claim stands beside the recomputed value, with a verdict. --plans is the number of
    /// instances on which the schedulers are tried.
    Cosched {
        /// Compute only these parts; some measure time on this machine. The default is claims and
        /// gaps
        #[arg(long, value_name = "PART", value_enum, value_delimiter = ',')]
        only: Vec<Part>,
    },
}

#[derive(Args, Debug)]
struct EvolvingOptions {
    /// Number of a figure: 1 to 4 or 9 to 11; may be repeated [default: all]
    #[arg(long, value_name = "N", value_parser = figure)]
    figure: Vec<u8>,

    /// Number of meshes
    #[arg(
        long,
        value_name = "N",
        default_value_t = 50,
        value_parser = clap::value_parser!(u64).range(1..=10_000)
    )]
    meshes: u64,

    /// Memory of a node in MiB, for figure 4; the report does not have it
    #[arg(long, value_name = "MIB", default_value_t = 4096.0)]
    node_memory: f64,

    /// Write the figures as pictures to this directory too
    #[arg(long, value_name = "DIR", value_parser = files::pictures())]
    svg: Option<PathBuf>,
}

fn figure(text: &str) -> Result<u8, String> {
    let figure = text.parse().ok();
    figure
        .filter(|figure| evolving::FIGURES.contains(figure))
        .ok_or_else(|| "there is no such figure; write 1 to 4 or 9 to 11".into())
}

/// Format of tables.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum FormatName {
    /// For the terminal
    Text,
    /// reStructuredText
    Rst,
}

pub(crate) fn study(out: Output, options: &Given<StudyOptions>) -> Result<ExitCode, Failure> {
    refuse_unread(out, options)?;
    let format = match options.format {
        FormatName::Text => Format::Text,
        FormatName::Rst => Format::Rst,
    };
    let shows = stderr().is_terminal();
    let plans = options.plans.unwrap_or(match options.what {
        StudyCommand::Strategies | StudyCommand::Compare(_) => 300,
        StudyCommand::Stress => 100,
        _ => 1000,
    });
    let settings = Options {
        plans,
        seed: options.seed,
        done: &|done| {
            if shows && (done % 16 == 0 || done == plans) {
                write_err(&format!("\r{done} of {plans} plans "));
            }
        },
    };
    let print = Print { out, format, shows };
    match &options.what {
        StudyCommand::Deadlines { list } => print.counted(deadlines::study(&settings, *list), None),
        StudyCommand::Ablation => print.counted(ablation::study(&settings), None),
        StudyCommand::Arrays => print.study(&arrays::study()?, None),
        StudyCommand::Deviations { measured, svg } => {
            let measured = measured.as_deref().map(ratios).transpose()?;
            let study = deviations::study(&settings, &measured.unwrap_or_default());
            print.counted(study, svg.as_deref())
        }
        StudyCommand::Resolution => print.counted(resolution::study(&settings), None),
        StudyCommand::Stress => print.counted(stress::study(&settings), None),
        StudyCommand::Strategies => print.counted(strategies::study(&settings), None),
        StudyCommand::Memory => print.counted(memory::study(&settings), None),
        StudyCommand::Messages => print.counted(messages::study(&settings), None),
        StudyCommand::Admission => print.counted(admission::study(&settings), None),
        StudyCommand::Evolving(wanted) => {
            let sample = Sample { seed: options.seed, meshes: wanted.meshes };
            let study = evolving::evolving(
                &evolving::Options {
                    sample,
                    figures: wanted.figure.clone(),
                    node_mib: wanted.node_memory,
                },
                |figure| {
                    if shows {
                        write_err(&format!("\rfigure {figure} "));
                    }
                },
            );
            print.counted(Ok(study), wanted.svg.as_deref())
        }
        StudyCommand::Cosched { only } => {
            let instances = usize::try_from(plans).unwrap_or(0);
            print.study(&Parts::new(only, instances, options.seed), None)
        }
        StudyCommand::Compare(wanted) => {
            let study = compare::study(&settings, &wanted.parameters()?);
            print.counted(study, wanted.svg.as_deref())
        }
        StudyCommand::Idle => print.counted(idle::study(&settings), None),
    }?;
    Ok(ExitCode::SUCCESS)
}

/// Refuses options that the study does not read.
fn refuse_unread(out: Output, options: &Given<StudyOptions>) -> Result<(), Failure> {
    let has_plans = !matches!(options.what, StudyCommand::Arrays | StudyCommand::Evolving(_));
    let plans = "a study of plans, which arrays and evolving are not";
    let has_seed = !matches!(options.what, StudyCommand::Arrays);
    let seed = "a study with random numbers, which arrays is not";
    options.refuse_unread(&[
        Conditional { field: "plans", is_read: has_plans, needs: plans },
        Conditional { field: "seed", is_read: has_seed, needs: seed },
        Conditional { field: "format", is_read: !out.json, needs: "tables, which --json has not" },
    ])?;
    match &options.what {
        StudyCommand::Evolving(wanted) => {
            let has_figure = wanted.figure.is_empty() || wanted.figure.contains(&4);
            let needs = "figure 4 (--figure 4)";
            let memory = Conditional { field: "node_memory", is_read: has_figure, needs };
            wanted.refuse_unread(&[memory])
        }
        StudyCommand::Compare(wanted) => {
            let needs = "--rogues of more than 0";
            let is_read = wanted.has_rogues();
            wanted.refuse_unread(&[Conditional { field: "rogue_factor", is_read, needs }])
        }
        _ => Ok(()),
    }
}

/// Format and destination of the output of studies.
struct Print {
    out: Output,
    format: Format,
    /// Whether a line of standard error shows how far the study is.
    shows: bool,
}

impl Print {
    /// Ends the line that counts, and prints the study.
    fn counted(
        &self,
        study: Result<impl Study, Error>,
        pictures: Option<&Path>,
    ) -> Result<(), Failure> {
        if self.shows {
            write_err("\n");
        }
        self.study(&study?, pictures)
    }

    /// Prints a study, and writes its pictures into a directory.
    fn study(&self, study: &impl Study, pictures: Option<&Path>) -> Result<(), Failure> {
        if let Some(directory) = pictures {
            write_pictures(directory, study.pictures())?;
        }
        self.out.print(study, || study.text(self.format))
    }
}

fn write_pictures(
    directory: &Path,
    pictures: impl IntoIterator<Item = (impl AsRef<Path>, String)>,
) -> Result<(), Failure> {
    let failed = |path: &Path, error: io::Error| Failure::file(path, &error);
    fs::create_dir_all(directory).map_err(|error| failed(directory, error))?;
    for (name, picture) in pictures {
        let path = directory.join(name);
        fs::write(&path, picture).map_err(|error| failed(&path, error))?;
    }
    Ok(())
}

/// The numbers of a list of ratios.
fn ratios(file: &Path) -> Result<Vec<f64>, Failure> {
    let text = files::read(file)?;
    let mut ratios = Vec::new();
    for (line, text) in (1..).zip(text.lines()) {
        let text = text.split('#').next().unwrap_or_default().trim();
        if text.is_empty() {
            continue;
        }
        let ratio: Option<f64> = text.parse().ok();
        let ratio = ratio.filter(|ratio| ratio.is_finite() && *ratio >= 0.0);
        ratios.push(ratio.ok_or_else(|| {
            Failure::Usage(format!(
                "{}:{line}: \"{text}\" is not a ratio; write retired / planned, such as 1.05",
                files::name(file)
            ))
        })?);
    }
    if ratios.len() < 2 {
        return Err(Failure::Usage(format!(
            "{} has fewer than two ratios; write one a line",
            files::name(file)
        )));
    }
    Ok(ratios)
}
