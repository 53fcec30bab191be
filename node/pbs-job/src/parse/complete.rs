// SPDX-License-Identifier: GPL-2.0
//! Completion of a job's net: the parts that a file may leave out, since every net has them in the
//! same place.
//!
//! - The start task, before the first task of the process that nobody forks,
//!   and the end task after its last.
//! - If several processes are not forked: the process that forks and joins
//!   them all. That is `pbsctl` itself, which starts their programs.
//! - The fork end with which a forked process begins.
//!
//! Tasks and processes that are added take no instructions and no memory.

use std::collections::{HashMap, HashSet};

use pbs_text::reader::{closest, Reader};

use super::{Child, Process, Task};
use crate::draft::{DraftProcess, DraftTask, Kind};

/// The name of the process that is added.
const STARTER: &str = "pbsctl";

pub(super) fn complete(reader: &mut Reader, processes: &mut Vec<Process>) {
    let mut next_id = next_id(processes);
    let mut forked = find_children(reader, processes);
    let mut tasks = processes.iter().flat_map(|process| &process.tasks);
    let says_ends = tasks.any(|task| matches!(task.task.kind, Kind::Start | Kind::End));
    let free =
        (0..processes.len()).filter(|&index| !forked[index] && !processes[index].tasks.is_empty());
    let free: Vec<_> = free.collect();
    match free[..] {
        _ if says_ends => {}
        // There is nothing, or they fork each other: the check tells.
        [] => {}
        [initial] => enclose(&mut processes[initial], &mut next_id),
        _ => {
            let starter = starter(processes, &free, &mut next_id);
            processes.push(starter);
            for child in free {
                forked[child] = true;
            }
        }
    }
    for (process, forked) in processes.iter_mut().zip(forked) {
        let mut kinds = process.tasks.iter().map(|task| task.task.kind);
        let first = kinds.find(|&kind| kind != Kind::Fork);
        if forked && first.is_some_and(|kind| kind != Kind::ForkEnd) {
            let fork_end = added(Kind::ForkEnd, process.process.id, &mut next_id);
            process.tasks.insert(0, fork_end);
        }
    }
}

/// A number that no task has, nor any after it.
fn next_id(processes: &[Process]) -> u32 {
    let tasks = processes.iter().flat_map(|process| &process.tasks);
    let greatest = tasks.map(|task| task.task.id).max();
    greatest.map_or(0, |greatest| greatest.saturating_add(1))
}

/// Finds the processes that forks and joins name; returns which are forked.
fn find_children(reader: &mut Reader, processes: &mut [Process]) -> Vec<bool> {
    let mut indices = HashMap::new();
    for (index, Process { process, .. }) in processes.iter().enumerate().rev() {
        indices.insert(process.id.to_string(), index);
        if let Some(name) = &process.name {
            indices.insert(name.clone(), index);
        }
    }
    let mut forked = vec![false; processes.len()];
    let tasks = processes.iter_mut().enumerate();
    let tasks = tasks.flat_map(|(own, process)| process.tasks.iter_mut().map(move |of| (own, of)));
    for (own, task) in tasks {
        let Some(Child::Named(name)) = &task.child else {
            continue;
        };
        let Some(&index) = indices.get(name) else {
            reader.problem_with(task.task.line, || {
                let instead = match closest(name, indices.keys().map(String::as_str)) {
                    Some(close) => format!("did you mean {close}?"),
                    None => "add a [[process]] for it".into(),
                };
                let label = task.task.label();
                format!("{label} names process {name}, which is not there; {instead}")
            });
            continue;
        };
        if index == own {
            reader.problem_with(task.task.line, || {
                let verb = if task.task.kind == Kind::Fork { "forks" } else { "joins" };
                let label = task.task.label();
                format!("{label} {verb} process {name}, to which it belongs; name another process")
            });
            continue;
        }
        forked[index] |= task.task.kind == Kind::Fork;
        task.child = Some(Child::Index(index));
    }
    forked
}

fn added(kind: Kind, process: u32, next_id: &mut u32) -> Task {
    let id = *next_id;
    *next_id = id.saturating_add(1);
    let task = DraftTask { id, process, kind, ..DraftTask::default() };
    Task { id: Some(id), task, child: None, after: Vec::new() }
}

/// Puts a start task before its tasks and an end task behind them.
fn enclose(process: &mut Process, next_id: &mut u32) {
    let id = process.process.id;
    process.tasks.insert(0, added(Kind::Start, id, next_id));
    process.tasks.push(added(Kind::End, id, next_id));
}

/// The process that forks and joins those.
fn starter(processes: &[Process], children: &[usize], next_id: &mut u32) -> Process {
    let taken: HashSet<_> = processes.iter().map(|process| process.process.id).collect();
    let id = (0..u32::MAX).find(|id| !taken.contains(id)).unwrap_or(0);
    let mut names = processes.iter().map(|process| process.process.name.as_deref());
    let process = DraftProcess {
        id,
        name: (!names.any(|name| name == Some(STARTER))).then(|| STARTER.into()),
        ..DraftProcess::default()
    };
    let mut tasks = Vec::new();
    for kind in [Kind::Fork, Kind::Join] {
        for &child in children {
            let mut task = added(kind, id, next_id);
            task.child = Some(Child::Index(child));
            tasks.push(task);
        }
    }
    let mut process = Process { process, tasks };
    enclose(&mut process, next_id);
    process
}
