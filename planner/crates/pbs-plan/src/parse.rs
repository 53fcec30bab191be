// SPDX-License-Identifier: GPL-2.0
//! From TOML to the model. What is no plan at all is refused here, with the
//! line; whether the plan makes sense is for `check`.

use std::collections::HashMap;
use std::num::NonZeroU32;

use toml::de::{DeTable, DeValue};
use toml::Spanned;

use crate::{Command, Config, Cpu, Line, Plan, Problem, Process, Slot, Start, Task};

pub(crate) fn parse(text: &str) -> Result<Plan, Vec<Problem>> {
    let mut reader = Reader {
        line_starts: line_starts(text),
        problems: Vec::new(),
    };
    let document = match DeTable::parse(text) {
        Ok(document) => document,
        Err(error) => {
            let line = error.span().and_then(|span| reader.line(span.start));
            let message = format!("this is no TOML: {}", error.message().replace('\n', "; "));
            return Err(vec![Problem::at(line, message)]);
        }
    };
    let plan = reader.plan(document.get_ref());
    if reader.problems.is_empty() {
        Ok(plan)
    } else {
        reader.problems.sort_by_key(|problem| problem.line);
        Err(reader.problems)
    }
}

fn line_starts(text: &str) -> Vec<usize> {
    let newlines = text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n');
    std::iter::once(0)
        .chain(newlines.map(|(position, _)| position + 1))
        .collect()
}

type Value<'i> = Spanned<DeValue<'i>>;

/// A table whose keys are taken out one by one; what is left is unknown.
struct Table<'a, 'i> {
    entries: HashMap<&'a str, (Line, &'a Value<'i>)>,
    line: Line,
}

struct Reader {
    line_starts: Vec<usize>,
    problems: Vec<Problem>,
}

impl Reader {
    fn line(&self, offset: usize) -> Line {
        let number = self.line_starts.partition_point(|&start| start <= offset);
        u32::try_from(number).ok().and_then(NonZeroU32::new)
    }

    fn line_of(&self, value: &Value<'_>) -> Line {
        self.line(value.span().start)
    }

    fn problem(&mut self, line: Line, message: impl Into<String>) {
        self.problems.push(Problem::at(line, message));
    }

    fn plan(&mut self, document: &DeTable<'_>) -> Plan {
        let mut top = self.open(document, "the plan", None, TOP_KEYS);
        let plan_id = match top.entries.remove("plan_id") {
            Some((line, value)) => self.number(line, "plan_id", value).unwrap_or(0),
            None => 0,
        };
        let mut plan = Plan {
            plan_id,
            ..Plan::default()
        };
        if let Some((line, value)) = top.entries.remove("config") {
            self.config(line, value, &mut plan);
        }
        for (line, value) in self.tables(&mut top, "process") {
            let process = self.process(line, value);
            plan.processes.extend(process);
        }
        // A slot may name its process by number or by name.
        let mut indices = HashMap::new();
        for (index, process) in plan.processes.iter().enumerate() {
            indices.insert(process.id.to_string(), index);
            if let Some(name) = &process.name {
                indices.insert(name.clone(), index);
            }
        }
        for (line, value) in self.tables(&mut top, "cpu") {
            let cpu = self.cpu(line, value, &indices);
            plan.cpus.extend(cpu);
        }
        if self.problems.is_empty() && plan.processes.is_empty() {
            self.problem(
                None,
                "the plan has no process; add a [[process]] with id, tasks and command",
            );
        }
        if self.problems.is_empty() && plan.cpus.is_empty() {
            self.problem(
                None,
                "the plan has no CPU; add a [[cpu]] with the order of the slots: slots = [1, ...]",
            );
        }
        plan
    }

    fn config(&mut self, line: Line, value: &Value<'_>, plan: &mut Plan) {
        let Some(mut table) = self.table(line, value, "[config]", &Config::NAMES) else {
            return;
        };
        let mut values = Config::DEFAULT.values();
        for (index, name) in Config::NAMES.iter().enumerate() {
            if let Some((line, value)) = table.entries.remove(name) {
                plan.config_lines[index] = line;
                values[index] = self.number(line, name, value).unwrap_or(values[index]);
            }
        }
        plan.config = Some(Config::from_values(values));
    }

    fn process(&mut self, line: Line, value: &Value<'_>) -> Option<Process> {
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
            process.buffer_insns = self.number(line, "buffer_insns", value).unwrap_or(0);
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
                _ => self.number(line, "a task", item).map(|planned_insns| Task {
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
            task.real_insns = self.number(line, "real_insns", value);
        }
        match table.entries.remove("planned_insns") {
            Some((line, value)) => {
                task.planned_insns = self.number(line, "planned_insns", value)?;
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

    fn cpu(
        &mut self,
        line: Line,
        value: &Value<'_>,
        indices: &HashMap<String, usize>,
    ) -> Option<Cpu> {
        let mut table = self.table(line, value, "[[cpu]]", CPU_KEYS)?;
        let mut cpu = Cpu {
            line: table.line,
            ..Cpu::default()
        };
        match table.entries.remove("cpu") {
            Some((line, value)) => cpu.cpu = self.number(line, "cpu", value).unwrap_or(0),
            None => self.problem(table.line, "the CPU has no number; add cpu = 0"),
        }
        let Some((line, slots)) = table.entries.remove("slots") else {
            self.problem(
                table.line,
                format!(
                    "CPU {} has no slots; add their order: slots = [1, 2, \"idle 5_000_000\", 1]",
                    cpu.cpu
                ),
            );
            return Some(cpu);
        };
        let DeValue::Array(items) = slots.get_ref() else {
            self.problem(
                line,
                "slots is no list; write slots = [1, 2, \"idle 5_000_000\", 1]",
            );
            return Some(cpu);
        };
        for item in items.iter() {
            let line = self.line_of(item);
            if let Some(slot) = self.slot(line, item, indices) {
                cpu.slots.push(slot);
                cpu.slot_lines.push(line);
            }
        }
        Some(cpu)
    }

    fn slot(
        &mut self,
        line: Line,
        value: &Value<'_>,
        indices: &HashMap<String, usize>,
    ) -> Option<Slot> {
        let name = match value.get_ref() {
            DeValue::String(text) => match text.strip_prefix("idle") {
                Some(length) if length.is_empty() || length.starts_with(char::is_whitespace) => {
                    return self.idle(line, length);
                }
                _ => text.to_string(),
            },
            DeValue::Integer(number) if number.radix() == 10 => number.as_str().to_string(),
            DeValue::Table(_) => return self.idle_table(line, value),
            _ => {
                self.problem(
                    line,
                    "a slot is the number or the name of a process, or \"idle 5_000_000\"",
                );
                return None;
            }
        };
        match indices.get(&name) {
            Some(&process) => Some(Slot::Process { process }),
            None => {
                let close = closest(&name, indices.keys().map(String::as_str));
                self.problem(
                    line,
                    match close {
                        Some(close) => {
                            format!("there is no process {name}; did you mean {close}?")
                        }
                        None => format!(
                            "there is no process {name}; add a [[process]] for it, \
                             or write \"idle 5_000_000\" for an idle slot"
                        ),
                    },
                );
                None
            }
        }
    }

    fn idle(&mut self, line: Line, length: &str) -> Option<Slot> {
        match length.trim().replace('_', "").parse() {
            Ok(length_insns) => Some(Slot::Idle {
                length_insns,
                real_insns: None,
            }),
            Err(_) => {
                self.problem(
                    line,
                    format!(
                        "\"idle{length}\" has no length in instructions; write \"idle 5_000_000\""
                    ),
                );
                None
            }
        }
    }

    fn idle_table(&mut self, line: Line, value: &Value<'_>) -> Option<Slot> {
        let mut table = self.table(line, value, "a slot", IDLE_KEYS)?;
        let Some((length_line, length)) = table.entries.remove("idle_insns") else {
            self.problem(
                line,
                "a slot in braces is an idle one; write { idle_insns = 5_000_000 }",
            );
            return None;
        };
        let real = table.entries.remove("real_insns");
        Some(Slot::Idle {
            length_insns: self.number(length_line, "idle_insns", length)?,
            real_insns: real.and_then(|(line, value)| self.number(line, "real_insns", value)),
        })
    }

    /// The tables of an array of tables.
    fn tables<'a, 'i>(
        &mut self,
        top: &mut Table<'a, 'i>,
        key: &'static str,
    ) -> Vec<(Line, &'a Value<'i>)> {
        match top.entries.remove(key) {
            None => Vec::new(),
            Some((line, value)) => match value.get_ref() {
                DeValue::Array(items) => items
                    .iter()
                    .map(|item| (self.line_of(item), item))
                    .collect(),
                _ => {
                    self.problem(
                        line,
                        format!("{key} must be a list of tables; write [[{key}]] in two brackets"),
                    );
                    Vec::new()
                }
            },
        }
    }

    fn table<'a, 'i>(
        &mut self,
        line: Line,
        value: &'a Value<'i>,
        what: &'static str,
        keys: &[&str],
    ) -> Option<Table<'a, 'i>> {
        match value.get_ref() {
            DeValue::Table(table) => Some(self.open(table, what, line, keys)),
            _ => {
                self.problem(line, format!("{what} must be a table with keys and values"));
                None
            }
        }
    }

    fn open<'a, 'i>(
        &mut self,
        table: &'a DeTable<'i>,
        what: &'static str,
        line: Line,
        keys: &[&str],
    ) -> Table<'a, 'i> {
        let mut entries = HashMap::new();
        for (key, value) in table.iter() {
            let line = self.line(key.span().start);
            let name: &str = key.get_ref();
            if keys.contains(&name) {
                entries.insert(name, (line, value));
                continue;
            }
            let instead = match closest(name, keys.iter().copied()) {
                Some(close) => format!("did you mean {close}?"),
                None => format!("it can have {}", keys.join(", ")),
            };
            self.problem(line, format!("{what} has no key {name}; {instead}"));
        }
        Table { entries, line }
    }

    fn number<T: TryFrom<u64>>(&mut self, line: Line, what: &str, value: &Value<'_>) -> Option<T> {
        let number = match value.get_ref() {
            DeValue::Integer(number) => u64::from_str_radix(number.as_str(), number.radix()).ok(),
            DeValue::Float(_) => {
                self.problem(
                    line,
                    format!("{what} must be a whole number; write it without point and exponent: 20_000_000"),
                );
                return None;
            }
            _ => {
                self.problem(
                    line,
                    format!("{what} must be a number; write it without quotes: 20_000_000"),
                );
                return None;
            }
        };
        let number = number.and_then(|number| T::try_from(number).ok());
        if number.is_none() {
            let most = u64::MAX >> (64 - 8 * size_of::<T>());
            self.problem(line, format!("{what} must be between 0 and {most}"));
        }
        number
    }

    fn string(&mut self, line: Line, what: &str, value: &Value<'_>) -> Option<String> {
        match value.get_ref() {
            DeValue::String(text) if !text.is_empty() && !text.contains('\0') => {
                Some(text.to_string())
            }
            DeValue::String(_) => {
                self.problem(line, format!("{what} is empty or holds a NUL character"));
                None
            }
            _ => {
                self.problem(line, format!("{what} must be a string; put it in quotes"));
                None
            }
        }
    }
}

const TOP_KEYS: &[&str] = &["plan_id", "config", "process", "cpu"];
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
const TASK_KEYS: &[&str] = &["id", "name", "planned_insns", "real_insns"];
const CPU_KEYS: &[&str] = &["cpu", "slots"];
const IDLE_KEYS: &[&str] = &["idle_insns", "real_insns"];

/// The candidate that was probably meant.
fn closest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .map(|candidate| {
            let prefix = candidate.len() > 2
                && name.len() > 2
                && (candidate.starts_with(name) || name.starts_with(candidate));
            (
                if prefix { 1 } else { distance(name, candidate) },
                candidate,
            )
        })
        .filter(|&(distance, candidate)| 2 * distance <= candidate.len())
        .min()
        .map(|(_, candidate)| candidate)
}

/// How many letters differ (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<_> = b.chars().collect();
    let mut row: Vec<_> = (0..=b.len()).collect();
    for (i, a) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, &b) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
