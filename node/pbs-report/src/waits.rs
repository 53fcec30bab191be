// SPDX-License-Identifier: GPL-2.0
//! Tasks that waited for others.

use std::collections::{BTreeMap, HashMap, HashSet};

use pbs_plan::Plan;
use pbs_text::{append_line, columns, grouped};
use pbs_uapi::{Event, EventKind, Wait};
use serde::Serialize;

use crate::event::awaited;

/// Waits that are listed.
const WAITS: usize = 20;

/// A task that waits for another one, as a plan says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Edge {
    /// The process that waits.
    pub process: u32,
    /// Task that waits.
    pub task: u32,
    /// The process that is waited for.
    pub after_process: u32,
    /// Task that is waited for.
    pub after_task: u32,
}

/// A task whose slot came before what it waits for had ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waited {
    /// For whom.
    pub edge: Edge,
    /// CPU of the task.
    pub cpu: u32,
    /// Time of its slot.
    pub from_ns: u64,
    /// End of the task that it waited for; `None`: it had not ended, as far as is known.
    pub until_ns: Option<u64>,
    /// Whether that task can never end.
    pub is_gone: bool,
}

/// The edges of all plans, each once.
pub(crate) fn edges(plans: &[Plan]) -> Vec<Edge> {
    let mut edges = Vec::new();
    for process in plans.iter().flat_map(|plan| &plan.processes) {
        for task in &process.tasks {
            edges.extend(task.after.iter().map(|after| Edge {
                process: process.id,
                task: task.id,
                after_process: after.process,
                after_task: after.task,
            }));
        }
    }
    let mut seen = HashSet::new();
    edges.retain(|edge| seen.insert(*edge));
    edges
}

/// Returns the tasks that waited, in the order of time. Each task is listed once, with the
/// dependency that ended last. Events report only the first dependency.
pub fn waited(plans: &[Plan], events: &[Event]) -> Vec<Waited> {
    let of_kind = |kind: EventKind| events.iter().filter(move |event| event.kind == kind as u16);
    let mut waits: Vec<Waited> = Vec::new();
    let mut places = BTreeMap::new();
    for event in of_kind(EventKind::Waits) {
        let (after_process, after_task) = awaited(event);
        let edge = Edge { process: event.process, task: event.task, after_process, after_task };
        let is_gone = event.reason == Wait::Gone as u16;
        let place = *places.entry((edge.process, edge.task)).or_insert_with(|| {
            waits.push(Waited {
                edge,
                cpu: event.cpu,
                from_ns: event.time_ns,
                until_ns: None,
                is_gone,
            });
            waits.len() - 1
        });
        // It may have waited for another one before.
        waits[place].edge = edge;
        waits[place].is_gone |= is_gone;
    }
    if waits.is_empty() {
        return waits;
    }
    let ends: HashMap<_, _> = of_kind(EventKind::TaskEnded)
        .map(|event| ((event.process, event.task), event.time_ns))
        .collect();
    let end_of = |edge: &Edge| ends.get(&(edge.after_process, edge.after_task)).copied();
    for edge in edges(plans) {
        let Some(&place) = places.get(&(edge.process, edge.task)) else {
            continue;
        };
        let wait = &mut waits[place];
        // What has not ended, as far as is known, is later than all.
        let later = |edge: &Edge| end_of(edge).unwrap_or(u64::MAX);
        if !wait.is_gone && later(&edge) > later(&wait.edge) {
            wait.edge = edge;
        }
    }
    for wait in &mut waits {
        wait.until_ns = end_of(&wait.edge).map(|at_ns| at_ns.max(wait.from_ns));
    }
    waits
}

impl Waited {
    /// For how long, in words.
    pub(crate) fn words(&self) -> String {
        match self.until_ns {
            _ if self.is_gone => "in vain: it has gone".into(),
            Some(until_ns) => {
                let ns = until_ns - self.from_ns;
                format!("{}.{:03}", grouped(ns / 1_000_000), ns / 1000 % 1000)
            }
            None => "to the end".into(),
        }
    }
}

/// A line for each task whose slot came before what it waits for had ended, below
/// an empty one; nothing at all if there was none. Only the first are listed.
pub fn wait_table(
    waits: &[Waited],
    process_name: impl Fn(u32) -> String,
    task_name: impl Fn(u32, u32) -> Option<String>,
) -> String {
    if waits.is_empty() {
        return String::new();
    }
    let task = |process: u32, task: u32| match task_name(process, task) {
        Some(name) => format!("{task} {name}"),
        None => task.to_string(),
    };
    let header = ["WAITING PROCESS", "TASK", "WAITED FOR", "TASK", "WAITED ms"];
    let mut rows = vec![header.map(String::from).to_vec()];
    for wait in waits.iter().take(WAITS) {
        let edge = wait.edge;
        rows.push(vec![
            process_name(edge.process),
            task(edge.process, edge.task),
            process_name(edge.after_process),
            task(edge.after_process, edge.after_task),
            wait.words(),
        ]);
    }
    let mut out = String::from("\n") + &columns(&rows, 4);
    let more = waits.len().saturating_sub(WAITS);
    if more > 0 {
        append_line!(out, "... and {} more.", grouped(more as u64));
    }
    out
}
