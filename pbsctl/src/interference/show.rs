// SPDX-License-Identifier: GPL-2.0
//! `pbsctl cosched interference show`: slow-downs in earlier runs.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use pbs_interference::slowdowns_to_toml;
use pbs_text::{columns, grouped};
use serde::Serialize;

use super::learnt::{list, Learnt, Other};
use crate::failure::Failure;
use crate::files;
use crate::history_file::HistoryFile;
use crate::output::Output;

const SHOW_HELP: &str = "\
Examples:
  pbsctl run a.toml b.toml --learn-slowdowns  Record which tasks run at the same time
  pbsctl cosched interference show            Show the slow-downs that the records imply
  pbsctl cosched interference show --output slowdowns.toml

SLOW-DOWN is the time of a task beside the others divided by its time alone. One in twenty runs
is below the first bound, and one in twenty is above the second. In brackets stands what the two
CPUs share: smt (a core), l2, llc (the last cache) or node (memory only).

Pairs with too few runs are left out.";

#[derive(Args, Debug)]
#[command(after_help = SHOW_HELP)]
pub(super) struct ShowOptions {
    /// Write the slow-downs to FILE, for --slowdowns
    #[arg(long, short, value_name = "FILE", value_parser = files::toml_file())]
    output: Option<PathBuf>,

    #[command(flatten)]
    history: HistoryFile,
}

#[derive(Serialize)]
struct Shown {
    runs: usize,
    slowdowns: Vec<SlowdownRow>,
}

#[derive(Serialize)]
struct SlowdownRow {
    victim: String,
    beside: Vec<Other>,
    slowdown: f64,
    low: f64,
    high: f64,
    samples: u64,
}

pub(super) fn show(out: Output, options: &ShowOptions) -> Result<ExitCode, Failure> {
    let learnt = Learnt::read(&options.history)?;
    let entries = learnt.entries();
    if let Some(file) = &options.output {
        files::write(file, &slowdowns_to_toml(&entries))?;
    }
    let slowdowns = entries.into_iter().map(|entry| SlowdownRow {
        victim: entry.victim,
        beside: (entry.beside.into_iter())
            .map(|(level, name)| Other { name, level: level.name() })
            .collect(),
        slowdown: entry.slowdown,
        low: entry.low,
        high: entry.high,
        samples: entry.samples,
    });
    let shown = Shown { runs: learnt.runs, slowdowns: slowdowns.collect() };
    out.print(&shown, || shown.text())?;
    Ok(ExitCode::SUCCESS)
}

impl Shown {
    fn text(&self) -> String {
        match (self.runs, self.slowdowns.is_empty()) {
            (0, _) => {
                return "No run has recorded which tasks run at the same time; pbsctl run \
                        --learn-slowdowns records it.\n"
                    .into();
            }
            (runs, true) => {
                return format!(
                    "{} runs of tasks are recorded with their neighbours, which is too few to \
                     compute a slow-down.\n",
                    grouped(runs as u64)
                );
            }
            _ => {}
        }
        let titles = ["VICTIM", "BESIDE", "SLOW-DOWN", "5 %", "95 %", "RUNS"];
        let mut rows = vec![titles.map(String::from).to_vec()];
        for row in &self.slowdowns {
            rows.push(vec![
                row.victim.clone(),
                list(&row.beside),
                format!("{:.3}", row.slowdown),
                format!("{:.3}", row.low),
                format!("{:.3}", row.high),
                grouped(row.samples),
            ]);
        }
        columns(&rows, 2)
    }
}
