// SPDX-License-Identifier: GPL-2.0
//! Accuracy of the levels of the validation.
//!
//! The thesis calls its three levels a good estimation (Glaß 2024, 6.1.4) and has no figures. Here
//! each level accepts or refuses the same nets, with deadlines from too short to ample. Its answer
//! is compared with a known fact: a plan that keeps the deadline, found by a long search, or a
//! lower bound that proves that there is none.

use std::fmt::Write;

use pbs_gen::nets::{small, Small};
use pbs_planner::{
    admit, lower_bound, reserve, validate_level, Balancing, Level, Options as Search, Request,
    RunId, Store, Validation,
};
use pbs_text::{grouped, Table};
use serde::Serialize;

use crate::node::{for_each_plan, percent, Error, Format, Options};
use crate::Study;

/// Deadlines, in percent of the end of the best plan that is known.
const DEADLINES_PERCENT: [u64; 6] = [60, 80, 90, 100, 105, 120];

/// Plans that the search for the best one makes.
const TRIES: usize = 36_000;

const RUN: RunId = RunId(0);

/// Source of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
enum Judge {
    /// Level 1, which proves.
    #[serde(rename = "level 1")]
    General,
    /// Level 2 alone, the job check.
    #[serde(rename = "level 2")]
    Job,
    /// Level 3 alone, the process check.
    #[serde(rename = "level 3")]
    Process,
    /// One of the three, as in the thesis.
    #[serde(rename = "levels 1 to 3")]
    Thesis,
    /// Level 1, and then the planner, which finds a plan or does not.
    #[serde(rename = "level 1, planner")]
    Planner,
}

impl Judge {
    const ALL: [Self; 5] = [Self::General, Self::Job, Self::Process, Self::Thesis, Self::Planner];

    fn name(self) -> &'static str {
        match self {
            Self::General => "level 1",
            Self::Job => "level 2",
            Self::Process => "level 3",
            Self::Thesis => "levels 1 to 3",
            Self::Planner => "level 1, planner",
        }
    }

    /// Whether this judge accepts the job.
    fn takes(self, store: &Store, request: &Request<'_>) -> bool {
        let store = &mut store.clone();
        let validation = Validation::default();
        let mut of = |level| validate_level(store, request, &validation, level).is_ok();
        match self {
            Self::General => of(Level::General),
            Self::Job => of(Level::Job),
            Self::Process => of(Level::Process),
            Self::Thesis => Level::ALL.into_iter().all(of),
            Self::Planner => admit(store, request, &validation, &Search::default()).is_ok(),
        }
    }
}

/// Wrong answers about the nets with a deadline.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Answers {
    /// Nets refused, although there is a plan.
    refused_though_planned: u64,
    /// Nets accepted, although it is proven that there is no plan.
    taken_though_impossible: u64,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct AdmissionRow {
    /// Deadline, in percent of the end of the best plan known.
    deadline_percent: u64,
    judge: Judge,
    /// Nets with a plan that keeps the deadline.
    planned: u64,
    /// Nets of which it is proven that there is none.
    impossible: u64,
    #[serde(flatten)]
    answers: Answers,
}

/// Results for all nets.
#[derive(Debug, Serialize)]
struct Admission {
    nets: u64,
    seed: u64,
    /// Nets of which no plan was found, whatever the deadline; they are left out.
    without_plan: u64,
    /// Nets of which the best plan found ends at its lower bound.
    proven: u64,
    rows: Vec<AdmissionRow>,
}

/// Known facts about a net with a deadline, and the judges that accept it.
#[derive(Clone, Copy)]
struct Case {
    is_planned: bool,
    is_impossible: bool,
    takes: [bool; Judge::ALL.len()],
}

struct Net {
    is_proven: bool,
    cases: [Case; DEADLINES_PERCENT.len()],
}

/// Asks all judges about as many nets as there are plans to be generated.
///
/// # Errors
///
/// None today.
pub fn study(options: &Options<'_>) -> Result<impl Study, Error> {
    let nets = for_each_plan(options, |number| Ok(of_net(options.seed + number)))?;
    let known = || nets.iter().flatten();
    let mut rows = Vec::new();
    for (place, deadline_percent) in DEADLINES_PERCENT.into_iter().enumerate() {
        for (index, judge) in Judge::ALL.into_iter().enumerate() {
            let cases = || known().map(|net| &net.cases[place]);
            let count = |is: fn(&Case, usize) -> bool| {
                cases().filter(|case| is(case, index)).count() as u64
            };
            rows.push(AdmissionRow {
                deadline_percent,
                judge,
                planned: count(|case, _| case.is_planned),
                impossible: count(|case, _| case.is_impossible),
                answers: Answers {
                    refused_though_planned: count(|case, it| case.is_planned && !case.takes[it]),
                    taken_though_impossible: count(|case, it| case.is_impossible && case.takes[it]),
                },
            });
        }
    }
    Ok(Admission {
        nets: options.plans,
        seed: options.seed,
        without_plan: options.plans - known().count() as u64,
        proven: known().filter(|net| net.is_proven).count() as u64,
        rows,
    })
}

/// `None`: no plan is known.
fn of_net(seed: u64) -> Option<Net> {
    let Small { machine, job } = small(seed);
    let store = Store::new(machine, Balancing::Dynamic);
    let anyhow = Request::new(RUN, &job).without_deadline();
    let long = Search { local_search_tries: TRIES, ..Search::default() };
    let best_ns = reserve(&mut store.clone(), &anyhow, &long).ok()?.end_ns;
    let bound_ns = lower_bound(&store, &anyhow).end_ns;
    Some(Net {
        is_proven: best_ns == bound_ns,
        cases: DEADLINES_PERCENT.map(|percent| {
            let deadline_ns = best_ns * percent / 100;
            let request = Request { deadline_ns, ..anyhow };
            Case {
                is_planned: best_ns <= deadline_ns,
                is_impossible: deadline_ns < bound_ns,
                takes: Judge::ALL.map(|judge| judge.takes(&store, &request)),
            }
        }),
    })
}

impl Study for Admission {
    fn text(&self, format: Format) -> String {
        let mut text = format!(
            "{} nets, seed {}; of {} no plan is known, of {} the best is proven to be the best.\n\n",
            grouped(self.nets),
            self.seed,
            grouped(self.without_plan),
            grouped(self.proven),
        );
        let mut titles = vec!["Deadline", "A plan", "Proven none"];
        titles.extend(Judge::ALL.map(Judge::name));
        let both = |of: fn(&AdmissionRow) -> (u64, u64)| {
            let mut table = Table::new(&titles, 1);
            for rows in self.rows.chunks(Judge::ALL.len()) {
                let first = &rows[0];
                let mut cells = vec![
                    format!("{} %", first.deadline_percent),
                    grouped(first.planned),
                    grouped(first.impossible),
                ];
                cells.extend(rows.iter().map(|row| match of(row) {
                    (_, 0) => "-".into(),
                    (part, whole) => percent(part, whole),
                }));
                table.push(cells);
            }
            table.print(format)
        };
        // Writing to a string does not fail.
        _ = write!(
            text,
            "Refused, of those that have a plan:\n\n{}\nTaken, of those that are proven to have \
             none:\n\n{}",
            both(|row| (row.answers.refused_though_planned, row.planned)),
            both(|row| (row.answers.taken_though_impossible, row.impossible)),
        );
        text
    }
}
