// SPDX-License-Identifier: GPL-2.0
//! Explanation of each task's choice.

use pbs_cosched::{necessary, timing};
use pbs_text::{columns, ms};
use serde::Serialize;

use crate::names::label_of;
use crate::sim::numbers;
use crate::words;
use crate::{plan, Case, Planned, Rounds, SchedulerName, Settings, When};

/// Maximum work for alternatives: their number over all tasks, times the number of tasks whose
/// timing each needs.
const MOST_WORK: usize = 10_000_000;
/// Tasks that are listed in text, and alternatives of each.
const SHOWN: usize = 30;
/// See [`SHOWN`].
const ALTERNATIVES: usize = 3;

/// Explanation of a decision.
#[derive(Clone, Debug, Serialize)]
pub struct Explanation {
    /// Explained decision.
    #[serde(flatten)]
    pub planned: Planned,
    /// Process that arrives last, and asks whether to co-schedule.
    pub newcomer: String,
    /// Answer of each determination to the newcomer.
    pub determinations: Vec<DeterminationAnswer>,
    /// Rounds of the greedy scheduler with their winners.
    pub rounds: Option<Rounds>,
    /// Alternatives of each waiting task; empty if there are too many.
    pub alternatives: Vec<Explained>,
}

/// Answer of one determination.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DeterminationAnswer {
    /// Name of the determination.
    pub determination: &'static str,
    /// Co-scheduling is necessary.
    pub necessary: bool,
    /// Reason, in words.
    pub why: String,
    /// Time that would be saved, for speedup.
    pub saved_ns: Option<u64>,
    /// Waiting time, for amortization.
    pub wait_ns: Option<u64>,
    /// Cost of co-scheduling, for both.
    pub cost_ns: Option<u64>,
}

/// Alternatives of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Explained {
    /// Name of the process.
    pub process: String,
    /// Name of the task.
    pub task: String,
    /// Variants of the task, sorted by the end of everything.
    pub variants: Vec<Alternative>,
}

/// A task as another variant, all else being as it was decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Alternative {
    /// Label of the variant.
    pub variant: String,
    /// Whether this variant was chosen.
    pub chosen: bool,
    /// Runtime.
    pub runtime_ns: u64,
    /// End of the task.
    pub end_ns: u64,
    /// End of everything.
    pub all_end_ns: u64,
}

/// Decides about everything that waits, and says why so.
///
/// # Errors
///
/// See [`plan`].
pub fn explain(case: &Case<'_>, settings: &Settings) -> Result<Explanation, String> {
    let planned = plan(case, settings)?;
    let determinations = When::ALL.iter().map(|when| {
        let (workload, platform) = (case.workload, case.platform);
        let determination = when.determination();
        let necessity = necessary(
            workload,
            platform,
            &case.standing,
            case.newcomer,
            &determination,
            &settings.cost(),
        );
        let (saved_ns, wait_ns, cost_ns) = numbers(necessity);
        DeterminationAnswer {
            determination: when.name(),
            necessary: necessity.is_necessary(),
            why: words::necessity(necessity),
            saved_ns,
            wait_ns,
            cost_ns,
        }
    });
    let rounds = (settings.who == SchedulerName::Greedy)
        .then(|| Rounds::new(case, &planned.found.0, &settings.greedy));
    Ok(Explanation {
        newcomer: case.names.processes[case.newcomer].clone(),
        determinations: determinations.collect(),
        rounds,
        alternatives: alternatives(case, &planned),
        planned,
    })
}

/// Returns the alternatives of each waiting task.
fn alternatives(case: &Case<'_>, planned: &Planned) -> Vec<Explained> {
    let tasks = &case.workload.tasks;
    let variants: usize = tasks.iter().map(|task| task.variants.len()).sum();
    if variants.saturating_mul(tasks.len()) > MOST_WORK {
        return Vec::new();
    }
    let mut mapping = planned.mapping.clone();
    for (task, choice) in mapping.choices.iter_mut().enumerate() {
        *choice = choice.filter(|_| case.running.waits(task));
    }
    let mut explained = Vec::new();
    for (index, task) in tasks.iter().enumerate() {
        let choice = mapping.choices.get(index).copied().flatten();
        let Some(choice) = choice else { continue };
        let mut found = Vec::new();
        for (variant, of) in task.variants.iter().enumerate() {
            if let Some(other) = &mut mapping.choices[index] {
                other.variant = variant;
            }
            // What does not fit has no time.
            let Ok(timeline) = timing(case.workload, case.platform, &case.running, &mapping) else {
                continue;
            };
            let end_ns = timeline.slots[index].as_ref().map_or(0, |slot| slot.end_ns);
            found.push(Alternative {
                variant: label_of(case.workload, case.platform, index, variant),
                chosen: variant == choice.variant,
                runtime_ns: of.runtime_ns,
                end_ns,
                all_end_ns: timeline.end_ns(),
            });
        }
        mapping.choices[index] = Some(choice);
        found.sort_by_key(|of| (of.all_end_ns, of.end_ns, !of.chosen));
        explained.push(Explained {
            process: case.names.processes[task.process].clone(),
            task: task.name.clone(),
            variants: found,
        });
    }
    explained
}

impl Explanation {
    /// For people.
    pub fn text(&self) -> String {
        let mut lines = vec![["DETERMINATION", "NECESSARY", "WHY"].map(String::from).to_vec()];
        for said in &self.determinations {
            lines.push(vec![
                said.determination.into(),
                if said.necessary { "yes" } else { "no" }.into(),
                said.why.clone(),
            ]);
        }
        let mut text = format!("When {} arrives:\n{}\n", self.newcomer, columns(&lines, 3));
        if let Some(rounds) = &self.rounds {
            text += &rounds.text();
            text.push('\n');
        }
        text += &self.alternatives_text();
        text.push('\n');
        text + &self.planned.text()
    }

    fn alternatives_text(&self) -> String {
        if self.alternatives.is_empty() {
            return "No task waits, or too many wait to try the other variants of each.\n".into();
        }
        let titles = ["PROCESS", "TASK", "AS", "TAKES, ms", "WOULD END, ms", "ALL WOULD END, ms"];
        let mut lines = vec![titles.map(String::from).to_vec()];
        for explained in self.alternatives.iter().take(SHOWN) {
            let (chosen, others): (Vec<_>, Vec<_>) =
                explained.variants.iter().partition(|of| of.chosen);
            let mut first = true;
            for of in chosen.into_iter().chain(others.into_iter().take(ALTERNATIVES)) {
                let name = |name: &str| if first { name.into() } else { String::new() };
                let label =
                    if of.chosen { of.variant.clone() } else { format!("not {}", of.variant) };
                lines.push(vec![
                    name(&explained.process),
                    name(&explained.task),
                    label,
                    ms(of.runtime_ns),
                    ms(of.end_ns),
                    ms(of.all_end_ns),
                ]);
                first = false;
            }
            let others = explained.variants.iter().filter(|of| !of.chosen).count();
            if let more @ 1.. = others.saturating_sub(ALTERNATIVES) {
                let mut line = vec![String::new(); titles.len()];
                line[2] = format!("... and {more} more");
                lines.push(line);
            }
        }
        let mut text = columns(&lines, 3);
        match self.alternatives.len().saturating_sub(SHOWN) {
            0 => {}
            more => text += &format!("... and {more} more tasks; --json has all\n"),
        }
        text
    }
}
