// SPDX-License-Identifier: GPL-2.0
//! Command-line options of the planner.

use std::path::Path;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::Args;
use pbs_node::device::rate_insns_per_ms;
use pbs_node::Planning;
use pbs_planner::{Balancing, Capacity, Options, Store, Strategy, Validation, WantType};

use crate::failure::Failure;
use crate::history_file::HistoryFile;
use crate::jobs::MachineFile;
use crate::quantities::ns;

const STRATEGIES: [(&str, Strategy); 6] = [
    ("earliest-finish", Strategy::EarliestFinish),
    ("critical-path", Strategy::CriticalPath),
    ("latest-finish", Strategy::LatestFinish),
    ("memory-first", Strategy::MemoryFirst),
    ("local-search", Strategy::LocalSearch),
    ("random-cores", Strategy::RandomCores),
];

/// Options of the planner for jobs that are planned without being run.
#[derive(Args, Debug)]
pub(crate) struct PlanningOptions {
    #[command(flatten)]
    pub(crate) machine: MachineFile,

    #[command(flatten)]
    pub(crate) history: HistoryFile,

    /// Division of the memory of a node: static gives each core an equal part, dynamic lets all
    /// cores share it
    #[arg(long, value_name = "HOW", default_value = "dynamic",
          value_parser = PossibleValuesParser::new(["static", "dynamic"])
              .map(|how| if how == "static" { Balancing::Static } else { Balancing::Dynamic }))]
    balancing: Balancing,

    /// Ignore memory when planning: plans may then need more memory than there is (pbsctl sim
    /// --memory-over)
    #[arg(long, conflicts_with = "balancing")]
    memory_blind: bool,

    /// Plan with the whole rate of each core, without unallocated time and CAPACITY_BUFFER, as the
    /// machines of Glaß assume
    #[arg(long)]
    whole_rate: bool,

    /// Strategies to try, in this order, instead of all; local-search improves the plans of the
    /// strategies before it, and each random-cores is another try of Glaß 2024
    #[arg(long = "strategy", value_name = "NAME", value_delimiter = ',',
          value_parser = PossibleValuesParser::new(STRATEGIES.map(|(name, _)| name)).map(strategy))]
    strategies: Vec<Strategy>,

    /// MAX_SCHEDULE_TRIES: greatest number of strategies to try
    #[arg(long, value_name = "N", default_value_t = Options::default().max_schedule_tries as u32,
          value_parser = clap::value_parser!(u32).range(1..))]
    max_schedule_tries: u32,

    /// Number of plans that local-search tries for a net of at least 75 tasks and 9 processes. A
    /// larger net gets fewer tries, and takes about as long; a net of few processes gets fewer too.
    /// 3600 tries take about 20 ms; running jobs are replanned with them
    #[arg(long, value_name = "N", default_value_t = 18_000,
          value_parser = clap::value_parser!(u32).range(..=10_000_000))]
    tries: u32,

    /// Greatest number of steps of work for a plan, and as many for the earliest deadline of a
    /// declined job. Then the best plan found until then is the answer, and the output says what
    /// was cut short. The default takes less than a second
    #[arg(long, value_name = "N", default_value_t = Options::MAX_WORK,
          value_parser = clap::value_parser!(u64).range(1..))]
    max_work: u64,

    /// Seed of the pseudo-random numbers of local-search and random-cores
    #[arg(long, value_name = "N", default_value_t = Options::default().seed)]
    seed: u64,

    /// CAL_WANT_TYPE: compute the memory over time that a job needs from the totals of the job (0)
    /// or from its processes (1)
    #[arg(long, value_name = "VERSION", default_value = "0",
          value_parser = PossibleValuesParser::new(["0", "1"])
              .map(|version| if version == "1" { WantType::Processes } else { WantType::Totals }))]
    cal_want_type: WantType,

    /// MIN_MEM_PERCENTAGE: part of the needed memory over time that must be free
    #[arg(long, value_name = "PERCENT",
          default_value_t = Validation::default().min_mem_percentage,
          value_parser = clap::value_parser!(u32).range(0..=100))]
    min_mem_percentage: u32,

    /// PROCESS_IDLE_PERCENTAGE: part of the runtime of a process in which its core is free for
    /// others of the job, with at most one decimal, such as 2.5
    #[arg(long, value_name = "PERCENT", default_value = "0", value_parser = permille)]
    process_idle_percentage: u32,

    /// FORK_TIME: delay of each further child of a process
    #[arg(long, value_name = "NS", value_parser = ns,
          default_value_t = Validation::default().fork_time_ns)]
    fork_time: u64,

    /// INIT_TIME: delay of the first child of a process
    #[arg(long, value_name = "NS", value_parser = ns,
          default_value_t = Validation::default().init_time_ns)]
    init_time: u64,

    /// Let levels 2 and 3 decline jobs, as in the thesis, instead of only printing their estimate
    #[arg(long)]
    estimates_refuse: bool,
}

fn strategy(name: String) -> Strategy {
    let found = STRATEGIES.into_iter().find(|&(known, _)| known == name);
    // The parser passes no other names.
    found.map_or(Strategy::EarliestFinish, |(_, strategy)| strategy)
}

/// A percentage as thousandths.
fn permille(text: &str) -> Result<u32, String> {
    let (whole, tenths) = text.split_once('.').unwrap_or((text, "0"));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
    let percent: Option<u32> = whole.parse().ok().filter(|&percent| percent <= 100);
    let tenths: Option<u32> = tenths.parse().ok().filter(|_| tenths.len() == 1);
    match (percent, tenths) {
        (Some(percent), Some(tenths)) if is_number(whole) && percent * 10 + tenths <= 1000 => {
            Ok(percent * 10 + tenths)
        }
        _ => Err("write a percentage from 0 to 100 with at most one decimal, such as 2.5".into()),
    }
}

impl PlanningOptions {
    pub(crate) fn is_whole_rate(&self) -> bool {
        self.whole_rate
    }

    /// Whether the job is planned as it would be for its submission: on this node, with the usual
    /// history and no other way to plan.
    pub(crate) fn is_usual(&self) -> bool {
        !self.machine.is_named()
            && !self.history.is_named()
            && !self.memory_blind
            && !self.whole_rate
            && self.strategies.is_empty()
    }

    /// Planner for the named machine, or for this node at the rate that `device` reports.
    pub(crate) fn planning(&self, device: &Path) -> Result<Planning, Failure> {
        let options = self.planner_options()?;
        let machine = self.machine.read(|| rate_insns_per_ms(device))?;
        let store = Store::with_capacity(machine, self.balancing(), self.capacity());
        let planning = Planning::new(store, self.validation(), options, &self.history.path())?;
        // Another way to plan is asked for.
        let searches = self.whole_rate || !self.strategies.is_empty();
        Ok(if searches { planning.without_demand_test() } else { planning })
    }

    fn balancing(&self) -> Balancing {
        if self.memory_blind {
            Balancing::Blind
        } else {
            self.balancing
        }
    }

    fn capacity(&self) -> Capacity {
        if self.whole_rate {
            Capacity::WHOLE
        } else {
            Capacity::default()
        }
    }

    fn validation(&self) -> Validation {
        Validation {
            cal_want_type: self.cal_want_type,
            min_mem_percentage: self.min_mem_percentage,
            process_idle_permille: self.process_idle_percentage,
            fork_time_ns: self.fork_time,
            init_time_ns: self.init_time,
            estimates_refuse: self.estimates_refuse,
        }
    }

    fn planner_options(&self) -> Result<Options, Failure> {
        let mut options = Options {
            max_schedule_tries: self.max_schedule_tries as usize,
            local_search_tries: self.tries as usize,
            seed: self.seed,
            max_work: self.max_work,
            ..Options::default()
        };
        if !self.strategies.is_empty() {
            options.strategies.clone_from(&self.strategies);
        }
        if options.strategies.first() == Some(&Strategy::LocalSearch) {
            return Err(Failure::Usage(
                "local-search improves the plan of another strategy; name one before it, such as \
                 --strategy critical-path,local-search"
                    .into(),
            ));
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_have_at_most_one_decimal() {
        for (text, expected) in [("0", 0), ("2.5", 25), ("100", 1000), ("99.9", 999)] {
            assert_eq!(permille(text), Ok(expected), "{text}");
        }
        for text in ["", ".", "2.", "-1", "+1", "2.55", "2.05", "100.1", "4294967295", "x"] {
            assert!(permille(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_search_takes_as_long_as_told() {
        #[derive(clap::Parser)]
        struct Line {
            #[command(flatten)]
            options: PlanningOptions,
        }
        let of = |words: &[&str]| {
            let line = <Line as clap::Parser>::parse_from([&["it"], words].concat());
            line.options.planner_options().map(|options| options.local_search_tries)
        };
        assert!(matches!(of(&["--tries", "7"]), Ok(7)));
        // Who asks for a plan waits for a better one than a plan in force does.
        assert!(of(&[]).is_ok_and(|tries| tries > Options::default().local_search_tries));
    }

    #[test]
    fn every_strategy_has_a_name() {
        for known in Strategy::ALL.into_iter().chain([Strategy::RandomCores]) {
            let name = known.name().replace(' ', "-");
            assert_eq!(strategy(name), known);
        }
    }
}
