// SPDX-License-Identifier: GPL-2.0
//! `pbsctl`: checks, loads, runs and watches plans.

// What prints goes through `output`: a full disk is no panic.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod admission;
mod apps;
mod check;
mod cli;
mod cluster;
mod column;
mod compare_options;
mod complete;
mod config_option;
mod configure;
mod cosched;
mod csi;
mod events;
mod explain;
mod failure;
mod files;
mod gen;
mod given;
mod hints;
mod history;
mod history_file;
mod import;
mod interference;
mod jobs;
mod listing;
mod manager;
mod metrics;
mod numbers;
mod output;
mod plan_show;
mod planning;
mod plans;
mod quantities;
mod queue;
mod queued;
mod record;
mod replay;
mod report;
mod rms;
mod row;
mod run;
mod schema;
#[cfg(test)]
#[path = "../tests/common/schemas.rs"]
mod schemas;
mod service;
mod shell;
mod sim;
mod socket;
mod source;
mod stat;
mod step;
mod study;
mod summary;
mod task_net;
mod terms;
mod times;
mod top;
mod trace;
mod watch;

use std::io::{self, IsTerminal};
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};
use clap_complete::CompleteEnv;
use cli::{Cli, FileOptions, Verb};
use numbers::with_remedy;
use output::{write_err, write_out, Output};
use plans::OfCpu;
use stat::StatOptions;

fn main() -> ExitCode {
    // Where a shell asks what may come next, that is all that is done.
    let shell = CompleteEnv::with_factory(Cli::command).var(complete::VARIABLE);
    shell.complete();
    let matches = match Cli::parser().try_get_matches() {
        Ok(matches) => matches,
        Err(told) => return tell(&told),
    };
    let cli = match Cli::from_arg_matches(&matches) {
        Ok(cli) => cli,
        Err(told) => return tell(&told),
    };
    let (json, device) = (cli.json, cli.device.clone());
    let device = device.as_path();
    let verb = cli.verb();
    let out = Output { json, command: verb.name() };
    let result = match verb {
        Verb::Check(options) => check::check(out, &options),
        Verb::Load(FileOptions { file }) => plans::load(out, device, &file),
        Verb::Run(options) => run::run(out, device, &options),
        Verb::Profile(options) => run::run(out, device, &options.into()),
        Verb::Submit(options) => queue::submit(out, device, &options),
        Verb::Step(options) => step::step(out, device, &options),
        Verb::Withdraw(options) => queue::withdraw(out, &options),
        Verb::Job(any) => queued::show(out, &any),
        Verb::Cancel(any) => queued::cancel(out, &any),
        Verb::Hold(which) => service::hold(out, &which),
        Verb::Checkpoint(which) => service::checkpoint(out, &which),
        Verb::Release(which) => service::release(out, &which),
        Verb::Alter(options) => service::alter(out, &options),
        Verb::Watch(options) => service::watch(out, &options),
        Verb::Drain(socket) => service::drain(out, &socket, true),
        Verb::Resume(socket) => service::drain(out, &socket, false),
        Verb::Status(socket) => service::status(out, &socket),
        Verb::SetResource(options) => service::set_resource(out, &options),
        Verb::Jobs(options) => queue::jobs(out, &options),
        Verb::Sim(options) => sim::sim(out, &options),
        Verb::Record(options) => record::record(out, &options),
        Verb::Replay(options) => replay::replay(out, &options),
        Verb::Study(options) => study::study(out, &options),
        Verb::Cluster(options) => cluster::cluster(out, &options),
        Verb::Apps(options) => apps::apps(out, &options),
        Verb::Cosched(options) => cosched::cosched(out, device, &options),
        Verb::Rms(options) => rms::rms(out, &options),
        Verb::Csi(options) => csi::csi(out, &options),
        Verb::Events(options) => events::events(out, device, &options),
        Verb::Report(options) => report::report(out, &options),
        Verb::Trace(options) => trace::trace(out, device, &options),
        Verb::Top(options) => top::top(out, device, &options),
        Verb::Metrics(options) => metrics::metrics(out, device, options),
        Verb::Explain(options) => explain::explain(out, device, &options),
        Verb::Plan(options) => plan_show::show(out, device, &options),
        Verb::History(options) => history::history(out, &options),
        Verb::Stat(StatOptions { process: None }) => stat::stat(out, device),
        Verb::Stat(StatOptions { process: Some(id) }) => stat::process(out, device, id),
        Verb::Show(OfCpu { cpu }) => plans::show(out, device, cpu),
        Verb::Drop(OfCpu { cpu }) => plans::drop_plan(out, device, cpu),
        Verb::Configure(options) => configure::configure(out, device, &options),
        Verb::Interference(options) => interference::interference(out, &options),
        Verb::Import(options) => import::import(out, &options),
        Verb::Gen(options) => gen::gen(out, &options),
        Verb::Completions { shell } => shell::completions(out, shell),
        Verb::Schema(options) => schema::schema(out, &options),
        Verb::Man { directory } => shell::man(out, &directory),
    };
    match result {
        Ok(code) => code,
        Err(failure) => out.tell(&failure),
    }
}

/// The failure of a command line, by the message about it: its words before the usage.
fn wrong_usage(message: &str) -> failure::Failure {
    let words = message.split("\n\n").next().unwrap_or_default();
    failure::Failure::Usage(match words.strip_prefix("error: ") {
        Some(error) => error.into(),
        // The help is printed where a command is missing.
        None => "a command is missing; see --help".into(),
    })
}

/// Prints what was asked for with `--help` or `--version`, or what is wrong with the
/// command line.
fn tell(told: &clap::Error) -> ExitCode {
    // In colours on a terminal. Otherwise clap would not say that it could not write.
    let (is_wrong, is_terminal) = (told.use_stderr(), io::stdout().is_terminal());
    if is_wrong {
        let rendered = told.render();
        let text = if io::stderr().is_terminal() {
            rendered.ansi().to_string()
        } else {
            rendered.to_string()
        };
        write_err(&with_remedy(&text));
        if let Some(hint) = cluster::hint_of_others(told) {
            write_err(&format!("\n{hint}\n"));
        }
        if std::env::args_os().any(|word| word == "--json") {
            output::write_failure(&wrong_usage(&with_remedy(&rendered.to_string())));
        }
        return ExitCode::from(u8::try_from(told.exit_code()).unwrap_or(failure::USAGE));
    }
    if is_terminal {
        // Nobody is left to be told if standard output is closed.
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
