// SPDX-License-Identifier: GPL-2.0
//! A program as job scheduler.

use std::thread;
use std::time::Duration;

use pbs_plan::{to_toml, Plan};
use pbs_text::json::json_of_toml;
use serde::Serialize;
use serde_json::Value;

use super::conversation::Conversation;
use super::{Failure, JobScheduler, NodeState};

/// Interval at which the simulator looks for the answer.
const LOOK: Duration = Duration::from_micros(200);

/// A shell command as job scheduler, which is run for each question.
///
/// Its standard input is a JSON object with the fields of [`NodeState`] and the
/// list `failures` of [`Failure`]. It writes a plan in TOML or in JSON to its standard
/// output, or nothing if the plan in force shall stay; `remaining_toml`, or the same in JSON,
/// `remaining`, is one to begin with. An exit status other than 0 ends the simulation.
#[derive(Clone, Debug)]
pub struct Command {
    line: String,
}

/// Input of the command.
#[derive(Serialize)]
struct Question<'a> {
    failures: &'a [Failure],
    /// Rest of the plan in JSON; `remaining_toml` is the same in TOML.
    remaining: Option<Value>,
    #[serde(flatten)]
    state: &'a NodeState,
}

/// The question as a command reads it: one line of JSON.
///
/// # Errors
///
/// The question cannot be written as JSON.
pub fn question(failures: &[Failure], state: &NodeState) -> Result<Vec<u8>, String> {
    let remaining = rest_in_json(&state.remaining);
    let mut question = serde_json::to_vec(&Question { failures, remaining, state })
        .map_err(|error| format!("the question cannot be written as JSON: {error}"))?;
    question.push(b'\n');
    Ok(question)
}

/// The rest of a plan in JSON, as TOML has it. Deadlines and arrivals are numbers, which a program reads
/// without a grammar of units.
fn rest_in_json(plan: &Plan) -> Option<Value> {
    let mut rest = json_of_toml(&to_toml(plan))?;
    for (at, process) in plan.processes.iter().enumerate() {
        if let Some(deadline_ns) = process.deadline_ns {
            rest["process"][at]["deadline"] = deadline_ns.into();
        }
        for (task, place) in process.tasks.iter().zip(0..) {
            for (after, number) in task.after.iter().zip(0..) {
                if let Some(arrival_ns) = after.arrival_ns {
                    let task = &mut rest["process"][at]["tasks"][place as usize];
                    task["after"][number as usize]["arrival"] = arrival_ns.into();
                }
            }
        }
    }
    Some(rest)
}

impl Command {
    /// Runs `line` with `sh -c`.
    pub fn new(line: impl Into<String>) -> Self {
        Self { line: line.into() }
    }
}

impl JobScheduler for Command {
    fn answer(&mut self, failures: &[Failure], state: &NodeState) -> Result<Option<Plan>, String> {
        let line = &self.line;
        let question = question(failures, state)?;
        let told = |why| format!("\"{line}\" {why}");
        let mut conversation = Conversation::start(line, None, question).map_err(told)?;
        loop {
            if let Some(answer) = conversation.look() {
                return answer.map_err(told);
            }
            thread::sleep(LOOK);
        }
    }
}
