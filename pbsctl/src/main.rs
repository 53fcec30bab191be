// SPDX-License-Identifier: GPL-2.0
//! `pbsctl`: checks, loads, runs and watches plans.

// What prints goes through `output`: a full disk is no panic.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod apps;
mod check;
mod cli;
mod cluster;
mod column;
mod compare_options;
mod complete;
mod config_option;
mod cosched;
mod csi;
mod events;
mod explain;
mod failure;
mod files;
mod gen;
mod history;
mod history_file;
mod import;
mod interference;
mod jobs;
mod listing;
mod output;
mod plan_show;
mod planning;
mod plans;
mod quantities;
mod queue;
mod record;
mod replay;
mod report;
mod rms;
mod row;
mod run;
mod service;
mod shell;
mod sim;
mod socket;
mod source;
mod stat;
mod step;
mod study;
mod summary;
mod times;
mod top;
mod trace;
mod watch;

use std::io::{self, IsTerminal};
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};
use clap_complete::CompleteEnv;
use cli::{Cli, Command};
use output::{write_out, Output};

fn main() -> ExitCode {
    // Where a shell asks what may come next, that is all that is done.
    let shell = CompleteEnv::with_factory(Cli::command).var(complete::VARIABLE);
    shell.complete();
    let matches = match Cli::command().try_get_matches() {
        Ok(matches) => matches,
        Err(told) => return tell(&told),
    };
    let cli = match Cli::from_arg_matches(&matches) {
        Ok(cli) => cli,
        Err(told) => return tell(&told),
    };
    let out = Output {
        json: cli.json,
        // As long as the process lives.
        command: matches.subcommand_name().unwrap_or_default().to_string().leak(),
    };
    let device = cli.device.as_path();
    let result = match cli.command {
        Command::Check { file } => check::check(out, &file),
        Command::Load { file } => plans::load(out, device, &file),
        Command::Run(options) => run::run(out, device, &options),
        Command::Profile(options) => run::run(out, device, &options.into()),
        Command::Submit(options) => queue::submit(out, device, &options),
        Command::Step(options) => step::step(out, device, &options),
        Command::Withdraw(options) => queue::withdraw(out, &options),
        Command::Job(which) => service::job(out, &which),
        Command::Cancel(which) => service::cancel(out, &which),
        Command::Hold(which) => service::hold(out, &which),
        Command::Release(which) => service::release(out, &which),
        Command::Alter(options) => service::alter(out, &options),
        Command::Watch(options) => service::watch(out, &options),
        Command::Drain(socket) => service::drain(out, &socket, true),
        Command::Resume(socket) => service::drain(out, &socket, false),
        Command::Status(socket) => service::status(out, &socket),
        Command::Jobs(options) => queue::jobs(out, &options),
        Command::Sim(options) => sim::sim(out, &options),
        Command::Record(options) => record::record(out, &options),
        Command::Replay(options) => replay::replay(out, &options),
        Command::Study(options) => study::study(out, &options),
        Command::Cluster(options) => cluster::cluster(out, &options),
        Command::Apps(options) => apps::apps(out, &options),
        Command::Cosched(options) => cosched::cosched(out, device, &options),
        Command::Rms(options) => rms::rms(out, &options),
        Command::Csi(options) => csi::csi(out, &options),
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
        Command::Interference(options) => interference::interference(out, &options),
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
        Err(failure) => {
            let out = Output { json: false, command: "help" };
            out.tell(&failure)
        }
    }
}
