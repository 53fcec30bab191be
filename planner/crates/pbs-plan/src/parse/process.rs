// SPDX-License-Identifier: GPL-2.0
//! The [[process]] tables, with their commands and tasks.

use pbs_uapi::MAX_BUFFER_INSNS;
use toml::de::DeValue;

use super::{Reader, Table, Value};
use crate::{Command, Line, Process, Start, Task};

const PROCESS_KEYS: &[&str] = &[
    "id",
    "name",
    "cpu",
    "buffer_insns",
    "command",
    "commands",
    "attaches",
    "stdin",
    "stdout",
    "stderr",
    "tasks",
];
const COMMAND_KEYS: &[&str] = &["command", "stdin", "stdout", "stderr"];
const TASK_KEYS: &[&str] = &["id", "name", "planned_insns", "real_insns", "wait_insns"];

impl Reader {
    pub(super) fn process(&mut self, line: Line, value: &Value<'_>) -> Option<Process> {
        let mut table = self.table(line, value, "[[process]]", PROCESS_KEYS)?;
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
        match table.entries.remove("tasks") {
            Some((line, value)) => process.tasks = self.tasks(line, value),
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

    fn start(&mut self, table: &mut Table<'_, '_>, label: &str) -> Start {
        let line = table.line;
        let command = table.entries.remove("command");
        let commands = table.entries.remove("commands");
        let attaches = table.entries.remove("attaches");
        let mut redirections = Command::default();
        let redirected = self.redirections(table, &mut redirections);

        let itself = attaches.is_some_and(|(line, value)| {
            let itself = self.string(line, "attaches", value);
            if itself.as_deref().is_some_and(|text| text != "itself") {
                self.problem(
                    line,
                    "attaches can only be \"itself\"; leave it out if the program is unmodified",
                );
            }
            itself.is_some()
        });
        match (command, commands) {
            (Some(_), Some((line, _))) => {
                self.problem(
                    line,
                    format!(
                        "process {label} has both command and commands; keep command for \
                         one program, commands for one program per task"
                    ),
                );
                Start::Unsaid
            }
            (Some((line, value)), None) => match self.argv(line, "command", value) {
                Some(argv) => {
                    let command = Command {
                        argv,
                        line,
                        ..redirections
                    };
                    if itself {
                        Start::Itself(Some(command))
                    } else {
                        Start::Command(command)
                    }
                }
                None => Start::Unsaid,
            },
            (None, Some((line, value))) => {
                if itself {
                    self.problem(
                        line,
                        format!(
                            "process {label} attaches itself and so has one program; \
                             write command instead of commands"
                        ),
                    );
                }
                Start::Commands(self.commands(line, value, &redirections))
            }
            (None, None) => {
                if redirected {
                    self.problem(
                        line,
                        format!(
                            "process {label} has redirections but no program; \
                             add command = [\"program\", \"argument\"]"
                        ),
                    );
                }
                if itself {
                    Start::Itself(None)
                } else {
                    Start::Unsaid
                }
            }
        }
    }

    fn redirections(&mut self, table: &mut Table<'_, '_>, command: &mut Command) -> bool {
        let mut any = false;
        for (key, file) in [
            ("stdin", &mut command.stdin),
            ("stdout", &mut command.stdout),
            ("stderr", &mut command.stderr),
        ] {
            if let Some((line, value)) = table.entries.remove(key) {
                any = true;
                *file = self.string(line, key, value).map(Into::into);
            }
        }
        any
    }

    fn commands(&mut self, line: Line, value: &Value<'_>, process: &Command) -> Vec<Command> {
        const WRITE: &str = "write a list of commands, one for each task: \
                             commands = [[\"gzip\", \"a\"], [\"sha256sum\", \"b\"]]";
        let DeValue::Array(items) = value.get_ref() else {
            self.problem(line, format!("commands is no list; {WRITE}"));
            return Vec::new();
        };
        let mut commands = Vec::new();
        for item in items.iter() {
            let line = self.line_of(item);
            let mut command = Command {
                line,
                ..process.clone()
            };
            match item.get_ref() {
                DeValue::Array(_) => {
                    command.argv = self.argv(line, "a command", item).unwrap_or_default();
                }
                DeValue::Table(_) => {
                    let Some(mut table) = self.table(line, item, "a command", COMMAND_KEYS) else {
                        continue;
                    };
                    self.redirections(&mut table, &mut command);
                    match table.entries.remove("command") {
                        Some((line, value)) => {
                            command.argv = self.argv(line, "command", value).unwrap_or_default();
                        }
                        None => self.problem(line, format!("a command has no program; {WRITE}")),
                    }
                }
                _ => self.problem(line, format!("a command must be a list; {WRITE}")),
            }
            commands.push(command);
        }
        commands
    }

    fn argv(&mut self, line: Line, key: &str, value: &Value<'_>) -> Option<Vec<String>> {
        let DeValue::Array(items) = value.get_ref() else {
            self.problem(
                line,
                format!(
                    "{key} must be a list of the program and its arguments: \
                     [\"sort\", \"/data/a\"]; there is no shell"
                ),
            );
            return None;
        };
        let mut argv = Vec::new();
        for item in items.iter() {
            match item.get_ref() {
                DeValue::String(text) if !text.contains('\0') => argv.push(text.to_string()),
                _ => {
                    let line = self.line_of(item);
                    self.problem(
                        line,
                        format!("{key}: every argument must be a string; put it in quotes"),
                    );
                    return None;
                }
            }
        }
        if argv.is_empty() {
            self.problem(line, format!("{key} is empty; name a program"));
            return None;
        }
        Some(argv)
    }

    fn tasks(&mut self, line: Line, value: &Value<'_>) -> Vec<Task> {
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
                DeValue::Table(_) => self.task_table(line, item, next_id),
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

    fn task_table(&mut self, line: Line, value: &Value<'_>, next_id: u32) -> Option<Task> {
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
}
