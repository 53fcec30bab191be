// SPDX-License-Identifier: GPL-2.0
//! The commands for slow-downs of tasks that run beside each other.

mod learnt;
mod measure;
mod predict;
mod show;

use std::process::ExitCode;

use clap::{Args, Subcommand};

use crate::failure::Failure;
use crate::output::Output;
use measure::MeasureOptions;
use predict::PredictOptions;
use show::ShowOptions;

const INTERFERENCE_HELP: &str = "\
Examples:
  pbsctl interference measure                 How hogs slow each other on this machine
  pbsctl interference measure --rounds 30 --output slowdowns.toml
  pbsctl sim plan.toml --slowdowns slowdowns.toml
  pbsctl interference show                    What runs of jobs have shown
  pbsctl interference predict render --beside backup

A slow-down is the time of a task beside others over its time alone. It is not the
same in both directions: who disturbs need not be disturbed.";

#[derive(Args, Debug)]
#[command(after_help = INTERFERENCE_HELP)]
pub(crate) struct InterferenceOptions {
    #[command(subcommand)]
    what: InterferenceCommand,
}

#[derive(Debug, Subcommand)]
enum InterferenceCommand {
    /// Measure how hogs of memory, cache and core slow each other on this machine
    ///
    /// Two threads are pinned to two CPUs. Each works alone, both at once, and each
    /// alone again, round by round. It needs neither root nor the scheduling class.
    Measure(MeasureOptions),
    /// Print who slows whom, as runs in the history tell
    Show(ShowOptions),
    /// Print how much slower a task will be beside others, and where that comes from
    Predict(PredictOptions),
}

pub(crate) fn interference(
    out: Output,
    options: &InterferenceOptions,
) -> Result<ExitCode, Failure> {
    match &options.what {
        InterferenceCommand::Measure(options) => measure::measure(out, options),
        InterferenceCommand::Show(options) => show::show(out.named("interference-show"), options),
        InterferenceCommand::Predict(options) => {
            predict::predict(out.named("interference-predict"), options)
        }
    }
}
