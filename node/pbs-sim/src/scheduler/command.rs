// SPDX-License-Identifier: GPL-2.0
//! A program as job scheduler.

use std::io::{self, Write};
use std::process::{self, Stdio};

use pbs_plan::{from_toml, Plan};
use serde::Serialize;

use super::{Failure, JobScheduler, NodeState};

/// A shell command as job scheduler, which is run for each question.
///
/// Its standard input is a JSON object with the fields of [`NodeState`] and the
/// list `failures` of [`Failure`]. It writes a plan in TOML to its standard
/// output, or nothing if the plan in force shall stay; `remaining_toml` is one
/// to begin with. An exit status other than 0 ends the simulation.
#[derive(Clone, Debug)]
pub struct Command {
    line: String,
}

/// Input of the command.
#[derive(Serialize)]
struct Question<'a> {
    failures: &'a [Failure],
    #[serde(flatten)]
    state: &'a NodeState,
}

impl Command {
    /// Runs `line` with `sh -c`.
    pub fn new(line: impl Into<String>) -> Self {
        Self { line: line.into() }
    }

    fn run(&self, question: &[u8]) -> io::Result<process::Output> {
        let mut child = process::Command::new("sh")
            .args(["-c", &self.line])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()?;
        let stdin = child.stdin.take();
        std::thread::scope(|scope| {
            // It may write before it has read all, or not read at all.
            scope.spawn(move || stdin.map(|mut stdin| stdin.write_all(question)));
            child.wait_with_output()
        })
    }
}

impl JobScheduler for Command {
    fn answer(&mut self, failures: &[Failure], state: &NodeState) -> Result<Option<Plan>, String> {
        let line = &self.line;
        let question = serde_json::to_vec(&Question { failures, state })
            .map_err(|error| format!("the question cannot be written as JSON: {error}"))?;
        let output =
            self.run(&question).map_err(|error| format!("\"{line}\" could not be run: {error}"))?;
        if !output.status.success() {
            return Err(format!("\"{line}\" ended with {}", output.status));
        }
        let text = String::from_utf8(output.stdout)
            .map_err(|_| format!("\"{line}\" wrote output that is not UTF-8 text"))?;
        if text.trim().is_empty() {
            return Ok(None);
        }
        let name = format!("plan of \"{line}\"");
        let plan = from_toml(&text).map_err(|problems| {
            let problems: Vec<_> =
                problems.iter().map(|problem| problem.in_file(&name).to_string()).collect();
            problems.join("\n")
        })?;
        Ok(Some(plan))
    }
}
