// SPDX-License-Identifier: GPL-2.0
//! Start of processes: their commands and redirections.

use pbs_text::reader::{Reader, Table, Value};
use pbs_text::Line;
use toml::de::DeValue;

use crate::{Command, Start};

const COMMAND_KEYS: &[&str] = &["command", "stdin", "stdout", "stderr"];

/// Reads the start of a process: takes the keys of [`Start::KEYS`] out of its table.
pub fn read_start(reader: &mut Reader, table: &mut Table<'_, '_>, label: &str) -> Start {
    let line = table.line;
    let command = table.entries.remove("command");
    let commands = table.entries.remove("commands");
    let attaches = table.entries.remove("attaches");
    let mut redirections = Command::default();
    let redirected = take_redirections(reader, table, &mut redirections);

    let itself = attaches.is_some_and(|(line, value)| {
        let itself = reader.string(line, "attaches", value);
        if itself.as_deref().is_some_and(|text| text != "itself") {
            reader.problem(
                line,
                "attaches can only be \"itself\"; leave it out if the program is unmodified",
            );
        }
        itself.is_some()
    });
    match (command, commands) {
        (Some(_), Some((line, _))) => {
            reader.problem(
                line,
                format!(
                    "process {label} has both command and commands; keep command for \
                     one program, commands for one program per task"
                ),
            );
            Start::Unsaid
        }
        (Some((line, value)), None) => match argv(reader, line, "command", value) {
            Some(argv) => {
                let command = Command { argv, line, ..redirections };
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
                reader.problem(
                    line,
                    format!(
                        "process {label} attaches itself and so has one program; \
                         write command instead of commands"
                    ),
                );
            }
            Start::Commands(read_commands(reader, line, value, &redirections))
        }
        (None, None) => {
            if redirected {
                reader.problem(
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

fn take_redirections(
    reader: &mut Reader,
    table: &mut Table<'_, '_>,
    command: &mut Command,
) -> bool {
    let mut any = false;
    for (key, file) in [
        ("stdin", &mut command.stdin),
        ("stdout", &mut command.stdout),
        ("stderr", &mut command.stderr),
    ] {
        if let Some((line, value)) = table.entries.remove(key) {
            any = true;
            *file = reader.string(line, key, value).map(Into::into);
        }
    }
    any
}

fn read_commands(
    reader: &mut Reader,
    line: Line,
    value: &Value<'_>,
    process: &Command,
) -> Vec<Command> {
    const WRITE: &str = "write a list of commands, one for each task: \
                         commands = [[\"gzip\", \"a\"], [\"sha256sum\", \"b\"]]";
    let DeValue::Array(items) = value.get_ref() else {
        reader.problem(line, format!("commands is no list; {WRITE}"));
        return Vec::new();
    };
    let mut commands = Vec::new();
    for item in items.iter() {
        let line = reader.line_of(item);
        let mut command = Command { line, ..process.clone() };
        match item.get_ref() {
            DeValue::Array(_) => {
                command.argv = argv(reader, line, "a command", item).unwrap_or_default();
            }
            DeValue::Table(_) => {
                let Some(mut table) = reader.table(line, item, "a command", COMMAND_KEYS) else {
                    continue;
                };
                take_redirections(reader, &mut table, &mut command);
                match table.entries.remove("command") {
                    Some((line, value)) => {
                        command.argv = argv(reader, line, "command", value).unwrap_or_default();
                    }
                    None => reader.problem(line, format!("a command has no program; {WRITE}")),
                }
            }
            _ => reader.problem(line, format!("a command must be a list; {WRITE}")),
        }
        commands.push(command);
    }
    commands
}

fn argv(reader: &mut Reader, line: Line, key: &str, value: &Value<'_>) -> Option<Vec<String>> {
    let DeValue::Array(items) = value.get_ref() else {
        reader.problem(
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
                let line = reader.line_of(item);
                reader.problem(
                    line,
                    format!("{key}: every argument must be a string; put it in quotes"),
                );
                return None;
            }
        }
    }
    if argv.is_empty() {
        reader.problem(line, format!("{key} is empty; name a program"));
        return None;
    }
    Some(argv)
}
