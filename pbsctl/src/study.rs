// SPDX-License-Identifier: GPL-2.0
//! The command that runs many generated plans in virtual time.

use std::io::{stderr, IsTerminal};
use std::process::ExitCode;

use clap::{Args, Subcommand, ValueEnum};
use pbs_study::{admission, deadlines, idle, memory, Format, Options};

use crate::failure::Failure;
use crate::output::{write_err, Output};

const STUDY_HELP: &str = "\
Examples:
  pbsctl study deadlines
  pbsctl study deadlines --plans 100 --list 50
  pbsctl study idle --seed 7 --format rst
  pbsctl study memory --plans 100
  pbsctl study admission --plans 200
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
    format: FormatName,
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

    /// How often each level of the validation is right (Glaß 2024, 6.1.4)
    ///
    /// Small nets with deadlines from too short to ample. What a level says is held
    /// against what is known: a plan that keeps the deadline, found by a long search,
    /// or a lower bound that proves that there is none. --plans is how many nets.
    Admission,
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
    let plans = options.plans;
    let settings = Options {
        plans,
        seed: options.seed,
        done: &|done| {
            if shows && (done % 16 == 0 || done == plans) {
                write_err(&format!("\r{done} of {plans} plans "));
            }
        },
    };
    let end_line = || {
        if shows {
            write_err("\n");
        }
    };
    match options.what {
        What::Deadlines { list } => {
            let study = deadlines::study(&settings);
            end_line();
            let study = study?;
            out.print(&study, || study.text(format, list))?;
        }
        What::Memory => {
            let study = memory::study(&settings);
            end_line();
            let study = study?;
            out.print(&study, || study.text(format))?;
        }
        What::Admission => {
            let study = admission::study(&settings);
            end_line();
            let study = study?;
            out.print(&study, || study.text(format))?;
        }
        What::Idle => {
            let study = idle::study(&settings);
            end_line();
            let study = study?;
            out.print(&study, || study.text(format))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
