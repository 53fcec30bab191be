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
  pbsctl cosched interference measure         Measure how hogs slow each other down here
  pbsctl cosched interference measure --rounds 30 --output slowdowns.toml
  pbsctl sim plan.toml --slowdowns slowdowns.toml
  pbsctl cosched interference show            Show the slow-downs in earlier runs
  pbsctl cosched interference predict render --beside backup

A slow-down is the time of a task beside others divided by its time alone. It depends on the
direction: a task may slow down another without being slowed down itself.";

#[derive(Args, Debug)]
#[command(after_help = INTERFERENCE_HELP)]
pub(crate) struct InterferenceOptions {
    #[command(subcommand)]
    what: InterferenceCommand,
}

#[derive(Debug, Subcommand)]
enum InterferenceCommand {
    /// Measure how hogs of memory, cache and core slow each other down on this machine
    ///
    /// Two threads are pinned to two CPUs. In each round each works alone, both work at once, and
    /// each works alone again. Needs neither root nor the scheduling class.
    Measure(MeasureOptions),
    /// Print the slow-downs that earlier runs show
    Show(ShowOptions),
    /// Predict the slow-down of a task beside others, and print its source
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
