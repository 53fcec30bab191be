// SPDX-License-Identifier: GPL-2.0
//! Candidates for a shell's completion: names and numbers that are known only on this node.
//! Candidates that can't be found are left out, since nobody would see an error.

use std::collections::BTreeSet;
use std::ffi::OsStr;

use clap::{Args, Command, FromArgMatches};
use clap_complete::engine::{ArgValueCandidates, ArgValueCompleter, CompletionCandidate};
use pbs_history::{Options, Store};
use pbs_plan::Config;

use crate::column::column_names;
use crate::row::RunRow;
use crate::source::Source;

/// The number and the name of each job that is not over.
pub(crate) fn jobs() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let jobs = runs(|state| state != "over");
        let names: BTreeSet<String> = jobs.iter().map(|row| row.name().into()).collect();
        let names = names.into_iter().map(CompletionCandidate::new);
        jobs.iter().map(numbered).chain(names).collect()
    })
}

/// The numbers of the runs that wait.
pub(crate) fn waiting() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let waits = |state: &str| ["held", "waiting"].contains(&state);
        runs(waits).iter().map(numbered).collect()
    })
}

/// The jobs of which the history knows runs.
pub(crate) fn known_jobs() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let path = source().map(|source| source.history.path());
        // A completion that cannot ask offers nothing.
        let store = path.and_then(|path| Store::open_read_only(&path, Options::DEFAULT).ok());
        // A completion that cannot ask offers nothing.
        let jobs = store.and_then(|store| store.jobs().ok()).unwrap_or_default();
        let jobs = jobs.into_iter().map(|job| CompletionCandidate::new(job.job));
        jobs.collect()
    })
}

/// The keys of the configuration, for what is written after them.
pub(crate) fn config_keys() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let keys = Config::NAMES.iter().chain(&["thresholds"]);
        keys.map(|key| CompletionCandidate::new(format!("{key}="))).collect()
    })
}

/// The policies of idle slots.
pub(crate) fn idle_policies() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        pbs_plan::config_words("idle_policy").into_iter().map(CompletionCandidate::new).collect()
    })
}

/// The column of runs that is being written.
pub(crate) fn columns() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let current = current.to_str().unwrap_or_default();
        let (before, begun) = match current.rsplit_once(',') {
            Some((before, begun)) => (format!("{before},"), begun),
            None => (String::new(), current),
        };
        let names = column_names().filter(|name| name.starts_with(begun));
        names.map(|name| CompletionCandidate::new(format!("{before}{name}"))).collect()
    })
}

fn numbered(row: &RunRow) -> CompletionCandidate {
    let help = format!("{}, {}", row.name(), row.state());
    CompletionCandidate::new(row.number().to_string()).help(Some(help.into()))
}

fn runs(wanted: impl Fn(&str) -> bool) -> Vec<RunRow> {
    // A completion that cannot ask offers nothing.
    let runs = source().and_then(|source| source.runs(Some(0)).ok());
    let runs = runs.unwrap_or_default().into_iter();
    runs.filter(|row| wanted(row.state())).collect()
}

/// Reads the source from the environment, since the command line is not complete.
fn source() -> Option<Source> {
    let command = Source::augment_args(Command::new("source"));
    // A completion that cannot ask offers nothing.
    let matches = command.try_get_matches_from(["source"]).ok()?;
    // A completion that cannot ask offers nothing.
    Source::from_arg_matches(&matches).ok()
}

/// Environment variable that holds the name of the shell then.
pub(crate) const VARIABLE: &str = "PBSCTL_COMPLETE";
