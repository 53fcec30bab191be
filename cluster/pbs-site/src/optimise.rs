// SPDX-License-Identifier: GPL-2.0
//! Improvement of the plan: the promises that requests may have, the cost of a plan, and the run
//! times that it expects.

/// Promise to the user of a request that has not started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// A better plan may start the request at any time.
    None,
    /// No later plan starts the request later.
    Start,
    /// The request is over by its deadline, and may start at any time that allows it.
    Deadline,
}

impl Promise {
    /// All promises.
    pub const ALL: [Self; 3] = [Self::None, Self::Start, Self::Deadline];

    /// Returns the name in site files and requests.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Start => "start",
            Self::Deadline => "deadline",
        }
    }

    /// Returns the promise of that name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|of| of.name() == name)
    }
}

/// Rule by which run times are learned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Learner {
    /// The mean of the user's last two run times (Tsafrir, Etsion and Feitelson 2007,
    /// *Backfilling using system-generated predictions rather than user runtime estimates*).
    LastTwo,
    /// The upper quartile of the last ten run times of the user's jobs that are alike.
    Quantile,
    /// The mean of the logarithms of the last ten run times of the user's jobs that are alike, in
    /// which a later one counts more. It is the estimate that the node's history makes of
    /// instructions.
    WeightedMean,
    /// A linear regression of the logarithms, which follows the jobs that end (after Gaussier,
    /// Glesser, Reis and Trystram 2015, *Improving backfilling by using machine learning to predict
    /// running times*).
    Regression,
}

impl Learner {
    /// All rules.
    pub const ALL: [Self; 4] =
        [Self::LastTwo, Self::Quantile, Self::WeightedMean, Self::Regression];

    /// Returns the name of the rule in site files, options and tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::LastTwo => "last-two",
            Self::Quantile => "quantile",
            Self::WeightedMean => "weighted-mean",
            Self::Regression => "regression",
        }
    }

    /// Returns the rule of that name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|of| of.name() == name)
    }
}

/// Search for better plans. The weights are costs, of which a better plan has less in sum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Optimise {
    /// Promises that requests may ask for. The first one is the promise of requests that ask for
    /// none of them.
    pub promises: Vec<Promise>,
    /// Number of orders of the requests that a search tries.
    pub orders: u64,
    /// Number of requests that a search places, over all orders.
    pub placements: u64,
    /// Cost of a second of waiting.
    pub wait: u64,
    /// Cost of one unit of bounded slowdown.
    pub slowdown: u64,
    /// Cost of one unit of a user's normalised wait.
    pub fairness: u64,
    /// Cost of a service level agreement that is broken.
    pub deadline: u64,
    /// Cost of a second until the last request of the plan has ended.
    pub utilisation: u64,
    /// Wait after which each further second costs twice as much as the first one; 0: never.
    pub even_after_s: u64,
    /// Rule by which run times are learned, which decide what a wait costs; `None`: the limits of
    /// the users do.
    pub run_times: Option<Learner>,
}

impl Default for Optimise {
    fn default() -> Self {
        Self {
            promises: vec![Promise::Start],
            orders: 200,
            placements: 20_000,
            wait: 1,
            slowdown: 600,
            fairness: 0,
            deadline: 0,
            utilisation: 0,
            even_after_s: 5_000,
            run_times: None,
        }
    }
}

impl Optimise {
    /// Name of the limits of the users as expected run times.
    pub const LIMIT: &'static str = "limit";

    /// Returns the name of the expected run times in site files.
    pub fn run_times_name(&self) -> &'static str {
        self.run_times.map_or(Self::LIMIT, Learner::name)
    }

    /// The largest number that a site may declare here.
    pub const MOST: u64 = 1_000_000_000;

    /// Returns the keys of a site file that have a plain number, with their values.
    pub fn numbers(&self) -> [(&'static str, u64); 7] {
        [
            ("orders", self.orders),
            ("placements", self.placements),
            ("wait", self.wait),
            ("slowdown", self.slowdown),
            ("fairness", self.fairness),
            ("deadline", self.deadline),
            ("utilisation", self.utilisation),
        ]
    }
}
