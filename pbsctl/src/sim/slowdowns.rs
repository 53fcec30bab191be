// SPDX-License-Identifier: GPL-2.0
//! `--slowdowns`: tasks on different CPUs slow each other.

use std::path::{Path, PathBuf};

use clap::Args;
use pbs_interference::{Level, Sharing};
use pbs_plan::Plan;
use pbs_sim::Interference;

use crate::failure::Failure;
use crate::files;
use crate::jobs::slowdowns_of;

#[derive(Args, Debug)]
pub(super) struct SlowdownsOptions {
    /// Slow down tasks on different CPUs as this file says (slowdowns.toml); it names processes, or
    /// process/task
    #[arg(long, value_name = "FILE")]
    slowdowns: Option<PathBuf>,

    /// Level that all CPUs of the plan share: smt, l2, llc or node [default: the level of all pairs
    /// in the file]
    #[arg(long, value_name = "WHAT", requires = "slowdowns", value_parser = level)]
    shared: Option<Level>,
}

fn level(text: &str) -> Result<Level, String> {
    let names = Level::NAMES.join(", ");
    Level::from_name(text).ok_or_else(|| format!("there is no level {text}; write one of {names}"))
}

impl SlowdownsOptions {
    /// Whether the slow-downs are on standard input.
    pub(super) fn reads_stdin(&self) -> bool {
        self.slowdowns.as_deref() == Some(Path::new("-"))
    }

    /// Slow-downs of processes in the plan.
    pub(super) fn interference(&self, plan: &Plan) -> Result<Option<Interference>, Failure> {
        let Some(file) = &self.slowdowns else {
            return Ok(None);
        };
        let entries = slowdowns_of(file)?;
        let levels = entries.iter().flat_map(|entry| &entry.beside);
        let mut levels: Vec<_> = levels.map(|&(level, _)| level).collect();
        levels.sort_unstable();
        levels.dedup();
        let level = match (self.shared, &levels[..]) {
            (Some(level), _) | (None, &[level]) => level,
            (None, []) => Level::Node,
            (None, levels) => return Err(unsaid(file, levels)),
        };
        let cpus = plan.cpus.iter().map(|cpu| cpu.cpu).collect();
        let sharing = Sharing::new(vec![(level, cpus)]);
        let found = Interference::of_plan(plan, &entries, sharing);
        if found.slowdowns.entries().is_empty() {
            return Err(Failure::Failed(format!(
                "{}: none of its tasks is in the plan; write names of processes of the plan, or \
                 process/task",
                files::name(file)
            )));
        }
        Ok(Some(found))
    }
}

fn unsaid(file: &Path, levels: &[Level]) -> Failure {
    let names: Vec<_> = levels.iter().map(|level| level.name()).collect();
    Failure::Usage(format!(
        "{} has slow-downs for {}; add --shared with what the CPUs of the plan share",
        files::name(file),
        names.join(" and ")
    ))
}
