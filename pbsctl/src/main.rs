// SPDX-License-Identifier: GPL-2.0
//! `pbsctl`: checks, loads, runs and watches plans.

// What prints goes through `output`: a full disk is no panic.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod check;
mod cli;
mod events;
mod explain;
mod failure;
mod files;
mod gen;
mod history;
mod import;
mod jobs;
mod output;
mod plan_show;
mod planning;
mod plans;
mod quantities;
mod queue;
mod report;
mod run;
mod shell;
mod sim;
mod stat;
mod study;
mod summary;
mod top;
mod trace;

use std::io::{self, IsTerminal};
use std::process::ExitCode;

use clap::Parser;
use cli::{Cli, Command};
use output::{write_out, Output};

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(told) => return tell(&told),
    };
    let out = Output { json: cli.json };
    let device = cli.device.as_path();
    let result = match cli.command {
        Command::Check { file } => check::check(out, &file),
        Command::Load { file } => plans::load(out, device, &file),
        Command::Run(options) => run::run(out, device, &options),
        Command::Profile(options) => run::run(out, device, &options.into()),
        Command::Submit(options) => queue::submit(out, device, &options),
        Command::Withdraw(options) => queue::withdraw(out, &options),
        Command::Jobs(options) => queue::jobs(out, &options),
        Command::Sim(options) => sim::sim(out, &options),
        Command::Study(options) => study::study(out, &options),
        Command::Events(options) => events::events(out, device, &options),
        Command::Report(options) => report::report(out, &options),
        Command::Trace(options) => trace::trace(out, device, &options),
        Command::Top(options) => top::top(out, device, &options),
        Command::Explain(options) => explain::explain(out, device, &options),
        Command::Plan(command) => plan_show::plan(out, device, &command),
        Command::History(options) => history::history(out, &options),
        Command::Stat { process: None } => stat::stat(out, device),
        Command::Stat { process: Some(id) } => stat::process(out, device, id),
        Command::Show { cpu } => plans::show(out, device, cpu),
        Command::Import(options) => import::import(out, &options),
        Command::Gen(options) => gen::gen(out, &options),
        Command::Completions { shell } => shell::completions(out, shell),
        Command::Man { directory } => shell::man(out, &directory),
        Command::Drop { cpu } => plans::drop_plan(out, device, cpu),
    };
    match result {
        Ok(code) => code,
        Err(failure) => out.tell(&failure),
    }
}

/// Prints what was asked for with `--help` or `--version`, or what is wrong with the
/// command line.
fn tell(told: &clap::Error) -> ExitCode {
    // In colours on a terminal. Otherwise clap would not say that it could not write.
    let (is_wrong, is_terminal) = (told.use_stderr(), io::stdout().is_terminal());
    if is_wrong || is_terminal {
        let _ = told.print();
        return ExitCode::from(u8::try_from(told.exit_code()).unwrap_or(failure::USAGE));
    }
    match write_out(&told.render().to_string()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => Output { json: false }.tell(&failure),
    }
}
