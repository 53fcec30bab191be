// SPDX-License-Identifier: GPL-2.0
//! Critical path that determines the end of a job's plan.

use pbs_job::Job;
use pbs_planner::{critical_path, Because, Run};
use serde::Serialize;

use crate::output::counted;
use crate::planning::nanoseconds;

/// Lines that are shown; of more the middle is left out.
const LINES: usize = 16;

/// Tasks of one process that follow each other at once.
#[derive(Serialize)]
pub(super) struct CriticalView {
    process: String,
    /// The numbers of the first and the last.
    first_task: u32,
    last_task: u32,
    start_ns: u64,
    end_ns: u64,
    /// Reason why they do not start earlier: "order", "message", "core", "memory" or "resource" of
    /// the ones before them in the path, or "others".
    because: &'static str,
}

/// The critical path, without what takes no time.
pub(super) fn path(job: &Job, run: &Run) -> Vec<CriticalView> {
    let mut path: Vec<CriticalView> = Vec::new();
    let mut because = None;
    for critical in critical_path(job, run) {
        // What takes no time hands its reason on.
        let reason = because.take().filter(|&before| before != Because::Order);
        let reason = reason.unwrap_or(critical.because);
        let Ok(index) = run.tasks.binary_search_by_key(&critical.task, |task| task.task) else {
            continue;
        };
        let planned = &run.tasks[index];
        if planned.start_ns == planned.end_ns {
            because = Some(reason);
            continue;
        }
        let task = &job.tasks[critical.task];
        let process = job.processes[task.process].label();
        match path.last_mut() {
            Some(last) if last.process == process && last.end_ns == planned.start_ns => {
                last.last_task = task.id;
                last.end_ns = planned.end_ns;
            }
            _ => path.push(CriticalView {
                process,
                first_task: task.id,
                last_task: task.id,
                start_ns: planned.start_ns,
                end_ns: planned.end_ns,
                because: match reason {
                    Because::Order => "order",
                    Because::Message => "message",
                    Because::Core => "core",
                    Because::Memory => "memory",
                    Because::Resource => "resource",
                    Because::Others => "others",
                },
            }),
        }
    }
    path
}

/// A line for each.
pub(super) fn text(path: &[CriticalView]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for (place, step) in path.iter().enumerate() {
        let tasks = if step.first_task == step.last_task {
            format!("task {}", step.first_task)
        } else {
            format!("tasks {} to {}", step.first_task, step.last_task)
        };
        let before = place.checked_sub(1).map_or("", |before| &path[before].process);
        let because = match step.because {
            "order" if place > 0 => format!(", waits for {before}"),
            "message" => format!(", receives a message from {before}"),
            "core" => format!(", has the core after {before}"),
            "memory" => format!(", uses the memory that {before} released"),
            "resource" => format!(", uses the resource that {before} released"),
            _ => String::new(),
        };
        lines.push(format!(
            "{} to {}: {}, {tasks}{because}",
            nanoseconds(step.start_ns),
            nanoseconds(step.end_ns),
            step.process
        ));
    }
    let more = lines.len().saturating_sub(LINES);
    if more > 0 {
        let middle = LINES / 2;
        let left_out = counted(more as u64 + 1, "more step", "more steps");
        lines.splice(middle..=middle + more, [format!("... {left_out}")]);
    }
    lines
}
