// SPDX-License-Identifier: GPL-2.0
//! From TOML to the model. What is no plan at all is refused here, with the
//! line; whether the plan makes sense is for `check`.

mod config;
mod cpu;
mod process;
mod value;

use std::collections::HashMap;
use std::num::NonZeroU32;

use toml::de::{DeTable, DeValue};
use toml::Spanned;

use crate::{Config, Line, Plan, Problem};

pub(crate) fn parse(text: &str) -> Result<Plan, Vec<Problem>> {
    read(text, Reader::plan)
}

/// `base` with the numbers of `text`, which is what stands below [config].
pub(crate) fn config(text: &str, base: &Config) -> Result<Config, Vec<Problem>> {
    read(text, |reader, document| {
        let table = reader.open(document, "the configuration", None, &Config::NAMES);
        reader.numbers(table, base, &mut [None; Config::COUNT])
    })
}

fn read<T>(
    text: &str,
    read: impl FnOnce(&mut Reader, &DeTable<'_>) -> T,
) -> Result<T, Vec<Problem>> {
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
    let result = read(&mut reader, document.get_ref());
    if reader.problems.is_empty() {
        Ok(result)
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

const TOP_KEYS: &[&str] = &["plan_id", "dealt_seq", "config", "process", "cpu"];

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
        if let Some((line, value)) = top.entries.remove("dealt_seq") {
            plan.dealt_seq = self.number(line, "dealt_seq", value).unwrap_or(0);
            plan.dealt_seq_line = line;
        }
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
}
