// SPDX-License-Identifier: GPL-2.0
//! The tasks of a process.

use pbs_text::reader::{Reader, Value};
use pbs_text::Line;
use pbs_uapi::MAX_SLOT_INSNS;
use toml::de::DeValue;

use super::{memory, name, Child, Task, WRITE_AFTER};
use crate::draft::{DraftTask, Kind};
use crate::MAX_MESSAGE_BYTES;

const KEYS: &[&str] = &[
    "id",
    "name",
    "action",
    "insns",
    "memory_bytes",
    "child",
    "to",
    "bytes",
    "synchronous",
    "after",
];
const WRITE: &str = "write the instructions of each task: tasks = [20_000_000, ...]";

pub(super) fn tasks(reader: &mut Reader, line: Line, value: &Value<'_>, process: u32) -> Vec<Task> {
    let DeValue::Array(items) = value.get_ref() else {
        reader.problem(line, format!("tasks is no list; {WRITE}"));
        return Vec::new();
    };
    let tasks = items.iter().filter_map(|item| {
        let line = reader.line_of(item);
        let mut task = match item.get_ref() {
            DeValue::Table(_) => task(reader, line, item)?,
            _ => Task {
                id: None,
                task: DraftTask {
                    insns: some(reader.insns(line, "a task", item, 0..=MAX_SLOT_INSNS)?),
                    ..DraftTask::default()
                },
                child: None,
                after: Vec::new(),
            },
        };
        task.task.process = process;
        task.task.line = line;
        Some(task)
    });
    tasks.collect()
}

/// Instructions of a task that works: one of no length keeps its place in the order, for which it
/// needs one.
fn some(insns: u64) -> u64 {
    insns.max(1)
}

fn task(reader: &mut Reader, line: Line, value: &Value<'_>) -> Option<Task> {
    let mut table = reader.table(line, value, "a task", KEYS)?;
    let mut task = DraftTask::default();
    let mut id = None;
    if let Some((line, value)) = table.entries.remove("id") {
        id = Some(reader.number(line, "id", value)?);
    }
    if let Some((line, value)) = table.entries.remove("name") {
        task.name = name(reader, line, value);
    }
    if let Some((line, value)) = table.entries.remove("action") {
        let name = reader.string(line, "action", value)?;
        let names = Kind::ALL.map(Kind::name);
        task.kind = Kind::ALL[reader.one_of(line, "action", &name, &names)?];
    }
    let action = task.kind.name();
    match table.entries.remove("insns") {
        Some((line, value)) => {
            let insns = reader.insns(line, "insns", value, 0..=MAX_SLOT_INSNS)?;
            task.insns = if task.kind.works() { some(insns) } else { insns };
        }
        None if task.kind.works() => {
            let message = format!("a {action} takes instructions; add insns = 20_000_000");
            reader.problem(line, message);
            return None;
        }
        None => {}
    }
    if let Some((line, value)) = table.entries.remove("memory_bytes") {
        task.memory_bytes = memory(reader, line, value);
    }
    if let Some((line, value)) = table.entries.remove("to") {
        task.partner = reader.number(line, "to", value);
    }
    if let Some((line, value)) = table.entries.remove("bytes") {
        task.message_bytes = reader.number_in(line, "bytes", value, 0..=MAX_MESSAGE_BYTES);
    }
    if let Some((line, value)) = table.entries.remove("synchronous") {
        task.synchronous = reader.flag(line, "synchronous", value)?;
    }
    let mut child = None;
    match table.entries.remove("child") {
        Some((line, value)) if matches!(task.kind, Kind::Fork | Kind::Join) => {
            child = Some(Child::Named(name_or_number(reader, line, value, "child")?));
        }
        Some((line, _)) => {
            let message = format!("a {action} has no child; only fork and join tasks have one");
            reader.problem(line, message);
        }
        None if task.kind == Kind::Fork => {
            reader.problem(line, "a fork task names the process that it forks; add child = \"...\"")
        }
        None => {}
    }
    let mut after = Vec::new();
    if let Some((line, value)) = table.entries.remove("after") {
        let DeValue::Array(items) = value.get_ref() else {
            reader.problem(line, format!("after is no list; {WRITE_AFTER}"));
            return None;
        };
        for item in items.iter() {
            let name = name_or_number(reader, line, item, "after")?;
            after.push((line, name));
        }
    }
    Some(Task { id, task, child, after })
}

fn name_or_number(reader: &mut Reader, line: Line, value: &Value<'_>, key: &str) -> Option<String> {
    match value.get_ref() {
        DeValue::String(_) => reader.string(line, key, value),
        DeValue::Integer(_) => {
            let id: u32 = reader.number(line, key, value)?;
            Some(id.to_string())
        }
        _ => {
            let what = if key == "child" { "a process" } else { "a task" };
            reader.problem(line, format!("{key} is the number or the name of {what}"));
            None
        }
    }
}
