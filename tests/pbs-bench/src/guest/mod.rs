// SPDX-License-Identifier: GPL-2.0
//! Measurements inside the virtual machine.

mod class;
mod count;

mod events;
mod hackbench;
mod large;
mod named;
mod pipe;
mod probe;
mod switch;
mod timer;

use std::path::{Path, PathBuf};

use crate::figure::Figure;
use named::Named;
use probe::Probe;

/// Kind of a measurement.
enum Measure {
    /// Kernel instructions each time that it is done; these can be profiled.
    Cost(fn(&Probe) -> Result<f64, String>),
    /// Several values, with a counter of kernel instructions.
    Counted(fn(&Probe) -> Result<Vec<Named>, String>),
    /// A share, in percent, without.
    Percent(fn() -> Result<f64, String>),
    /// Several values without.
    Several(fn() -> Result<Vec<Named>, String>),
}

use Measure::{Cost, Counted, Percent, Several};

const MEASURES: &[(&str, Measure)] = &[
    ("pipe-pbs", Cost(pipe::after_plan)),
    ("pipe-pbs-slot", Cost(pipe::in_slot)),
    ("pipe-fifo", Cost(pipe::fifo)),
    ("pipe-other", Cost(pipe::other)),
    ("pipe-deadline", Cost(pipe::deadline)),
    ("task-end", Cost(switch::early_tasks)),
    ("task-end-near", Cost(switch::near_tasks)),
    ("task-end-net", Cost(switch::waiting_tasks)),
    ("task-end-by-deadline", Cost(switch::tasks_by_deadline)),
    ("task-end-recorded", Cost(switch::recorded_tasks)),
    ("task-end-same", Cost(switch::same_process)),
    ("preemption", Cost(switch::preemptions)),
    ("preemption-by-deadline", Cost(switch::preemptions_by_deadline)),
    ("preemption-recorded", Cost(switch::recorded_preemptions)),
    ("yield-fifo-threads", Cost(switch::yield_threads)),
    ("yield-fifo", Cost(switch::yield_fifo)),
    ("yield-other", Cost(switch::yield_other)),
    ("hackbench", Counted(hackbench::crowds)),
    ("accounting", Percent(count::accounting_percent)),
    ("overshoot", Several(count::overshoot)),
    ("decision", Counted(large::decision)),
    ("install", Counted(large::install)),
    ("plan-memory", Several(large::memory)),
    ("event-stream", Counted(events::stream)),
    ("timer-per-task-end", Counted(timer::per_task_end)),
    ("timer-per-slot", Several(timer::per_slot)),
];

impl Measure {
    fn figures(&self, name: &'static str, wait_for: Option<&Path>) -> Result<Vec<Named>, String> {
        let probe = || Probe::new(wait_for.map(PathBuf::from));
        Ok(match self {
            Cost(of) => vec![Named::insns(name, of(&probe()?)?)],
            Counted(of) => of(&probe()?)?,
            Percent(of) => vec![Named::new(name, of()?, "percent")],
            Several(of) => of()?,
        })
    }
}

/// `pbs-bench measure [--wait-for FILE] NAME...`: one line of JSON for each
/// value of the measures with these names, or that begin with one of them.
/// Without a name: of all.
pub fn measure(mut words: impl Iterator<Item = String>) -> Result<(), String> {
    let mut wait_for = None;
    let mut wanted = Vec::new();
    while let Some(word) = words.next() {
        if word == "--wait-for" {
            let file = words.next().ok_or("--wait-for wants a file")?;
            wait_for = Some(PathBuf::from(file));
        } else {
            wanted.push(word);
        }
    }
    let chosen = choose(&wanted)?;
    if wait_for.is_some() && !matches!(chosen[..], [(_, Cost(_))]) {
        return Err(format!("{} is nothing to profile", wanted.join(" ")));
    }
    for (name, measure) in chosen {
        let figures = measure.figures(name, wait_for.as_deref());
        for Named { name, value, unit } in figures.map_err(|why| format!("{name}: {why}"))? {
            println!("{}", Figure::new(name, value, unit).line());
        }
    }
    Ok(())
}

type Entry = &'static (&'static str, Measure);

/// The measures that are asked for. A whole name is that one alone.
fn choose(wanted: &[String]) -> Result<Vec<Entry>, String> {
    if wanted.is_empty() {
        return Ok(MEASURES.iter().collect());
    }
    let mut chosen = Vec::new();
    for word in wanted {
        let whole = MEASURES.iter().find(|(name, _)| name == word);
        let begin = MEASURES.iter().filter(|(name, _)| name.starts_with(word.as_str()));
        let found: Vec<Entry> = whole.map_or_else(|| begin.collect(), |entry| vec![entry]);
        if found.is_empty() {
            let names: Vec<_> = MEASURES.iter().map(|(name, _)| *name).collect();
            return Err(format!(
                "nothing to measure is called {word}; there are {}",
                names.join(", ")
            ));
        }
        chosen.extend(found);
    }
    Ok(chosen)
}
