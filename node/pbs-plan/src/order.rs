// SPDX-License-Identifier: GPL-2.0
//! Dependencies between tasks.

use std::collections::HashMap;

use pbs_text::append;

use crate::names::Names;
use crate::{After, Plan, Process, Task};

/// A task with its process, and one that it waits for.
pub(crate) type Edge<'a> = (&'a Process, &'a Task, &'a After);

/// All edges of the plan.
pub(crate) fn edges(plan: &Plan) -> impl Iterator<Item = Edge<'_>> {
    plan.processes.iter().flat_map(|process| {
        let tasks = process.tasks.iter();
        tasks.flat_map(move |task| task.after.iter().map(move |after| (process, task, after)))
    })
}

/// Returns the readable name of a task.
pub(crate) fn label(plan: &Plan, process: u32, task: u32) -> String {
    let after = After { process, task, ..After::default() };
    Names::new(&plan.processes).text(&after)
}

/// Tasks that wait for each other, so that none of them ever begins: the edges
/// of one circle. The task of the next edge is the one that is waited for, or
/// comes before it in its process.
pub(crate) fn circle(plan: &Plan) -> Option<Vec<Edge<'_>>> {
    let index: HashMap<u32, usize> =
        plan.processes.iter().enumerate().map(|(index, process)| (process.id, index)).collect();
    // How many tasks of each process can end, as far as is known; and who waits
    // for more of them.
    let mut position = vec![0; plan.processes.len()];
    let mut waiting: Vec<Vec<usize>> = vec![Vec::new(); plan.processes.len()];
    let awaited = |after: &After| index.get(&after.process).copied();
    let has_ended = |position: &[usize], after: &After| {
        let Some(process) = awaited(after) else {
            return true;
        };
        let next = plan.processes[process].tasks.get(position[process]);
        next.is_none_or(|next| after.task < next.id)
    };
    let stuck_at = |position: &[usize], process: usize| {
        let place = position[process];
        let process = &plan.processes[process];
        let task = process.tasks.get(place)?;
        let after = task.after.iter().find(|after| !has_ended(position, after))?;
        Some((process, task, after))
    };
    let mut going: Vec<usize> = (0..plan.processes.len()).collect();
    while let Some(process) = going.pop() {
        let before = position[process];
        while position[process] < plan.processes[process].tasks.len() {
            if let Some((_, _, after)) = stuck_at(&position, process) {
                if let Some(awaited) = awaited(after) {
                    waiting[awaited].push(process);
                }
                break;
            }
            position[process] += 1;
        }
        if position[process] > before {
            going.append(&mut waiting[process]);
        }
    }
    let stuck = (0..position.len()).find(|&process| stuck_at(&position, process).is_some())?;
    // Who is stuck waits for who is stuck: after as many steps as there are
    // processes the way is in the circle.
    let next = |process| stuck_at(&position, process).and_then(|(.., after)| awaited(after));
    let mut first = stuck;
    for _ in 0..position.len() {
        first = next(first)?;
    }
    let mut circle = vec![first];
    let mut process = next(first)?;
    while process != first {
        circle.push(process);
        process = next(process)?;
    }
    // It begins at what the file has first.
    let least = (0..circle.len()).min_by_key(|&place| circle[place])?;
    circle.rotate_left(least);
    circle.into_iter().map(|process| stuck_at(&position, process)).collect()
}

/// The refusal of a circle, in the kernel's words, but whole and with names.
pub(crate) fn refusal(plan: &Plan, circle: &[Edge<'_>]) -> String {
    let names = Names::new(&plan.processes);
    let mut text = String::from("tasks wait in a circle: ");
    for (place, (process, task, after)) in circle.iter().enumerate() {
        let comma = if place == 0 { "" } else { ", " };
        let waits = After { process: process.id, task: task.id, ..After::default() };
        append!(text, "{comma}{} for {}", names.text(&waits), names.text(after));
    }
    text + "; leave one of these edges out"
}
