// SPDX-License-Identifier: GPL-2.0
//! `pbsctl cosched interference predict`: the predicted slow-down of a task.

use std::process::ExitCode;

use clap::Args;
use pbs_interference::{Key, Level, Neighbour, Prediction, Source};
use pbs_text::{columns, grouped};
use serde::Serialize;

use super::learnt::{list, Learnt, Other};
use crate::failure::Failure;
use crate::history_file::HistoryFile;
use crate::output::Output;

const PREDICT_HELP: &str = "\
Examples:
  pbsctl cosched interference predict render --beside backup
  pbsctl cosched interference predict film:render/4 --beside backup index --level llc

Names are process, process/task or job:process/task, as printed by pbsctl cosched interference
show. A name that several tasks share stands for each of them.

SOURCE is the source of the number:
  measured  The task ran beside exactly these
  sum       It ran beside each of these: 1 + the sum of the parts above 1
  guess     It never ran beside one of them, but both ran beside others: the mean slow-down of
            the one by others, times the mean slow-down that the other causes
  unknown   Nothing is known of one of them; 1 is assumed

RUNS is the number of runs behind the number; for a sum, those of the least known part.";

#[derive(Args, Debug)]
#[command(after_help = PREDICT_HELP)]
pub(super) struct PredictOptions {
    /// Task that is slowed down
    victim: String,

    /// Tasks that run at the same time on other CPUs
    #[arg(long, value_name = "AGGRESSOR", num_args = 1.., required = true)]
    beside: Vec<String>,

    /// Level that the CPUs of the aggressors share with that of the victim [default: the closest
    /// level in the runs, or node]
    #[arg(long, value_name = "LEVEL", value_parser = level)]
    level: Option<Level>,

    #[command(flatten)]
    history: HistoryFile,
}

fn level(text: &str) -> Result<Level, String> {
    Level::from_name(text).ok_or_else(|| {
        format!("there is no level {text}; write one of {}", Level::NAMES.join(", "))
    })
}

/// Most combinations that are printed for names that several tasks share.
const MOST: usize = 1000;

#[derive(Serialize)]
struct Predicted {
    predictions: Vec<PredictionRow>,
}

#[derive(Serialize)]
struct PredictionRow {
    victim: String,
    beside: Vec<Other>,
    slowdown: f64,
    low: f64,
    high: f64,
    samples: u64,
    source: &'static str,
}

pub(super) fn predict(out: Output, options: &PredictOptions) -> Result<ExitCode, Failure> {
    let learnt = Learnt::read(&options.history)?;
    let victims = learnt.keys(&options.victim)?;
    let mut sets: Vec<Vec<Key>> = vec![Vec::new()];
    for name in &options.beside {
        let keys = learnt.keys(name)?;
        let longer = sets.iter().flat_map(|set| {
            keys.iter().map(|&key| {
                let mut set = set.clone();
                set.push(key);
                set
            })
        });
        sets = longer.take(MOST).collect();
    }
    let pairs = victims.iter().flat_map(|&victim| sets.iter().map(move |set| (victim, set)));
    let predictions = pairs.take(MOST).map(|(victim, set)| {
        let beside: Vec<_> = set
            .iter()
            .map(|&key| Neighbour {
                level: options.level.or_else(|| learnt.level(victim, key)).unwrap_or(Level::Node),
                key,
            })
            .collect();
        row(&learnt, victim, &beside)
    });
    let predicted = Predicted { predictions: predictions.collect() };
    out.print(&predicted, || predicted.text())?;
    Ok(ExitCode::SUCCESS)
}

fn row(learnt: &Learnt, victim: Key, beside: &[Neighbour]) -> PredictionRow {
    let Prediction { slowdown, low, high, samples, source } = learnt.slowdowns.of(victim, beside);
    PredictionRow {
        victim: learnt.name(victim),
        beside: beside.iter().map(|&by| learnt.other(by)).collect(),
        slowdown,
        low,
        high,
        samples,
        source: Source::name(source),
    }
}

impl Predicted {
    fn text(&self) -> String {
        let titles = ["VICTIM", "BESIDE", "SLOW-DOWN", "5 %", "95 %", "RUNS", "SOURCE"];
        let mut rows = vec![titles.map(String::from).to_vec()];
        for row in &self.predictions {
            rows.push(vec![
                row.victim.clone(),
                list(&row.beside),
                format!("{:.3}", row.slowdown),
                format!("{:.3}", row.low),
                format!("{:.3}", row.high),
                grouped(row.samples),
                row.source.into(),
            ]);
        }
        columns(&rows, 2)
    }
}
