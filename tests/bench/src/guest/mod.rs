// SPDX-License-Identifier: GPL-2.0
//! What is measured inside the virtual machine.

mod class;
mod counter;
mod pipe;
mod probe;
mod shared;
mod switch;

use std::path::PathBuf;

use crate::figure::Figure;
use probe::Probe;

type Measure = fn(&Probe) -> Result<f64, String>;

/// Unit of a count of instructions in the kernel.
const INSNS: &str = "insns";

/// What can be measured: its name, its unit, and how.
const MEASURES: &[(&str, &str, Measure)] = &[
    ("pipe-pbs", INSNS, pipe::after_plan),
    ("pipe-pbs-slot", INSNS, pipe::in_slot),
    ("pipe-fifo", INSNS, pipe::fifo),
    ("pipe-other", INSNS, pipe::other),
    ("pipe-deadline", INSNS, pipe::deadline),
    ("task-end", INSNS, switch::early_tasks),
    ("task-end-near", INSNS, switch::near_tasks),
    ("preemption", INSNS, switch::preemptions),
    ("yield-fifo-threads", INSNS, switch::yield_threads),
    ("yield-fifo", INSNS, switch::yield_fifo),
    ("yield-other", INSNS, switch::yield_other),
];

/// `pbs-bench measure [--wait-for FILE] NAME...`: one line of JSON for each
/// measure whose name begins with one of these.
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
    let is_wanted = |name: &str| wanted.iter().any(|word| name.starts_with(word.as_str()));
    let mut found = false;
    for (name, unit, measure) in MEASURES.iter().filter(|(name, ..)| is_wanted(name)) {
        found = true;
        let probe = Probe::new(wait_for.clone())?;
        let value = measure(&probe).map_err(|why| format!("{name}: {why}"))?;
        println!("{}", Figure::new(name, value, unit).line());
    }
    if found {
        Ok(())
    } else {
        Err(format!(
            "nothing to measure is called {}",
            wanted.join(" or ")
        ))
    }
}
