// SPDX-License-Identifier: GPL-2.0
//! Command-line options of co-scheduling: scheduler, moment and objective.

use std::path::Path;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::Args;
use pbs_cosched::{Cost, GreedyOptions, Objective, Priority};
use pbs_cosched_report::{SchedulerName, Settings, When};

use crate::failure::Failure;
use crate::history_file::decision_cost;
use crate::quantities::ns;

const WHO: [SchedulerName; 7] = [
    SchedulerName::Greedy,
    SchedulerName::Random,
    SchedulerName::Enhanced,
    SchedulerName::Evolutionary,
    SchedulerName::Heft,
    SchedulerName::Oracle,
    SchedulerName::Best,
];
const PRIORITIES: [(&str, Priority); 3] =
    [("successors", Priority::Successors), ("runtime", Priority::Runtime), ("age", Priority::Age)];
const OBJECTIVES: [(&str, Objective); 3] = [
    ("deadlines", Objective::Lexicographic),
    ("makespan", Objective::Makespan),
    ("sum", Objective::Sum),
];

/// When it is decided.
#[derive(Args, Debug)]
pub(super) struct At {
    /// Decide at that time: until then nobody has co-scheduled, and what has started goes on
    #[arg(long = "at", value_name = "NS", default_value = "0", value_parser = ns,
          allow_hyphen_values = true)]
    pub(super) ns: u64,
}

/// Who decides, when and how.
#[derive(Args, Debug)]
pub(super) struct DecisionOptions {
    /// When tasks are mapped anew: never; always; contention, if another process stands in
    /// the queue of a desired device; speedup, if desired devices save more than co-scheduling
    /// costs (--cost); amortization, if a desired device is occupied for longer than that;
    /// all-occupied, if all devices are
    #[arg(long, value_name = "WHEN",
          value_parser = PossibleValuesParser::new(When::ALL.map(When::name)).map(when))]
    determination: Option<When>,

    /// Who maps them: greedy, random or enhanced as in the thesis; evolutionary; heft; oracle,
    /// which tries all mappings of at most ten tasks; best, that is oracle for few tasks and
    /// evolutionary for more
    #[arg(long, value_name = "NAME", default_value = "best",
          value_parser = PossibleValuesParser::new(WHO.map(SchedulerName::name)).map(who))]
    scheduler: SchedulerName,

    #[command(flatten)]
    how: HowOptions,
}

/// How it is decided.
#[derive(Args, Debug)]
pub(super) struct HowOptions {
    /// Who wins an accelerator of the greedy scheduler: who has most direct successors, least
    /// runtime there, or is oldest; of two the first where tasks can run nowhere else, the
    /// second for what is left
    #[arg(long, value_name = "NAME[,NAME]", value_delimiter = ',', default_value = "age",
          value_parser = PossibleValuesParser::new(PRIORITIES.map(|(name, _)| name)).map(priority))]
    priority: Vec<Priority>,

    /// What is to be small: deadlines, first the number of those that are missed, then the
    /// makespan, then the turnarounds together; makespan; sum, the runtimes together
    #[arg(long, value_name = "WHAT", default_value = "deadlines",
          value_parser = PossibleValuesParser::new(OBJECTIVES.map(|(name, _)| name)).map(objective))]
    objective: Objective,

    /// How many mappings are tried: by enhanced at least, by evolutionary and oracle at most;
    /// where it is left out, as many as each needs to be good
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    iterations: Option<u32>,

    /// Have the greedy scheduler not keep a task that is alone in its round where the one
    /// before it ran
    #[arg(long)]
    no_stickiness: bool,

    /// What co-scheduling costs, as determinations reckon with it; without it, what the
    /// history tells of the scheduler, or nothing
    #[arg(long, value_name = "NS", value_parser = ns, allow_hyphen_values = true)]
    cost: Option<u64>,

    /// Have waiting tasks start only after the cost
    #[arg(long)]
    charge_cost: bool,

    /// Take what is worse than not co-scheduling, too
    #[arg(long)]
    take_worse: bool,

    /// Where pseudo-random numbers begin: the same seed decides the same
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

// The parsers pass no other names.

fn when(name: String) -> When {
    let found = When::ALL.into_iter().find(|when| when.name() == name);
    found.unwrap_or(When::Contention)
}

fn who(name: String) -> SchedulerName {
    let found = WHO.into_iter().find(|who| who.name() == name);
    found.unwrap_or(SchedulerName::Best)
}

fn priority(name: String) -> Priority {
    let found = PRIORITIES.into_iter().find(|&(known, _)| known == name);
    found.map_or(Priority::Age, |(_, priority)| priority)
}

fn objective(name: String) -> Objective {
    let found = OBJECTIVES.into_iter().find(|&(known, _)| known == name);
    found.map_or(Objective::Lexicographic, |(_, objective)| objective)
}

impl DecisionOptions {
    /// `history`: the file that may tell what the scheduler costs.
    pub(super) fn settings(&self, history: &Path) -> Result<Settings, Failure> {
        let settings = self.how.settings()?;
        let known = match self.how.cost {
            None => decision_cost(history, recorded_as(self.scheduler))?,
            Some(_) => None,
        };
        Ok(Settings {
            when: self.determination,
            who: self.scheduler,
            cost: known.unwrap_or(settings.cost),
            ..settings
        })
    }
}

/// Under which name a scheduler's decisions are in the history.
fn recorded_as(who: SchedulerName) -> &'static str {
    match who {
        SchedulerName::Random => "plain-random",
        SchedulerName::Enhanced => "enhanced-random",
        SchedulerName::Oracle => "brute-force",
        SchedulerName::Best => SchedulerName::Evolutionary.name(),
        who => who.name(),
    }
}

impl HowOptions {
    pub(super) fn settings(&self) -> Result<Settings, Failure> {
        let (contention, leftovers) = match self.priority[..] {
            [both] => (both, both),
            [contention, leftovers] => (contention, leftovers),
            _ => {
                let message = "--priority takes one name, or two: for tasks that can run nowhere \
                               else, and for what is left";
                return Err(Failure::Usage(message.into()));
            }
        };
        Ok(Settings {
            greedy: GreedyOptions { contention, leftovers, stickiness: !self.no_stickiness },
            objective: self.objective,
            cost: Cost::constant(self.cost.unwrap_or(0) as f64),
            charge_cost: self.charge_cost,
            take_worse: self.take_worse,
            iterations: self.iterations,
            seed: self.seed,
            ..Settings::default()
        })
    }
}
