// SPDX-License-Identifier: GPL-2.0
//! Settings of decisions: scheduler, determination and objective.

use pbs_cosched::{
    Amortization, Cost, Determination, EnhancedOptions, GreedyOptions, Objective, Options,
    Scheduler,
};

use crate::case::SLOWED_PARTS;

/// Schedulers by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchedulerName {
    /// The round-based greedy scheduler (§5.4).
    Greedy,
    /// Plain random (§5.5.1).
    Random,
    /// Enhanced random (§5.5.2).
    Enhanced,
    /// The evolutionary scheduler (§4.4.2, ours).
    Evolutionary,
    /// HEFT.
    Heft,
    /// Brute force (§4.4.4), of few tasks.
    Oracle,
    /// Brute force where the tasks are few enough, else the evolutionary scheduler.
    Best,
}

impl SchedulerName {
    /// All schedulers except [`SchedulerName::Best`], which stands for a different one each time.
    pub const ALL: [Self; 6] =
        [Self::Greedy, Self::Random, Self::Enhanced, Self::Evolutionary, Self::Heft, Self::Oracle];

    /// Returns the time that a decision usually takes on one core, where none was measured.
    pub fn usual_cost(self) -> Cost {
        let (b, c) = match self {
            Self::Greedy | Self::Random => (250.0, 1_000.0),
            Self::Heft => (500.0, 1_000.0),
            Self::Enhanced => (600.0, 1_000.0),
            // 5,000 mappings, and 100 ns for each task in them.
            Self::Evolutionary | Self::Oracle | Self::Best => (500_000.0, 0.0),
        };
        Cost { a: 0.0, b, c }
    }

    /// Returns the name on the command line and in answers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Greedy => "greedy",
            Self::Random => "random",
            Self::Enhanced => "enhanced",
            Self::Evolutionary => "evolutionary",
            Self::Heft => "heft",
            Self::Oracle => "oracle",
            Self::Best => "best",
        }
    }
}

/// Determinations by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Never.
    Never,
    /// Whenever tasks are submitted (§5.1.2).
    Always,
    /// Hardware contention (§5.1.3).
    Contention,
    /// Speedup (§5.1.4).
    Speedup,
    /// Waiting time amortization by the longest wait (§5.1.5).
    Amortization,
    /// Waiting time amortization by the shortest wait: all devices are occupied (§4.1).
    AllOccupied,
}

impl When {
    /// All determinations.
    pub const ALL: [Self; 6] = [
        Self::Never,
        Self::Always,
        Self::Contention,
        Self::Speedup,
        Self::Amortization,
        Self::AllOccupied,
    ];

    /// Returns the name on the command line and in answers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::Always => "always",
            Self::Contention => "contention",
            Self::Speedup => "speedup",
            Self::Amortization => "amortization",
            Self::AllOccupied => "all-occupied",
        }
    }

    pub(crate) fn determination(self) -> Determination {
        match self {
            Self::Never => Determination::NEVER,
            Self::Always => Determination::ALWAYS,
            Self::Contention => Determination::CONTENTION,
            Self::Speedup => Determination::SPEEDUP,
            Self::Amortization => Determination::AMORTIZATION,
            Self::AllOccupied => Determination {
                amortization: Some(Amortization::AllOccupied),
                ..Determination::NEVER
            },
        }
    }
}

/// Settings of a decision.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Determination. `None`: always for a single decision, contention for arriving processes.
    pub when: Option<When>,
    /// Scheduler.
    pub who: SchedulerName,
    /// Options of the greedy scheduler.
    pub greedy: GreedyOptions,
    /// Objective of the schedule.
    pub objective: Objective,
    /// Cost of co-scheduling, by the number of tasks. `None`: the usual one of the scheduler.
    pub cost: Option<Cost>,
    /// Waiting tasks start only after the cost.
    pub charge_cost: bool,
    /// Take what is worse than not co-scheduling, too.
    pub take_worse: bool,
    /// Mappings that are tried: by enhanced random at least, by the evolutionary scheduler and
    /// brute force at most; nothing: as many as each needs to be good.
    pub iterations: Option<u32>,
    /// Seed of pseudo-random numbers.
    pub seed: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            when: None,
            who: SchedulerName::Best,
            greedy: GreedyOptions::default(),
            objective: Objective::default(),
            cost: None,
            charge_cost: false,
            take_worse: false,
            iterations: None,
            seed: 1,
        }
    }
}

/// Mappings that brute force tries at most: as the oracle, and as the best of ours, which is
/// asked more often.
const ORACLE: u64 = 2_000_000;
const BEST: u64 = 200_000;
/// Tasks in all mappings together that the evolutionary scheduler tries, so that many tasks
/// take as long as a thousand; but so many mappings at least.
const MOST_PLACED: u64 = 5_000_000;
const LEAST: u64 = 200;

impl Settings {
    /// Returns the cost of co-scheduling, by the number of tasks.
    pub fn cost(&self) -> Cost {
        self.cost.unwrap_or_else(|| self.who.usual_cost())
    }

    /// Returns the number of mappings that brute force tries, if it is selected.
    pub(crate) fn brute_force(&self) -> u64 {
        match (self.iterations, self.who) {
            (Some(most), _) => most.into(),
            (None, SchedulerName::Oracle) => ORACLE,
            (None, _) => BEST,
        }
    }

    /// Returns that number for a search with slow-downs, in which a mapping takes longer.
    pub(crate) fn brute_force_slowed(&self) -> u64 {
        match self.iterations {
            Some(most) => most.into(),
            None => self.brute_force() / SLOWED_PARTS,
        }
    }

    /// Returns the options for decisions about that many tasks.
    pub(crate) fn options(&self, when: When, tasks: usize) -> Options {
        let enhanced = EnhancedOptions::default();
        let least = self.iterations.unwrap_or(enhanced.min_iterations);
        let scheduler = match self.who {
            SchedulerName::Greedy => Scheduler::Greedy(self.greedy),
            SchedulerName::Random => Scheduler::PlainRandom(self.seed),
            SchedulerName::Enhanced => {
                let options = EnhancedOptions {
                    min_iterations: least,
                    max_iterations: enhanced.max_iterations.max(least),
                };
                Scheduler::EnhancedRandom(options, self.seed)
            }
            SchedulerName::Evolutionary => Scheduler::Evolutionary(self.seed),
            SchedulerName::Heft => Scheduler::Heft,
            SchedulerName::Oracle | SchedulerName::Best => Scheduler::BruteForce,
        };
        let options = Options::default();
        let evaluations = match (self.iterations, self.who) {
            (Some(most), _) => most.into(),
            (None, SchedulerName::Oracle) => ORACLE,
            (None, _) => {
                let affordable = MOST_PLACED / (tasks as u64).max(1);
                affordable.max(LEAST).min(options.evaluations)
            }
        };
        Options {
            determination: when.determination(),
            scheduler,
            objective: self.objective,
            cost: self.cost(),
            charge_cost: self.charge_cost,
            reject_worse: !self.take_worse,
            evaluations,
        }
    }
}
