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
    ablation, admission, arrays, deadlines, deviations, idle, memory, resolution, strategies,
    stress, Error, Format, Options,
};
use pbs_study::Study;

use crate::compare_options::CompareOptions;
use crate::cosched::study::{Part, Parts};
use crate::failure::Failure;
use crate::files;
use crate::output::{write_err, Output};

const STUDY_HELP: &str = "\
Examples:
  pbsctl study deadlines
  pbsctl study deadlines --plans 100 --list 50
  pbsctl study idle --seed 7 --format rst
  pbsctl study memory --plans 100
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

    /// How many plans are generated [default: 1000; of compare and strategies 300, of
    /// stress 100]
    #[arg(
        long,
        global = true,
        value_name = "N",
        value_parser = clap::value_parser!(u64).range(1..=1_000_000)
    )]
    plans: Option<u64>,

    /// Another seed, other plans
    #[arg(long, global = true, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// How the tables are printed
    #[arg(long, global = true, value_enum, default_value = "text")]
    format: FormatName,
}

#[derive(Debug, Subcommand)]
enum StudyCommand {
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

    /// What each threshold buys: all on, each alone off, and none
    ///
    /// The same plans, with answers that stretch what is left and without any. --plans is
    /// how many.
    Ablation,

    /// What a preemption costs in plans of 100 to 1,000,000 tasks, by the policy that the
    /// kernel runs, and where tasks of an array are moved (Leppert 2021, 5.2)
    ///
    /// This measures time on this machine.
    Arrays,

    /// Compare plans with EDF, EEVDF, SCHED_DEADLINE and the optimum of a clairvoyant
    ///
    /// The jobs are those that scripts/compare-schedulers runs in the virtual machine: 20
    /// jobs with deadlines on one CPU. --plans is how many draws of them. Give several loads,
    /// errors, shapes or numbers of rogues for a table each.
    Compare(CompareOptions),

    /// Whether deviations average out, as the thesis assumes (Leppert 2021, 1.3 and 3.3.6)
    ///
    /// Processes of up to 1,000 tasks that deviate normally, in a skewed way, all by the
    /// same, or as a list says: how many tasks are late at all, how many processes are by
    /// more than their capacity buffer, with which power of the number of tasks lateness
    /// grows, and whether such deviations can be normal. --plans is how many processes.
    Deviations {
        /// A list of what tasks really took, retired by planned, a number a line; empty
        /// lines and what is behind # are left out
        #[arg(long, value_name = "FILE")]
        measured: Option<PathBuf>,

        /// Write figure 9 of the thesis, with 1,000 bins, into this directory
        #[arg(long, value_name = "DIR")]
        svg: Option<PathBuf>,
    },

    /// How precisely a node has to look at what is retired, and what that costs (Leppert
    /// 2021, 3.1.3)
    ///
    /// The same plans on nodes that have nothing but their tick, 250 or 1,000 times a
    /// second, on one with a timer, and on an ideal one.
    Resolution,

    /// Whether stress keeps a job scheduler from being overloaded, and what that costs
    /// (Leppert 2021, 3.3.6)
    ///
    /// Up to 16 nodes with one job scheduler that answers one after the other. --plans is
    /// how many clusters.
    Stress,

    /// How good the strategies of the planner are, with static and with dynamic balancing
    /// (Glaß 2024, 3.1 and 6.1.3)
    ///
    /// Small nets, planned by each strategy alone, by the rules together, and by local
    /// search; held against the best plan that a long search finds, and against a lower
    /// bound. --plans is how many nets.
    Strategies,

    /// Compare who gets idle slots and how much of them, and what becomes of tasks
    /// that are preempted again (Leppert 2021, 3.2.3)
    ///
    /// The same plans run under each idle_policy with each preemption_way, with the
    /// last slots of processes spared by t1 and cut by it. The tables have the policies,
    /// and the ways, with what the thesis chooses of the other; the JSON has all.
    Idle,

    /// How many jobs keep their deadlines on nodes with more and with less memory,
    /// if the planner looks at memory and if it does not (Glaß 2024)
    ///
    /// Eight jobs come at once, of three processes each, to a node with four cores.
    /// Of those that are admitted it is simulated what becomes of them, on a node
    /// that kills whoever finds no memory left, and on one that swaps (pbsctl sim
    /// --memory-over). What they really take of time and memory scatters.
    Memory,

    /// How often each level of the validation is right (Glaß 2024, 6.1.4)
    ///
    /// Small nets with deadlines from too short to ample. What a level says is held
    /// against what is known: a plan that keeps the deadline, found by a long search,
    /// or a lower bound that proves that there is none. --plans is how many nets.
    Admission,

    /// Make the figures of CooRMv2 and hold its claims against them (Klein and
    /// Pérez 2011)
    ///
    /// An adaptive mesh that cannot say beforehand how many nodes it will need, and
    /// parameter sweeps that take what it leaves, under the resource manager of pbsctl
    /// rms in virtual time.  Nothing of it is random but the meshes.
    Evolving(EvolvingOptions),

    /// Recompute what is claimed of co-scheduling (Rados 2019), and how far its
    /// schedulers are from the optimum
    ///
    /// Each claim stands beside what comes out, with a verdict. --plans is how many
    /// instances schedulers are tried on.
    Cosched {
        /// Only these parts, those of this machine's clock among them; without, claims and
        /// gaps
        #[arg(long, value_name = "PART", value_enum, value_delimiter = ',')]
        only: Vec<Part>,
    },
}

#[derive(Args, Debug)]
struct EvolvingOptions {
    /// Which figure, several times for several: 1 to 4 or 9 to 11; without, all
    #[arg(long, value_name = "N", value_parser = figure)]
    figure: Vec<u8>,

    /// How many meshes
    #[arg(
        long,
        value_name = "N",
        default_value_t = 50,
        value_parser = clap::value_parser!(u64).range(1..=10_000)
    )]
    meshes: u64,

    /// Memory of a node in MiB, for figure 4; the report does not say
    #[arg(long, value_name = "MIB", default_value_t = 4096.0)]
    node_memory: f64,

    /// Write the figures as pictures into this directory too
    #[arg(long, value_name = "DIR")]
    svg: Option<PathBuf>,
}

fn figure(text: &str) -> Result<u8, String> {
    let figure = text.parse().ok();
    figure
        .filter(|figure| evolving::FIGURES.contains(figure))
        .ok_or_else(|| "the figures are 1 to 4 and 9 to 11".into())
}

/// How tables are printed.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum FormatName {
    /// For the terminal
    Text,
    /// reStructuredText
    Rst,
}

pub(crate) fn study(out: Output, options: &StudyOptions) -> Result<ExitCode, Failure> {
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

/// How and where studies are printed.
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
                "{}:{line}: \"{text}\" is no ratio; write retired by planned, as 1.05",
                files::name(file)
            ))
        })?);
    }
    if ratios.len() < 2 {
        return Err(Failure::Usage(format!(
            "{} has less than two ratios; write one a line",
            files::name(file)
        )));
    }
    Ok(ratios)
}
