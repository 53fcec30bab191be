// SPDX-License-Identifier: GPL-2.0
//! Command-line options of co-scheduling: scheduler, moment and objective.

use std::path::Path;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::Args;
use pbs_cosched::{Cost, GreedyOptions, Objective, Priority};
use pbs_cosched_report::{SchedulerName, Settings, When};

use crate::failure::Failure;
use crate::given::{Conditional, Given};
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

/// Time of the decision.
#[derive(Args, Debug)]
pub(super) struct At {
    /// Decide at this time; until then each process runs its fastest variants, and tasks that have
    /// started continue
    #[arg(long = "at", value_name = "NS", default_value = "0", value_parser = ns,
          allow_hyphen_values = true)]
    pub(super) ns: u64,
}

/// Scheduler, determination and their options.
#[derive(Args, Debug)]
pub(super) struct DecisionOptions {
    /// Condition for mapping waiting tasks again: never; always; contention, if another process
    /// stands in the queue of a desired device; speedup, if the desired devices save more than
    /// co-scheduling costs (--cost); amortization, if a desired device is occupied for longer than
    /// that; all-occupied, if all devices are occupied
    #[arg(long, value_name = "WHEN",
          value_parser = PossibleValuesParser::new(When::ALL.map(When::name)).map(when))]
    determination: Option<When>,

    /// The scheduler: greedy, random or enhanced, as in the thesis; evolutionary; heft; oracle,
    /// which tries all mappings of at most ten tasks; best, which is oracle for few tasks and
    /// evolutionary for more
    #[arg(long, value_name = "NAME", default_value = "best",
          value_parser = PossibleValuesParser::new(WHO.map(SchedulerName::name)).map(who))]
    scheduler: SchedulerName,

    #[command(flatten)]
    how: Given<HowOptions>,
}

/// Options of the schedulers.
#[derive(Args, Debug)]
pub(super) struct HowOptions {
    /// Rule of the greedy scheduler for the task that gets an accelerator: most direct successors,
    /// shortest runtime there, or greatest age. With two names the first is for tasks that can run
    /// nowhere else, and the second for the remaining accelerators
    #[arg(long, value_name = "NAME[,NAME]", value_delimiter = ',', default_value = "age",
          value_parser = PossibleValuesParser::new(PRIORITIES.map(|(name, _)| name)).map(priority))]
    priority: Vec<Priority>,

    /// Objective to minimise: deadlines is the number of missed deadlines, then the makespan, then
    /// the sum of the turnarounds; makespan; sum is the sum of the runtimes
    #[arg(long, value_name = "WHAT", default_value = "deadlines",
          value_parser = PossibleValuesParser::new(OBJECTIVES.map(|(name, _)| name)).map(objective))]
    objective: Objective,

    /// Number of mappings to try: the minimum for enhanced, the maximum for evolutionary and
    /// oracle. Each has its own default
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    iterations: Option<u32>,

    /// Let a task that is alone in its round leave the device of the task before it (greedy)
    #[arg(long)]
    no_stickiness: bool,

    /// Cost of co-scheduling that determinations use; by default the measured cost of the scheduler
    /// in the history, or its usual cost
    #[arg(long, value_name = "NS", value_parser = ns, allow_hyphen_values = true)]
    cost: Option<u64>,

    /// Delay waiting tasks by the cost
    #[arg(long)]
    charge_cost: bool,

    /// Accept mappings that are worse than not co-scheduling
    #[arg(long)]
    take_worse: bool,

    /// Seed of the pseudo-random numbers
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
    /// Settings of a decision. `history` is the file that may have the measured cost of the
    /// scheduler.
    pub(super) fn settings(&self, history: &Path) -> Result<Settings, Failure> {
        let settings = self.how.settings()?;
        self.refuse_unread()?;
        let known = match self.how.cost {
            None => decision_cost(history, recorded_as(self.scheduler))?,
            Some(_) => None,
        };
        Ok(Settings {
            when: self.determination,
            who: self.scheduler,
            cost: known.or(settings.cost),
            ..settings
        })
    }
}

impl DecisionOptions {
    /// Refuses options that the scheduler does not read.
    fn refuse_unread(&self) -> Result<(), Failure> {
        let is_greedy = self.scheduler == SchedulerName::Greedy;
        let tries = matches!(
            self.scheduler,
            SchedulerName::Enhanced
                | SchedulerName::Evolutionary
                | SchedulerName::Oracle
                | SchedulerName::Best
        );
        let greedy = |field| Conditional { field, is_read: is_greedy, needs: "--scheduler greedy" };
        let needs = "--scheduler enhanced, evolutionary, oracle or best";
        let iterations = Conditional { field: "iterations", is_read: tries, needs };
        self.how.refuse_unread(&[greedy("priority"), greedy("no_stickiness"), iterations])
    }
}

/// Name under which the decisions of a scheduler are in the history.
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
                let message =
                    "--priority takes one name, or two: the first for tasks that can run \
                               nowhere else, the second for the remaining accelerators";
                return Err(Failure::Usage(message.into()));
            }
        };
        Ok(Settings {
            greedy: GreedyOptions { contention, leftovers, stickiness: !self.no_stickiness },
            objective: self.objective,
            cost: self.cost.map(|ns| Cost::constant(ns as f64)),
            charge_cost: self.charge_cost,
            take_worse: self.take_worse,
            iterations: self.iterations,
            seed: self.seed,
            ..Settings::default()
        })
    }
}
