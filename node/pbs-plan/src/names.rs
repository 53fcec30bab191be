// SPDX-License-Identifier: GPL-2.0
//! Notation for tasks of other processes: `process` for its last task, or `process/task`; both by
//! name or by number.

use std::collections::HashMap;

use pbs_text::reader::closest;
use pbs_text::Line;

use crate::{After, Process};

/// The processes of a plan by what they can be called.
pub(crate) struct Names<'a> {
    processes: &'a [Process],
    by_name: HashMap<&'a str, usize>,
    by_id: HashMap<u32, usize>,
}

/// Task that a text names.
#[derive(Clone, Copy, PartialEq, Eq)]
struct NamedTask {
    process: u32,
    task: u32,
}

impl<'a> Names<'a> {
    pub(crate) fn new(processes: &'a [Process]) -> Self {
        let named = processes.iter().enumerate();
        let by_name = named.filter_map(|(index, process)| Some((process.name.as_deref()?, index)));
        let numbered = processes.iter().enumerate();
        Self {
            processes,
            by_name: by_name.collect(),
            by_id: numbered.map(|(index, process)| (process.id, index)).collect(),
        }
    }

    /// The task that is meant.
    pub(crate) fn find(&self, text: &str, line: Line) -> Result<After, String> {
        match self.candidates(text)[..] {
            [NamedTask { process, task }] => Ok(After { process, task, line, arrival_ns: None }),
            [] => Err(self.unknown(text)),
            [one, other, ..] => Err(format!(
                "{text} can be {}/{} and {}/{}; write these numbers instead",
                one.process, one.task, other.process, other.task
            )),
        }
    }

    /// The task in words that only it can be meant with.
    pub(crate) fn text(&self, after: &After) -> String {
        let found = NamedTask { process: after.process, task: after.task };
        let numbers = format!("{}/{}", found.process, found.task);
        let Some(process) = self.by_id.get(&found.process) else {
            return numbers;
        };
        let process = &self.processes[*process];
        let label = process.label();
        let task = process.position_of(found.task);
        let task = task.map_or_else(|| found.task.to_string(), |at| process.tasks[at].label());
        let is_last = process.tasks.last().map(|last| last.id) == Some(found.task);
        let words = [
            if is_last { label.clone() } else { String::new() },
            format!("{label}/{task}"),
            format!("{label}/{}", found.task),
        ];
        let mut words = words.into_iter();
        let clear = words.find(|words| self.candidates(words)[..] == [found]);
        clear.unwrap_or(numbers)
    }

    /// Everything that a text can mean: names may have slashes of their own.
    fn candidates(&self, text: &str) -> Vec<NamedTask> {
        let mut found = Vec::new();
        if let Some(process) = self.process(text) {
            let last = process.tasks.last().map(|last| last.id);
            found.extend(last.map(|task| (process.id, task)));
        }
        for (slash, _) in text.match_indices('/') {
            let Some(process) = self.process(&text[..slash]) else {
                continue;
            };
            let task = &text[slash + 1..];
            match number(task) {
                Some(task) => found.push((process.id, task)),
                None => {
                    let tasks = process.tasks.iter();
                    let named = tasks.filter(|named| named.name.as_deref() == Some(task));
                    found.extend(named.map(|named| (process.id, named.id)));
                }
            }
        }
        let found = found.into_iter();
        found.map(|(process, task)| NamedTask { process, task }).collect()
    }

    /// Digits are a number, everything else a name.
    fn process(&self, text: &str) -> Option<&'a Process> {
        let index = match number(text) {
            Some(id) => self.by_id.get(&id),
            None => self.by_name.get(text),
        };
        index.map(|&index| &self.processes[index])
    }

    fn unknown(&self, text: &str) -> String {
        let known = text.match_indices('/').find_map(|(slash, _)| {
            let process = self.process(&text[..slash])?;
            Some((process, &text[slash + 1..]))
        });
        if let Some((process, task)) = known {
            let label = process.label();
            let tasks = process.tasks.iter().filter_map(|task| task.name.as_deref());
            return match closest(task, tasks) {
                Some(close) => {
                    format!("process {label} has no task {task}; did you mean {label}/{close}?")
                }
                None => format!(
                    "process {label} has no task {task}; write its number, {label}/0, or only \
                     {label} for its last one"
                ),
            };
        }
        let process = text.split('/').next().unwrap_or(text);
        match closest(process, self.by_name.keys().copied()) {
            Some(close) => format!("there is no process {process}; did you mean {close}?"),
            None => format!(
                "there is no process {process}; add a [[process]] for it, or leave it out of after"
            ),
        }
    }
}

fn number(text: &str) -> Option<u32> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}
