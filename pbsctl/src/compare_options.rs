// SPDX-License-Identifier: GPL-2.0
//! Options of `pbsctl study compare`.

use std::path::PathBuf;

use clap::Args;
use pbs_gen::deadline_jobs::{ErrorShape, ROGUE_FACTOR};
use pbs_plan::Config;
use pbs_planner::plan_building::planner_config;
use pbs_study::compare::{swept_settings, Parameters, Scheduler, Setting, SWEPT_SCHEDULERS};

use crate::complete;
use crate::config_option::{numbers_of, with_numbers};
use crate::failure::Failure;
use crate::files;

#[derive(Args, Debug)]
pub(crate) struct CompareOptions {
    /// Loads, in percent of the CPU
    #[arg(
        long,
        value_name = "PERCENT",
        value_delimiter = ',',
        default_value = "100",
        value_parser = clap::value_parser!(u64).range(1..=1000)
    )]
    load: Vec<u64>,

    /// Greatest errors of the declared lengths
    #[arg(
        long,
        value_name = "PERCENT",
        value_delimiter = ',',
        default_value = "20",
        value_parser = clap::value_parser!(u64).range(0..=99)
    )]
    error: Vec<u64>,

    /// Distributions of the errors: uniform, skewed, common or late
    #[arg(
        long,
        value_name = "SHAPE",
        value_delimiter = ',',
        default_value = "uniform",
        value_parser = shape
    )]
    shape: Vec<ErrorShape>,

    /// Numbers of rogues, 0 to 10
    #[arg(
        long,
        value_name = "N",
        value_delimiter = ',',
        default_value = "0,1",
        value_parser = clap::value_parser!(u64).range(0..=10)
    )]
    rogues: Vec<u64>,

    /// Length of a rogue, in declared lengths
    #[arg(
        long,
        value_name = "FACTOR",
        default_value_t = ROGUE_FACTOR,
        value_parser = clap::value_parser!(u64).range(1..=100)
    )]
    rogue_factor: u64,

    /// Only these schedulers, by the names of the table
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = scheduler)]
    scheduler: Vec<Scheduler>,

    /// Set a number of the policy, as in [config] of a plan (pbsctl sim --help)
    #[arg(long, value_name = "KEY=VALUE", add = complete::config_keys())]
    config: Vec<String>,

    /// Windows of so many milliseconds, with so many of them unallocated: 100:5, 20:1
    #[arg(long, value_name = "PERIOD:UNALLOCATED", value_parser = window)]
    window: Option<(u64, u64)>,

    /// Let plans use unallocated time, as if Linux had nothing to run then
    #[arg(long)]
    use_unallocated: bool,

    /// Run all shapes, loads of 50, 70, 100 and 130 %, errors of 5, 10, 20 and 40 %, with and
    /// without a rogue, and check the bars that plans have to reach
    #[arg(long, conflicts_with_all = ["load", "error", "shape", "rogues"])]
    sweep: bool,

    /// Write what is kept as a picture into this directory
    #[arg(long, value_name = "DIR", value_parser = files::pictures())]
    pub(crate) svg: Option<PathBuf>,
}

impl CompareOptions {
    /// Whether a setting has a rogue.
    pub(crate) fn has_rogues(&self) -> bool {
        self.sweep || self.rogues.iter().any(|&rogues| rogues > 0)
    }

    /// Parameters of the study.
    pub(crate) fn parameters(&self) -> Result<Parameters, Failure> {
        let mut config = with_numbers(&self.config, planner_config(Config::DEFAULT))?;
        if let Some((period_ns, unallocated_ns)) = self.window {
            let numbers = [
                format!("window_period_ns={period_ns}"),
                format!("window_unallocated_ns={unallocated_ns}"),
            ];
            config = numbers_of("--window", "--config ", &numbers, config)?;
        }
        let all: &[Scheduler] = if self.sweep { &SWEPT_SCHEDULERS } else { &Scheduler::ALL };
        let chosen = all
            .iter()
            .copied()
            .filter(|scheduler| self.scheduler.is_empty() || self.scheduler.contains(scheduler));
        Ok(Parameters {
            settings: if self.sweep { swept_settings() } else { self.settings() },
            schedulers: chosen.collect(),
            rogue_factor: self.rogue_factor,
            config,
            uses_unallocated: self.use_unallocated,
            has_bars: self.sweep,
        })
    }

    fn settings(&self) -> Vec<Setting> {
        let mut settings = Vec::new();
        for &shape in &self.shape {
            for &load_percent in &self.load {
                for &error_percent in &self.error {
                    for &rogues in &self.rogues {
                        let rogues = usize::try_from(rogues).unwrap_or(0);
                        settings.push(Setting { shape, load_percent, error_percent, rogues });
                    }
                }
            }
        }
        settings.sort_unstable();
        settings.dedup();
        settings
    }
}

fn shape(text: &str) -> Result<ErrorShape, String> {
    let found = ErrorShape::ALL.into_iter().find(|shape| shape.name() == text);
    found.ok_or_else(|| {
        let names: Vec<_> = ErrorShape::ALL.iter().map(|shape| shape.name()).collect();
        format!("the shapes are {}", names.join(", "))
    })
}

fn scheduler(text: &str) -> Result<Scheduler, String> {
    Scheduler::by_name(text).ok_or_else(|| {
        let names = Scheduler::ALL.map(Scheduler::name);
        format!("the schedulers are {}", names.join(", "))
    })
}

/// Period and unallocated time, in nanoseconds.
fn window(text: &str) -> Result<(u64, u64), String> {
    let (period, unallocated) = text.split_once(':').ok_or("write PERIOD:UNALLOCATED")?;
    let ns = |text: &str| text.parse::<u64>().ok().and_then(|ms| ms.checked_mul(1_000_000));
    let both = ns(period).zip(ns(unallocated));
    both.ok_or_else(|| format!("{text} is not two numbers of milliseconds"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_two_times() {
        assert_eq!(window("20:1"), Ok((20_000_000, 1_000_000)));
        assert!(window("20").is_err() && window("20:x").is_err());
    }
}
