// SPDX-License-Identifier: GPL-2.0
//! Processes that arrive one after the other.

use pbs_cosched::{Necessity, Run, Timeline};
use pbs_text::{columns, ms};
use serde::Serialize;

use crate::measures::{faster, CO_SCHEDULED};
use crate::plan::regards_slowdowns;
use crate::rows::{placed, rows, table};
use crate::{words, Case, Settings, TaskRow, When, WithAndWithout};

/// Result of a simulated workload.
#[derive(Clone, Debug, Serialize)]
pub struct Simulated {
    /// Name of the scheduler.
    pub scheduler: &'static str,
    /// Name of the determination.
    pub determination: &'static str,
    /// Decisions at the arrivals.
    pub decisions: Vec<DecisionRow>,
    /// Measures of the result, with slow-downs of tasks that run side by side if these are known.
    pub measures: WithAndWithout,
    /// Measures with slow-downs, which are those above, if slow-downs are known.
    pub slowed: Option<WithAndWithout>,
    /// Placement of each task.
    pub tasks: Vec<TaskRow>,
    /// Variants and timeline of the run.
    #[serde(skip)]
    pub run: Run,
    /// Not co-scheduling and what came out, if slow-downs are known.
    #[serde(skip)]
    pub(crate) slowed_timelines: Option<(Timeline, Timeline)>,
}

/// Decision at an arrival.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DecisionRow {
    /// Time of the arrival.
    pub at_ns: u64,
    /// Process that arrived.
    pub process: String,
    /// Tasks that waited, its own included.
    pub waiting: usize,
    /// The determination said that co-scheduling is necessary.
    pub necessary: bool,
    /// Reason of the determination, in words.
    pub determination: String,
    /// Time that would be saved, for speedup.
    pub saved_ns: Option<u64>,
    /// Waiting time, for amortization.
    pub wait_ns: Option<u64>,
    /// Cost of co-scheduling, for both.
    pub cost_ns: Option<u64>,
    /// Whether all waiting tasks were mapped anew.
    pub taken: bool,
    /// Figure that decided between the new mapping and the old; `None`: there was no new mapping.
    pub verdict: Option<String>,
}

impl DecisionRow {
    fn new(case: &Case<'_>, decision: &pbs_cosched::Decision) -> Self {
        let (saved_ns, wait_ns, cost_ns) = numbers(decision.necessity);
        Self {
            at_ns: decision.at_ns,
            process: case.names.processes[decision.process].clone(),
            waiting: decision.waiting,
            necessary: decision.necessity.is_necessary(),
            determination: words::necessity(decision.necessity),
            saved_ns,
            wait_ns,
            cost_ns,
            taken: decision.taken,
            verdict: decision.verdict.map(|verdict| words::reason(verdict.reason)),
        }
    }
}

/// Returns the saved time, the waiting time and the cost of a determination.
pub(crate) fn numbers(necessity: Necessity) -> (Option<u64>, Option<u64>, Option<u64>) {
    match necessity {
        Necessity::Speedup { saved_ns, cost_ns } => (Some(saved_ns), None, Some(cost_ns)),
        Necessity::Amortization { wait_ns, cost_ns } => (None, Some(wait_ns), Some(cost_ns)),
        _ => (None, None, None),
    }
}

/// Simulates the arrivals of a case; its time is ignored.
///
/// # Errors
///
/// All faults of the workload.
pub fn sim(case: &Case<'_>, settings: &Settings) -> Result<Simulated, Vec<String>> {
    let (workload, platform, names) = (case.workload, case.platform, &case.names);
    let when = settings.when.unwrap_or(When::Contention);
    let options = settings.options(when, workload.tasks.len());
    let run = case.simulate(&options)?;
    let decisions = run.decisions.iter();
    let decisions = decisions.map(|decision| DecisionRow::new(case, decision));
    let without_timeline = case.slowed_without();
    let without = placed(workload, platform, names, &without_timeline, |task| {
        Some((case.variant(&case.without_mapping, task)?, None))
    });
    let with = placed(workload, platform, names, &run.timeline, |task| {
        Some((run.variants.get(task).copied().flatten()?, None))
    });
    let measures = WithAndWithout::new(workload, platform, names, &without_timeline, &run.timeline);
    let is_slowed = case.slowed.is_some();
    Ok(Simulated {
        scheduler: settings.who.name(),
        determination: when.name(),
        decisions: decisions.collect(),
        slowed: is_slowed.then(|| measures.clone()),
        measures,
        tasks: rows(workload, names, |_| false, with, without),
        slowed_timelines: is_slowed.then(|| (without_timeline, run.timeline.clone())),
        run,
    })
}

impl Simulated {
    /// For people.
    pub fn text(&self) -> String {
        let titles = ["AT, ms", "COMES", "WAITING", "NECESSARY", "DETERMINATION", "CO-SCHEDULED"];
        let mut lines = vec![titles.map(String::from).to_vec()];
        for decision in &self.decisions {
            let is = |yes: bool| if yes { "yes" } else { "no" };
            let taken = match &decision.verdict {
                Some(why) => format!("{}: {why}", is(decision.taken)),
                None => is(false).into(),
            };
            lines.push(vec![
                ms(decision.at_ns),
                decision.process.clone(),
                decision.waiting.to_string(),
                is(decision.necessary).into(),
                decision.determination.clone(),
                taken,
            ]);
        }
        format!(
            "{}\n{}\n{}\n{}, {}: {}{}.\n",
            columns(&lines, titles.len()),
            table(&self.tasks),
            self.measures.text(CO_SCHEDULED),
            self.scheduler,
            self.determination,
            faster(self.measures.speed_up),
            match (&self.slowed, regards_slowdowns(self.scheduler)) {
                (None, _) => "",
                (Some(_), true) => " with slow-downs",
                (Some(_), false) => " with slow-downs, which this scheduler does not regard",
            },
        )
    }
}
