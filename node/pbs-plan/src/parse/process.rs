// SPDX-License-Identifier: GPL-2.0
//! The [[process]] tables, with their commands and tasks.

use pbs_text::reader::{Reader, Value};
use pbs_text::Line;
use pbs_uapi::{MAX_BUFFER_INSNS, MAX_SLOT_INSNS, NO_ARRIVAL};
use toml::de::DeValue;

use super::cpu::rate;
use super::start::read_start;
use crate::{Process, Start, Task};

const PROCESS_KEYS: &[&str] = &[
    "id",
    "name",
    "cpu",
    "buffer_insns",
    "memory_bytes",
    "rate_insns_per_ms",
    "deadline",
    "real_memory_bytes",
    "tasks",
];
const TASK_KEYS: &[&str] = &["id", "name", "planned_insns", "real_insns", "wait_insns", "after"];

/// A task that another one waits for, as it is written.
pub(super) struct Written {
    /// Index of the process that waits, and of its task.
    pub(super) waits: (usize, usize),
    /// `process` or `process/task`.
    pub(super) after: String,
    /// Planned arrival of its message, if it is one.
    pub(super) arrival_ns: Option<u64>,
    pub(super) line: Line,
}

/// Process number `index` of the plan; what its tasks wait for goes to `waits`.
pub(super) fn read_process(
    reader: &mut Reader,
    line: Line,
    value: &Value<'_>,
    index: usize,
    waits: &mut Vec<Written>,
) -> Option<Process> {
    let mut table =
        reader.table(line, value, "[[process]]", &[PROCESS_KEYS, &Start::KEYS].concat())?;
    let mut process = Process { line: table.line, ..Process::default() };
    match table.entries.remove("id") {
        Some((line, value)) => process.id = reader.number(line, "id", value).unwrap_or(0),
        None => {
            reader.problem(table.line, "the process has no id; add a number of its own: id = 1")
        }
    }
    if let Some((line, value)) = table.entries.remove("name") {
        process.name = reader.string(line, "name", value);
    }
    if let Some((line, value)) = table.entries.remove("cpu") {
        process.cpu = reader.number(line, "cpu", value);
    }
    if let Some((line, value)) = table.entries.remove("buffer_insns") {
        process.buffer_insns =
            reader.number_in(line, "buffer_insns", value, 0..=MAX_BUFFER_INSNS).unwrap_or(0);
    }
    if let Some((line, value)) = table.entries.remove("memory_bytes") {
        process.memory_bytes = reader.number(line, "memory_bytes", value).unwrap_or(0);
    }
    process.rate_insns_per_ms = rate(reader, &mut table);
    if let Some((line, value)) = table.entries.remove("deadline") {
        process.deadline_ns = reader.ns(line, "deadline", value);
    }
    if let Some((line, value)) = table.entries.remove("real_memory_bytes") {
        process.real_memory_bytes = reader.number(line, "real_memory_bytes", value);
    }
    match table.entries.remove("tasks") {
        Some((line, value)) => process.tasks = tasks(reader, line, value, index, waits),
        None => reader.problem(
            table.line,
            format!(
                "process {} has no tasks; add their planned instructions: \
                 tasks = [20_000_000, ...]",
                process.label()
            ),
        ),
    }
    process.start = read_start(reader, &mut table, &process.label());
    Some(process)
}

fn tasks(
    reader: &mut Reader,
    line: Line,
    value: &Value<'_>,
    process: usize,
    waits: &mut Vec<Written>,
) -> Vec<Task> {
    let DeValue::Array(items) = value.get_ref() else {
        reader.problem(
            line,
            "tasks is no list; write the planned instructions of each task: \
             tasks = [20_000_000, ...]",
        );
        return Vec::new();
    };
    let mut tasks = Vec::with_capacity(items.len());
    let mut next_id = 0u32;
    for item in items.iter() {
        let line = reader.line_of(item);
        let task =
            match item.get_ref() {
                DeValue::Table(_) => {
                    let place = (process, tasks.len());
                    task_table(reader, line, item, next_id, place, waits)
                }
                _ => reader.insns(line, "a task", item, 1..=MAX_SLOT_INSNS).map(|planned_insns| {
                    Task { id: next_id, planned_insns, line, ..Task::default() }
                }),
            };
        if let Some(task) = task {
            next_id = task.id.saturating_add(1);
            tasks.push(task);
        }
    }
    tasks
}

fn task_table(
    reader: &mut Reader,
    line: Line,
    value: &Value<'_>,
    next_id: u32,
    place: (usize, usize),
    waits: &mut Vec<Written>,
) -> Option<Task> {
    let mut table = reader.table(line, value, "a task", TASK_KEYS)?;
    let mut task = Task { id: next_id, line, ..Task::default() };
    if let Some((line, value)) = table.entries.remove("id") {
        task.id = reader.number(line, "id", value)?;
    }
    if let Some((line, value)) = table.entries.remove("name") {
        task.name = reader.string(line, "name", value);
    }
    if let Some((line, value)) = table.entries.remove("real_insns") {
        task.real_insns = reader.insns(line, "real_insns", value, 0..=MAX_SLOT_INSNS);
    }
    if let Some((line, value)) = table.entries.remove("wait_insns") {
        task.wait_insns = reader.insns(line, "wait_insns", value, 0..=MAX_SLOT_INSNS);
    }
    if let Some((line, value)) = table.entries.remove("after") {
        after(reader, line, value, place, waits);
    }
    match table.entries.remove("planned_insns") {
        Some((line, value)) => {
            task.planned_insns = reader.insns(line, "planned_insns", value, 1..=MAX_SLOT_INSNS)?;
        }
        None => {
            reader.problem(
                line,
                format!("task {} has no length; add planned_insns = 20_000_000", task.id),
            );
            return None;
        }
    }
    Some(task)
}

/// Reads the dependencies of the task at `place`.
fn after(
    reader: &mut Reader,
    line: Line,
    value: &Value<'_>,
    place: (usize, usize),
    waits: &mut Vec<Written>,
) {
    const WRITE: &str = "write the processes, or single tasks of them, that must have ended \
                         before it: after = [\"sort\", \"stages/sieve\"]";
    let DeValue::Array(items) = value.get_ref() else {
        reader.problem(line, format!("after is no list; {WRITE}"));
        return;
    };
    for item in items.iter() {
        let line = reader.line_of(item);
        let (written, arrival_ns) = if matches!(item.get_ref(), DeValue::Table(_)) {
            match message(reader, line, item) {
                Some((task, arrival_ns)) => (task, Some(arrival_ns)),
                None => continue,
            }
        } else {
            (task_text(item), None)
        };
        let Some(after) = written else {
            reader.problem(line, format!("this is no process and no task; {WRITE}"));
            continue;
        };
        waits.push(Written { waits: place, after, arrival_ns, line });
    }
}

/// The task that a text or a number names.
fn task_text(item: &Value<'_>) -> Option<String> {
    match item.get_ref() {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) if number.radix() == 10 => Some(number.as_str().to_string()),
        _ => None,
    }
}

/// Reads a message: the task that sends it, and its planned arrival. `None`: a problem is reported.
fn message(reader: &mut Reader, line: Line, value: &Value<'_>) -> Option<(Option<String>, u64)> {
    const WRITE: &str = "write { task = \"stages/sieve\", arrival = \"12 ms\" }";
    let mut table = reader.table(line, value, "a message", &["task", "arrival"])?;
    let (Some((_, task)), Some((arrival_line, arrival))) =
        (table.entries.remove("task"), table.entries.remove("arrival"))
    else {
        reader.problem(line, format!("a message has a task and a planned arrival; {WRITE}"));
        return None;
    };
    let arrival_ns = reader.ns(arrival_line, "arrival", arrival)?;
    if arrival_ns == NO_ARRIVAL {
        reader.problem(arrival_line, format!("this arrival is beyond all times; {WRITE}"));
        return None;
    }
    Some((task_text(task), arrival_ns))
}
