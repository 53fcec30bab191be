// SPDX-License-Identifier: GPL-2.0
//! `--batch`: many simulations by one process, a line for each.

use std::io::{stdin, BufRead};
use std::path::Path;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser};
use pbs_text::json::toml_of_json;
use serde::Deserialize;
use serde_json::Value;

use super::recorded::Recorded;
use super::{simulated, SimOptions, Simulated};
use crate::failure::{Failure, FAILED, INCOMPLETE};
use crate::files;
use crate::output::Output;

/// One line of the input.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    /// The plan as an object, or as text in any form.
    plan: Value,
    /// Options of `pbsctl sim`.
    #[serde(default)]
    options: Vec<String>,
}

/// Options of one line.
#[derive(Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct CaseOptions {
    #[command(flatten)]
    options: SimOptions,
}

/// Simulates the plan of each line, and prints a line for each.
///
/// # Errors
///
/// The input cannot be read, or the output cannot be written. A case that fails is a line of the
/// output.
pub(super) fn batch(out: Output) -> Result<ExitCode, Failure> {
    let out = Output { json: true, ..out };
    // Built once: parsing takes a clone of it.
    let mut command = CaseOptions::command();
    let (mut has_failed, mut is_incomplete) = (false, false);
    for (line, number) in stdin().lock().lines().zip(1u64..) {
        let line = line.map_err(|error| Failure::file("standard input", &error))?;
        if line.trim().is_empty() {
            continue;
        }
        match case(&mut command, &line, &format!("line {number}")) {
            Ok(Simulated { plan, options, simulation }) => {
                is_incomplete |= !simulation.ended();
                out.print_line(&Recorded::new(&plan, &options, &simulation), String::new)?;
            }
            Err(failure) => {
                has_failed = true;
                out.named("failure").print_line(&failure.json(), String::new)?;
            }
        }
    }
    Ok(match (has_failed, is_incomplete) {
        (true, _) => ExitCode::from(FAILED),
        (false, true) => ExitCode::from(INCOMPLETE),
        (false, false) => ExitCode::SUCCESS,
    })
}

fn case(command: &mut clap::Command, line: &str, name: &str) -> Result<Simulated, Failure> {
    let usage = |message: String| Failure::Usage(format!("{name}: {message}"));
    let case: Case = serde_json::from_str(line).map_err(|error| {
        usage(format!(
            "{error}; write {{\"plan\": {{...}}, \"options\": [\"--scheduler\", \"stretch\"]}} in one \
             line"
        ))
    })?;
    // The plan is the file.
    let words = std::iter::once("-").chain(case.options.iter().map(String::as_str));
    let options = command
        .try_get_matches_from_mut(words)
        .and_then(|matches| CaseOptions::from_arg_matches(&matches))
        .map_err(|error| {
            let text = error.to_string();
            let text = text.lines().next().unwrap_or_default();
            usage(text.trim_start_matches("error: ").into())
        })?;
    let text = match case.plan {
        Value::String(text) => text,
        plan => toml_of_json(&plan.to_string())
            .map_err(|problem| Failure::Invalid { file: name.into(), problems: vec![problem] })?,
    };
    let plan = files::any_plan_of(text, Path::new(name))?;
    simulated(&options.options, plan, name, &mut |_| {})
}
