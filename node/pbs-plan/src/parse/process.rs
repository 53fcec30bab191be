// SPDX-License-Identifier: GPL-2.0
//! The [[process]] tables, with their commands and tasks.

use pbs_uapi::MAX_BUFFER_INSNS;
use toml::de::DeValue;

use crate::text::{Reader, Value};
use crate::{Line, Process, Start, Task};

const PROCESS_KEYS: &[&str] = &[
    "id",
    "name",
    "cpu",
    "buffer_insns",
    "memory_bytes",
    "rate_insns_per_ms",
    "real_memory_bytes",
    "tasks",
];
const TASK_KEYS: &[&str] = &[
    "id",
    "name",
    "planned_insns",
    "real_insns",
    "wait_insns",
    "after",
];

/// A task that another one waits for, as it is written.
pub(super) struct Written {
    /// Index of the process that waits, and of its task.
    pub(super) waits: (usize, usize),
    /// `process` or `process/task`.
    pub(super) after: String,
    pub(super) line: Line,
}

impl Reader {
    /// Process number `index` of the plan; what its tasks wait for goes to `waits`.
    pub(super) fn process(
        &mut self,
        line: Line,
        value: &Value<'_>,
        index: usize,
        waits: &mut Vec<Written>,
    ) -> Option<Process> {
        let mut table = self.table(
            line,
            value,
            "[[process]]",
            &[PROCESS_KEYS, &Start::KEYS].concat(),
        )?;
        let mut process = Process {
            line: table.line,
            ..Process::default()
        };
        match table.entries.remove("id") {
            Some((line, value)) => process.id = self.number(line, "id", value).unwrap_or(0),
            None => self.problem(
                table.line,
                "the process has no id; add a number of its own: id = 1",
            ),
        }
        if let Some((line, value)) = table.entries.remove("name") {
            process.name = self.string(line, "name", value);
        }
        if let Some((line, value)) = table.entries.remove("cpu") {
            process.cpu = self.number(line, "cpu", value);
        }
        if let Some((line, value)) = table.entries.remove("buffer_insns") {
            process.buffer_insns = self
                .number_in(line, "buffer_insns", value, 0..=MAX_BUFFER_INSNS)
                .unwrap_or(0);
        }
        if let Some((line, value)) = table.entries.remove("memory_bytes") {
            process.memory_bytes = self.number(line, "memory_bytes", value).unwrap_or(0);
        }
        process.rate_insns_per_ms = self.rate(&mut table);
        if let Some((line, value)) = table.entries.remove("real_memory_bytes") {
            process.real_memory_bytes = self.number(line, "real_memory_bytes", value);
        }
        match table.entries.remove("tasks") {
            Some((line, value)) => process.tasks = self.tasks(line, value, index, waits),
            None => self.problem(
                table.line,
                format!(
                    "process {} has no tasks; add their planned instructions: \
                     tasks = [20_000_000, ...]",
                    process.label()
                ),
            ),
        }
        process.start = self.start(&mut table, &process.label());
        Some(process)
    }

    fn tasks(
        &mut self,
        line: Line,
        value: &Value<'_>,
        process: usize,
        waits: &mut Vec<Written>,
    ) -> Vec<Task> {
        let DeValue::Array(items) = value.get_ref() else {
            self.problem(
                line,
                "tasks is no list; write the planned instructions of each task: \
                 tasks = [20_000_000, ...]",
            );
            return Vec::new();
        };
        let mut tasks = Vec::with_capacity(items.len());
        let mut next_id = 0u32;
        for item in items.iter() {
            let line = self.line_of(item);
            let task = match item.get_ref() {
                DeValue::Table(_) => {
                    let place = (process, tasks.len());
                    self.task_table(line, item, next_id, place, waits)
                }
                _ => self
                    .insns(line, "a task", item, 1)
                    .map(|planned_insns| Task {
                        id: next_id,
                        planned_insns,
                        line,
                        ..Task::default()
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
        &mut self,
        line: Line,
        value: &Value<'_>,
        next_id: u32,
        place: (usize, usize),
        waits: &mut Vec<Written>,
    ) -> Option<Task> {
        let mut table = self.table(line, value, "a task", TASK_KEYS)?;
        let mut task = Task {
            id: next_id,
            line,
            ..Task::default()
        };
        if let Some((line, value)) = table.entries.remove("id") {
            task.id = self.number(line, "id", value)?;
        }
        if let Some((line, value)) = table.entries.remove("name") {
            task.name = self.string(line, "name", value);
        }
        if let Some((line, value)) = table.entries.remove("real_insns") {
            task.real_insns = self.insns(line, "real_insns", value, 0);
        }
        if let Some((line, value)) = table.entries.remove("wait_insns") {
            task.wait_insns = self.insns(line, "wait_insns", value, 0);
        }
        if let Some((line, value)) = table.entries.remove("after") {
            self.after(line, value, place, waits);
        }
        match table.entries.remove("planned_insns") {
            Some((line, value)) => {
                task.planned_insns = self.insns(line, "planned_insns", value, 1)?;
            }
            None => {
                self.problem(
                    line,
                    format!(
                        "task {} has no length; add planned_insns = 20_000_000",
                        task.id
                    ),
                );
                return None;
            }
        }
        Some(task)
    }
    /// What the task at `place` waits for.
    fn after(
        &mut self,
        line: Line,
        value: &Value<'_>,
        place: (usize, usize),
        waits: &mut Vec<Written>,
    ) {
        const WRITE: &str = "write the processes, or single tasks of them, that must have ended \
                             before it: after = [\"sort\", \"stages/sieve\"]";
        let DeValue::Array(items) = value.get_ref() else {
            self.problem(line, format!("after is no list; {WRITE}"));
            return;
        };
        for item in items.iter() {
            let line = self.line_of(item);
            let after = match item.get_ref() {
                DeValue::String(text) => text.to_string(),
                DeValue::Integer(number) if number.radix() == 10 => number.as_str().to_string(),
                _ => {
                    self.problem(line, format!("this is no process and no task; {WRITE}"));
                    continue;
                }
            };
            let waits_here = Written {
                waits: place,
                after,
                line,
            };
            waits.push(waits_here);
        }
    }
}
