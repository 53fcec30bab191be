// SPDX-License-Identifier: GPL-2.0
//! Rounds of the greedy scheduler with their winners (§5.4.1).

use pbs_cosched::{Choice, ExecutionTarget, GreedyOptions, Mapping, Priority, Task};
use pbs_text::{columns, ms};
use serde::Serialize;

use crate::names::label_of;
use crate::Case;

/// Rounds that are listed in text.
const SHOWN: usize = 40;
/// Losers that are named.
const NAMED: usize = 4;

/// Assignments, round by round.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Rounds {
    /// In their order.
    pub given: Vec<GreedyAssignment>,
}

/// Resource that a task got from greedy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GreedyAssignment {
    /// Round of the assignment.
    pub round: u32,
    /// Assigned resource: an accelerator's type, or a number of threads.
    pub what: String,
    /// Process that got it.
    pub process: String,
    /// Task that got it.
    pub task: String,
    /// Variant of the task.
    pub variant: String,
    /// Whether the task could run on nothing else.
    pub urgent: bool,
    /// Reason for the choice, in words.
    pub why: String,
    /// Tasks that were ready for the same and did not get it in this round.
    pub losers: Vec<String>,
}

impl Rounds {
    /// Reconstructs the assignments of the greedy scheduler with such options.
    pub fn new(case: &Case<'_>, mapping: &Mapping, options: &GreedyOptions) -> Self {
        let choice = |task: usize| mapping.choices.get(task).copied().flatten();
        let ready: Vec<u32> =
            (0..case.workload.tasks.len()).map(|task| ready(case, task, &choice)).collect();
        let successors = case.workload.successors();
        let name = |task: usize| {
            let of = &case.workload.tasks[task];
            format!("{} {}", case.names.processes[of.process], of.name)
        };
        let mut given = Vec::new();
        for task in mapping.order() {
            let Some(chosen) = choice(task) else { continue };
            let of = &case.workload.tasks[task];
            let place = of.variants[chosen.variant].place;
            let contends = |other: usize| {
                let later = choice(other).is_some_and(|of| of.round > chosen.round);
                later && ready[other] <= chosen.round
            };
            let can = |other: &Task| match place {
                ExecutionTarget::Device(_) => other.variants.iter().any(|of| of.place == place),
                ExecutionTarget::Threads(_) => {
                    let mut variants = other.variants.iter();
                    variants.any(|of| matches!(of.place, ExecutionTarget::Threads(_)))
                }
            };
            let tasks = case.workload.tasks.iter().enumerate();
            let losers = tasks.filter(|(other, of)| contends(*other) && can(of));
            let losers: Vec<usize> = losers.map(|(other, _)| other).collect();
            let is_urgent = |of: &Task| {
                matches!(place, ExecutionTarget::Device(_))
                    && of.variants.iter().all(|of| of.place == place)
            };
            let urgent = is_urgent(of);
            let beaten =
                losers.iter().any(|&other| !urgent || is_urgent(&case.workload.tasks[other]));
            let priority = if urgent { options.contention } else { options.leftovers };
            let why = match (urgent, beaten) {
                (true, false) => "can run nowhere else".into(),
                (false, false) => "nobody else was ready for it".into(),
                (_, true) => {
                    let urgent = if urgent { "can run nowhere else; " } else { "" };
                    let worth = match priority {
                        Priority::Successors => {
                            format!("most direct successors ({})", successors[task].len())
                        }
                        Priority::Runtime => {
                            let runtime_ns = of.variants[chosen.variant].runtime_ns;
                            format!("least time there ({} ms)", ms(runtime_ns))
                        }
                        Priority::Age => "the oldest".into(),
                    };
                    format!("{urgent}{worth}")
                }
            };
            let what = match place {
                ExecutionTarget::Threads(1) => "1 thread".into(),
                ExecutionTarget::Threads(threads) => format!("{threads} threads"),
                ExecutionTarget::Device(device) => case.platform.devices[device].name.clone(),
            };
            given.push(GreedyAssignment {
                round: chosen.round,
                what,
                process: case.names.processes[of.process].clone(),
                task: of.name.clone(),
                variant: label_of(case.workload, case.platform, task, chosen.variant),
                urgent,
                why,
                losers: losers.into_iter().map(name).collect(),
            });
        }
        Self { given }
    }

    pub(crate) fn text(&self) -> String {
        let titles = ["ROUND", "WHAT", "PROCESS", "TASK", "WHY", "WAITED FOR A LATER ROUND"];
        let mut lines = vec![titles.map(String::from).to_vec()];
        for given in self.given.iter().take(SHOWN) {
            let mut losers: Vec<_> = given.losers.iter().take(NAMED).cloned().collect();
            match given.losers.len().saturating_sub(NAMED) {
                0 => {}
                more => losers.push(format!("{more} more")),
            }
            lines.push(vec![
                given.round.to_string(),
                given.what.clone(),
                given.process.clone(),
                given.task.clone(),
                given.why.clone(),
                losers.join(", "),
            ]);
        }
        let mut text = columns(&lines, titles.len());
        match self.given.len().saturating_sub(SHOWN) {
            0 => {}
            more => text += &format!("... and {more} more; --json has all\n"),
        }
        text
    }
}

/// The first round in which a task is ready: what runs has won the first.
fn ready(case: &Case<'_>, task: usize, choice: &impl Fn(usize) -> Option<Choice>) -> u32 {
    let edges = case.workload.tasks[task].after.iter();
    let rounds = edges.map(|edge| match case.running.slot(edge.task) {
        Some(slot) if slot.end_ns > case.running.now_ns => 2,
        Some(_) => 1,
        None => choice(edge.task).map_or(1, |of| of.round + 1),
    });
    rounds.max().unwrap_or(1)
}
