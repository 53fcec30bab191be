// SPDX-License-Identifier: GPL-2.0
//! Placement of each task: variant, place and time.

use pbs_cosched::{Platform, Timeline, Workload};
use pbs_text::{columns, ms};
use serde::Serialize;

use crate::names::label_of;
use crate::Names;

/// Tasks that are listed in text.
const SHOWN: usize = 60;

/// A task with and without co-scheduling.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TaskRow {
    /// Name of the process.
    pub process: String,
    /// Name of the task.
    pub task: String,
    /// Whether the task had started before the decision, and therefore keeps its placement.
    pub is_running: bool,
    /// Placement that is carried out: by the decision, or without co-scheduling if that was not
    /// taken.
    pub placed: Option<Placed>,
    /// Placement without co-scheduling.
    pub without: Option<Placed>,
}

/// Placement of a task: variant, place and time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Placed {
    /// Label of the variant.
    pub variant: String,
    /// The round in which it was given out; nothing where no rounds are.
    pub round: Option<u32>,
    /// The threads or the accelerator.
    pub on: String,
    /// Task whose end it waits for because of slow-downs, with its process.
    pub waits_for: Option<String>,
    /// Start time.
    pub start_ns: u64,
    /// End time.
    pub end_ns: u64,
}

/// Returns the placements of all tasks; `chosen` is the variant and the round of each.
pub(crate) fn placed(
    workload: &Workload,
    platform: &Platform,
    names: &Names,
    timeline: &Timeline,
    chosen: impl Fn(usize) -> Option<(usize, Option<u32>)>,
) -> Vec<Option<Placed>> {
    let slots = timeline.slots.iter().enumerate();
    let placed = slots.map(|(task, slot)| {
        let (slot, (variant, round)) = (slot.as_ref()?, chosen(task)?);
        Some(Placed {
            variant: label_of(workload, platform, task, variant),
            round,
            on: names.place(&slot.place),
            waits_for: timeline.awaited(task).map(|awaited| {
                let of = &workload.tasks[awaited];
                format!("{}/{}", names.processes[of.process], of.name)
            }),
            start_ns: slot.start_ns,
            end_ns: slot.end_ns,
        })
    });
    placed.collect()
}

/// A row for each task.
pub(crate) fn rows(
    workload: &Workload,
    names: &Names,
    is_running: impl Fn(usize) -> bool,
    placed: Vec<Option<Placed>>,
    without: Vec<Option<Placed>>,
) -> Vec<TaskRow> {
    let tasks = workload.tasks.iter().enumerate().zip(placed).zip(without);
    let rows = tasks.map(|(((index, task), placed), without)| TaskRow {
        process: names.processes[task.process].clone(),
        task: task.name.clone(),
        is_running: is_running(index),
        placed,
        without,
    });
    rows.collect()
}

/// The rows as a table, in the order of their starts.
pub(crate) fn table(rows: &[TaskRow]) -> String {
    let has_rounds =
        rows.iter().any(|row| row.placed.as_ref().is_some_and(|of| of.round.is_some()));
    let mut titles = vec!["PROCESS", "TASK", "VARIANT", "ON"];
    if has_rounds {
        titles.push("ROUND");
    }
    titles.extend(["START, ms", "END, ms"]);
    let has_waits =
        rows.iter().any(|row| row.placed.as_ref().is_some_and(|of| of.waits_for.is_some()));
    if has_waits {
        titles.push("WAITS FOR");
    }
    let mut sorted: Vec<&TaskRow> = rows.iter().collect();
    sorted.sort_by_key(|row| row.placed.as_ref().map(|of| of.start_ns));
    let mut cells: Vec<Vec<String>> = vec![titles.into_iter().map(String::from).collect()];
    for row in sorted.iter().take(SHOWN) {
        let mut line = vec![row.process.clone(), row.task.clone()];
        if let Some(of) = &row.placed {
            line.extend([of.variant.clone(), of.on.clone()]);
            if has_rounds {
                line.push(match (row.is_running, of.round) {
                    (true, _) => "runs".into(),
                    (_, Some(round)) => round.to_string(),
                    (_, None) => String::new(),
                });
            }
            line.extend([ms(of.start_ns), ms(of.end_ns)]);
            if has_waits {
                line.push(of.waits_for.clone().unwrap_or_default());
            }
        }
        cells.push(line);
    }
    let mut text = columns(&cells, 4);
    match rows.len().saturating_sub(SHOWN) {
        0 => {}
        more => text += &format!("... and {more} more; --json has all\n"),
    }
    text
}
