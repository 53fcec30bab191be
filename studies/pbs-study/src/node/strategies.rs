// SPDX-License-Identifier: GPL-2.0
//! Quality of the rules by which jobs are planned, and the benefit of sharing a node's memory among
//! its cores.
//!
//! The thesis found its first rule, earliest done, sufficient in tests by hand (Glaß 2024, 6.1.3),
//! and compares static with dynamic balancing of memory in drawings (figures 5 and 6). Here small
//! nets are planned in every way and compared with the best plan that a long search finds, and with
//! a lower bound that proves some of these plans optimal.

use std::fmt::Write;

use pbs_gen::nets::{small, Small};
use pbs_planner::{
    lower_bound, reserve, Balancing, Options as Search, Request, RunId, Store, Strategy,
};
use pbs_text::{grouped, Table};
use serde::Serialize;

use crate::node::{for_each_plan, percent, Error, Format, Options};
use crate::Study;

/// Plans that the search for the best one makes.
const TRIES: usize = 36_000;

/// Deadlines, in percent of the end of the best plan known with dynamic balancing.
const DEADLINES_PERCENT: [u64; 3] = [100, 110, 150];

const RUN: RunId = RunId(0);

const BALANCINGS: [(Balancing, &str); 2] =
    [(Balancing::Static, "static"), (Balancing::Dynamic, "dynamic")];

/// Planners that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
enum Planner {
    /// The thesis's rule.
    #[serde(rename = "earliest finish")]
    EarliestFinish,
    #[serde(rename = "critical path")]
    CriticalPath,
    #[serde(rename = "latest finish")]
    LatestFinish,
    #[serde(rename = "memory first")]
    MemoryFirst,
    /// The thesis's rule, and four tries with random cores: the retries of the prototype.
    #[serde(rename = "random retries")]
    RandomRetries,
    /// The best of the four rules.
    #[serde(rename = "rules")]
    Rules,
    /// The search that the planner runs while jobs run.
    #[serde(rename = "local search")]
    LocalSearch,
    /// The search with ten times the tries: the best plan that is known.
    #[serde(rename = "long search")]
    LongSearch,
}

impl Planner {
    const ALL: [Self; 8] = [
        Self::EarliestFinish,
        Self::CriticalPath,
        Self::LatestFinish,
        Self::MemoryFirst,
        Self::RandomRetries,
        Self::Rules,
        Self::LocalSearch,
        Self::LongSearch,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::EarliestFinish => "earliest finish",
            Self::CriticalPath => "critical path",
            Self::LatestFinish => "latest finish",
            Self::MemoryFirst => "memory first",
            Self::RandomRetries => "random retries",
            Self::Rules => "rules",
            Self::LocalSearch => "local search",
            Self::LongSearch => "long search",
        }
    }

    fn search(self) -> Search {
        let strategies = match self {
            Self::EarliestFinish => vec![Strategy::EarliestFinish],
            Self::CriticalPath => vec![Strategy::CriticalPath],
            Self::LatestFinish => vec![Strategy::LatestFinish],
            Self::MemoryFirst => vec![Strategy::MemoryFirst],
            Self::RandomRetries => {
                let mut tries = vec![Strategy::RandomCores; 5];
                tries[0] = Strategy::EarliestFinish;
                tries
            }
            Self::Rules => (Strategy::ALL.into_iter())
                .filter(|&strategy| strategy != Strategy::LocalSearch)
                .collect(),
            Self::LocalSearch | Self::LongSearch => Strategy::ALL.to_vec(),
        };
        let default = Search::default();
        Search {
            strategies,
            local_search_tries: match self {
                Self::LongSearch => TRIES,
                _ => default.local_search_tries,
            },
            ..default
        }
    }
}

/// Ends of one net with one way to divide memory.
#[derive(Clone, Copy)]
struct Ends {
    /// No plan ends before.
    bound_ns: u64,
    /// Ends of the plans by planner; `None`: it finds no plan.
    ends_ns: [Option<u64>; Planner::ALL.len()],
}

impl Ends {
    fn best_ns(&self) -> Option<u64> {
        self.ends_ns.iter().copied().flatten().min()
    }

    fn is_proven(&self) -> bool {
        self.best_ns() == Some(self.bound_ns)
    }
}

#[derive(Clone, Copy, Debug, Serialize)]
struct StrategyRow {
    balancing: &'static str,
    planner: Planner,
    /// Nets for which the planner finds a plan, however late that ends.
    planned: u64,
    /// Nets whose plan ends as early as the best one known with that balancing.
    best: u64,
    /// Nets for which the planner finds an optimal plan, of the nets with a proven optimum.
    proven: u64,
    optimal: u64,
    /// Excess of the ends of its plans over the best known, in percent: mean and most.
    over_mean_percent: f64,
    over_max_percent: f64,
    /// Number of its plans that keep a deadline of 100, 110 and 150 % of the end of the best plan
    /// that is known with dynamic balancing.
    accepted: [u64; DEADLINES_PERCENT.len()],
}

/// Static against dynamic balancing, each with the best plans known.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Comparison {
    /// Nets with a plan.
    planned_static: u64,
    planned_dynamic: u64,
    /// Nets with a plan under static balancing alone: rules of thumb may miss one.
    static_alone: u64,
    /// Nets with both plans, by the plan that ends earlier.
    dynamic_earlier: u64,
    same: u64,
    static_earlier: u64,
    /// The mean of the end with static balancing, in percent of that with dynamic.
    static_end_mean_percent: f64,
    static_end_max_percent: f64,
}

/// Results of the study.
#[derive(Debug, Serialize)]
struct Strategies {
    nets: u64,
    seed: u64,
    rows: Vec<StrategyRow>,
    balancing: Comparison,
}

/// Plans as many nets as there are plans to be generated, in all ways.
///
/// # Errors
///
/// None today.
pub fn study(options: &Options<'_>) -> Result<impl Study, Error> {
    let nets = for_each_plan(options, |number| Ok(of_net(options.seed.wrapping_add(number))))?;
    let mut rows = Vec::new();
    for (balancing, &(_, name)) in BALANCINGS.iter().enumerate() {
        for (place, planner) in Planner::ALL.into_iter().enumerate() {
            rows.push(row(&nets, (balancing, name), (place, planner)));
        }
    }
    Ok(Strategies { nets: options.plans, seed: options.seed, rows, balancing: compare(&nets) })
}

/// With static and with dynamic balancing.
type Net = [Ends; BALANCINGS.len()];

fn of_net(seed: u64) -> Net {
    let Small { machine, job } = small(seed);
    BALANCINGS.map(|(balancing, _)| {
        let store = Store::new(machine.clone(), balancing);
        let request = Request::new(RUN, &job).without_deadline();
        Ends {
            bound_ns: lower_bound(&store, &request).end_ns,
            ends_ns: Planner::ALL.map(|planner| {
                let planned = reserve(&mut store.clone(), &request, &planner.search());
                // A refusal is a result: the strategy finds no end.
                planned.ok().map(|planned| planned.end_ns)
            }),
        }
    })
}

fn row(
    nets: &[Net],
    (balancing, name): (usize, &'static str),
    of: (usize, Planner),
) -> StrategyRow {
    let (place, planner) = of;
    let here = || nets.iter().map(|net| &net[balancing]);
    // The end of its plan, and that of the best.
    let ends = here().filter_map(|ends| Some((ends.ends_ns[place]?, ends.best_ns()?)));
    let ends: Vec<_> = ends.collect();
    let over = ends.iter();
    let over: Vec<_> = over
        .map(|&(end_ns, best_ns)| 100.0 * (end_ns as f64 / best_ns.max(1) as f64 - 1.0))
        .collect();
    let proven = || here().filter(|ends| ends.is_proven());
    let dynamic = BALANCINGS.len() - 1;
    let keeps = |net: &&Net, percent: u64| {
        let best_ns = net[dynamic].best_ns();
        let end_ns = net[balancing].ends_ns[place];
        best_ns.zip(end_ns).is_some_and(|(best, end)| end <= best * percent / 100)
    };
    StrategyRow {
        balancing: name,
        planner,
        planned: ends.len() as u64,
        best: ends.iter().filter(|(end, best)| end == best).count() as u64,
        proven: proven().count() as u64,
        optimal: (proven()).filter(|ends| ends.ends_ns[place] == Some(ends.bound_ns)).count()
            as u64,
        over_mean_percent: over.iter().sum::<f64>() / over.len().max(1) as f64,
        over_max_percent: over.iter().copied().fold(0.0, f64::max),
        accepted: DEADLINES_PERCENT
            .map(|percent| nets.iter().filter(|net| keeps(net, percent)).count() as u64),
    }
}

fn compare(nets: &[Net]) -> Comparison {
    let mut all = Comparison::default();
    let mut sum_percent = 0.0;
    for [of_static, of_dynamic] in nets {
        let (of_static, of_dynamic) = (of_static.best_ns(), of_dynamic.best_ns());
        all.planned_static += u64::from(of_static.is_some());
        all.planned_dynamic += u64::from(of_dynamic.is_some());
        all.static_alone += u64::from(of_static.is_some() && of_dynamic.is_none());
        let Some((of_static, of_dynamic)) = of_static.zip(of_dynamic) else {
            continue;
        };
        all.dynamic_earlier += u64::from(of_dynamic < of_static);
        all.same += u64::from(of_dynamic == of_static);
        all.static_earlier += u64::from(of_dynamic > of_static);
        let percent = 100.0 * of_static as f64 / of_dynamic.max(1) as f64;
        sum_percent += percent;
        all.static_end_max_percent = all.static_end_max_percent.max(percent);
    }
    let both = all.dynamic_earlier + all.same + all.static_earlier;
    all.static_end_mean_percent = sum_percent / both.max(1) as f64;
    all
}

impl Study for Strategies {
    fn text(&self, format: Format) -> String {
        let mut titles: Vec<String> =
            ["Balancing", "Planner", "Planned", "Best", "Optimal", "Of", "Later (%)", "Most (%)"]
                .map(String::from)
                .to_vec();
        titles.extend(DEADLINES_PERCENT.map(|percent| format!("By {percent} %")));
        let titles: Vec<_> = titles.iter().map(String::as_str).collect();
        let mut table = Table::new(&titles, 2);
        for row in &self.rows {
            let mut cells = vec![
                row.balancing.into(),
                row.planner.name().into(),
                grouped(row.planned),
                grouped(row.best),
                grouped(row.optimal),
                grouped(row.proven),
                format!("{:.2}", row.over_mean_percent),
                format!("{:.1}", row.over_max_percent),
            ];
            cells.extend(row.accepted.map(grouped));
            table.push(cells);
        }
        let of = &self.balancing;
        let both = of.dynamic_earlier + of.same + of.static_earlier;
        let mut text =
            format!("{} nets, seed {}.\n\n{}", grouped(self.nets), self.seed, table.print(format));
        // Writing to a string does not fail.
        _ = write!(
            text,
            "\nThe best plans known: {} nets have one with static balancing, {} with dynamic. \
             Of {} with both that of dynamic balancing ends earlier with {} ({}), with {} at \
             the same time, with {} later; with static balancing plans end after {:.1} % of the \
             time, at most {:.1} %.\n",
            grouped(of.planned_static),
            grouped(of.planned_dynamic),
            grouped(both),
            grouped(of.dynamic_earlier),
            percent(of.dynamic_earlier, both),
            grouped(of.same),
            grouped(of.static_earlier),
            of.static_end_mean_percent,
            of.static_end_max_percent,
        );
        text
    }
}
