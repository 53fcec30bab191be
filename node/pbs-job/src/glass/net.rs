// SPDX-License-Identifier: GPL-2.0
//! The file of the task net: a line for each task.
//!
//! ```text
//! task process action memory instructions -- partner -> next -> next
//! ```
//!
//! Another task is named by three numbers: its own, its process's and its
//! action. The partner of a communication may also be a single 0, which is
//! taken for none; and behind it may stand the size of the message in bytes, for
//! which the partner then waits. The thesis's own files have none. Start and end need neither memory nor instructions. Blanks
//! may stand, or not, around the arrows.

use std::collections::HashMap;

use pbs_text::{Line, Problem, Problems};

use super::columns::lines;
use super::number;
use crate::draft::{Draft, DraftTask, Kind};

const WRITE: &str = "write TASK PROCESS ACTION MEMORY INSTRUCTIONS -> NEXT...";

/// A task as others name it.
struct Named {
    by: u32,
    line: Line,
    id: u32,
    process: u32,
    action: u32,
}

/// Adds the tasks to the draft.
pub(super) fn read(text: &str, draft: &mut Draft) -> Vec<Problem> {
    let mut problems = Problems::default();
    let mut named = Vec::new();
    for (line, text) in lines(text) {
        match task(line, text, &mut named) {
            Ok(task) => draft.tasks.push(task),
            Err(problem) => problems.push(problem),
        }
    }
    if problems.is_empty() {
        agree(draft, named, &mut problems);
    }
    problems.into_vec()
}

fn task(line: Line, text: &str, named: &mut Vec<Named>) -> Result<DraftTask, Problem> {
    let text = text.replace("->", " > ").replace("--", " | ");
    let head_end = text.find(['>', '|']).unwrap_or(text.len());
    let (head, mut rest) = text.split_at(head_end);
    let mut fields = Vec::new();
    for (field, what) in head.split_whitespace().zip(FIELDS) {
        fields.push(number(line, what, field).map_err(|problem| about(problem, &fields))?);
    }
    let count = head.split_whitespace().count();
    let (&[id, process, action], figures) = fields
        .split_first_chunk()
        .ok_or_else(|| about(Problem::at(line, format!("a task is cut off; {WRITE}")), &fields))?;
    let id = small(line, "the task", id)?;
    let label = format!("task {id}");
    let mut task = DraftTask {
        id,
        process: small(line, &format!("the process of {label}"), process)?,
        kind: kind(action).ok_or_else(|| {
            let message = format!(
                "{label} has action {action}; write 0 start, 1 end, 2 fork, 3 join, \
                 4 calculation, 5 communication or 10 fork end"
            );
            Problem::at(line, message)
        })?,
        line,
        ..DraftTask::default()
    };
    match *figures {
        [memory_bytes, insns] if count == FIELDS.len() => {
            task.memory_bytes = Some(memory_bytes);
            task.insns = insns;
        }
        [] if matches!(task.kind, Kind::Start | Kind::End) => {}
        _ => {
            let message = format!("{label} has {count} figures before its next tasks; {WRITE}");
            return Err(Problem::at(line, message));
        }
    }
    while let Some(arrow) = rest.chars().next() {
        let end = rest[1..].find(['>', '|']).map_or(rest.len(), |end| end + 1);
        let words: Vec<_> = rest[1..end].split_whitespace().collect();
        rest = &rest[end..];
        let numbers: Result<Vec<_>, _> =
            (words.iter()).map(|word| small(line, &label, number(line, &label, word)?)).collect();
        let numbers = numbers.map_err(|problem| {
            let message = format!("{label} names a task that can't be read: {}", problem.message);
            Problem::at(line, message)
        })?;
        match (arrow, &numbers[..]) {
            ('|', [0]) => continue,
            ('|', &[partner, _, _, ref bytes @ ..])
                if bytes.len() <= 1 && task.partner.is_none() =>
            {
                task.partner = Some(partner);
                task.message_bytes = bytes.first().map(|&bytes| bytes.into());
            }
            ('>', &[next, ..]) if numbers.len() == 3 => task.next.push(next),
            ('>', _) => {
                let message = format!("after -> {label} must name a task as TASK PROCESS ACTION");
                return Err(Problem::at(line, message));
            }
            _ => {
                let message = format!(
                    "after -- {label} must name one partner as TASK PROCESS ACTION, with BYTES \
                     behind if it waits for the message, or 0 for none"
                );
                return Err(Problem::at(line, message));
            }
        }
        named.push(Named { by: id, line, id: numbers[0], process: numbers[1], action: numbers[2] });
    }
    Ok(task)
}

const FIELDS: [&str; 5] = [
    "the number of the task",
    "the number of its process",
    "its action",
    "its memory",
    "the number of its instructions",
];

fn about(problem: Problem, fields: &[u64]) -> Problem {
    match fields.first() {
        Some(id) => Problem::at(problem.line, format!("task {id}: {}", problem.message)),
        None => problem,
    }
}

fn small(line: Line, what: &str, number: u64) -> Result<u32, Problem> {
    u32::try_from(number).map_err(|_| {
        let message = format!("{what} has the number {number}; it must be below 2^32");
        Problem::at(line, message)
    })
}

fn kind(action: u64) -> Option<Kind> {
    Some(match action {
        0 => Kind::Start,
        1 => Kind::End,
        2 => Kind::Fork,
        3 => Kind::Join,
        4 => Kind::Calculation,
        5 => Kind::Communication,
        10 => Kind::ForkEnd,
        _ => return None,
    })
}

/// Checks that each description of a task at a place that names it matches the task. Names of
/// missing tasks are left to the check of the net.
fn agree(draft: &Draft, named: Vec<Named>, problems: &mut Problems) {
    let tasks: HashMap<u32, &DraftTask> =
        draft.tasks.iter().rev().map(|task| (task.id, task)).collect();
    for Named { by, line, id, process, action } in named {
        let Some(task) = tasks.get(&id) else {
            continue;
        };
        if task.process != process || kind(action.into()) != Some(task.kind) {
            let message = format!(
                "task {by} names task {id} as one of process {process} with action {action}, but \
                 it is a {} of process {}",
                task.kind.name(),
                task.process
            );
            problems.push(Problem::at(line, message));
        }
    }
}
