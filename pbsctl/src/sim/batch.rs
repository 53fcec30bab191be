// SPDX-License-Identifier: GPL-2.0
//! `--batch`: many simulations by one process, a line for each.

use std::io::{self, stdin, BufRead, Read};
use std::path::Path;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches, Parser};
use pbs_text::json::toml_of_json;
use serde::Deserialize;
use serde_json::Value;

use super::recorded::Recorded;
use super::{simulated, SimOptions, Simulated};
use crate::failure::{Failure, FAILED, INCOMPLETE};
use crate::files;
use crate::given::Given;
use crate::numbers::{negative_numbers, with_remedy};
use crate::output::Output;

/// Maximum size of a line. A plan of a million tasks has less.
const MAX_LINE_BYTES: u64 = 64 << 20;

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
    options: Given<SimOptions>,
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
    let mut command = negative_numbers(CaseOptions::command());
    let (mut has_failed, mut is_incomplete) = (false, false);
    let mut input = stdin().lock();
    for number in 1u64.. {
        let line = next_line(&mut input, MAX_LINE_BYTES);
        let Some(line) = line.map_err(|error| Failure::file("standard input", &error))? else {
            break;
        };
        if line.as_ref().is_ok_and(|line| line.trim().is_empty()) {
            continue;
        }
        let name = format!("line {number}");
        let simulated = line
            .map_err(|problem| Failure::Usage(format!("{name}: {problem}")))
            .and_then(|line| case(&mut command, &line, &name));
        match simulated {
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

/// Reads a line; `None`: the input has ended. A line that is too long, or no text, is read to its
/// end, and the inner error describes it.
fn next_line(
    input: &mut impl BufRead,
    max_bytes: u64,
) -> io::Result<Option<Result<String, String>>> {
    let mut line = Vec::new();
    // One byte more is for the end of the line.
    if input.by_ref().take(max_bytes + 1).read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    let is_ended = line.pop_if(|byte| *byte == b'\n').is_some();
    if !is_ended && line.len() as u64 > max_bytes {
        skip_line(input)?;
        return Ok(Some(Err(format!(
            "this line has more than {max_bytes} bytes; write a smaller plan, or simulate it \
             without --batch"
        ))));
    }
    Ok(Some(String::from_utf8(line).map_err(|error| {
        format!(
            "byte {} of this line is not UTF-8; write JSON in UTF-8",
            error.utf8_error().valid_up_to() + 1
        )
    })))
}

/// Skips the rest of a line.
fn skip_line(input: &mut impl BufRead) -> io::Result<()> {
    loop {
        let part = input.fill_buf()?;
        let end = part.iter().position(|byte| *byte == b'\n');
        let is_over = part.is_empty() || end.is_some();
        let bytes = end.map_or(part.len(), |end| end + 1);
        input.consume(bytes);
        if is_over {
            return Ok(());
        }
    }
}

fn case(command: &mut clap::Command, line: &str, name: &str) -> Result<Simulated, Failure> {
    let usage = |message: String| Failure::Usage(format!("{name}: {message}"));
    const WRITE: &str =
        "write {\"plan\": {...}, \"options\": [\"--scheduler\", \"stretch\"]} in one line";
    let value: Value =
        serde_json::from_str(line).map_err(|error| usage(format!("{error}; {WRITE}")))?;
    if !value.is_object() {
        return Err(usage(format!("this is no object; {WRITE}")));
    }
    let case: Case =
        serde_json::from_value(value).map_err(|error| usage(format!("{error}; {WRITE}")))?;
    // The plan is the file.
    let words = std::iter::once("-").chain(case.options.iter().map(String::as_str));
    let options = command
        .try_get_matches_from_mut(words)
        .and_then(|matches| CaseOptions::from_arg_matches(&matches))
        .map_err(|error| {
            let text = error.to_string();
            let text = text.lines().next().unwrap_or_default();
            let text = text.trim_start_matches("error: ");
            let remedy = match error.kind() {
                ErrorKind::UnknownArgument => {
                    "; write options of pbsctl sim alone, without the name of a file and without \
                     --json"
                }
                _ => "",
            };
            usage(with_remedy(&format!("{text}{remedy}")))
        })?;
    if options.options.slowdowns.reads_stdin() {
        return Err(usage(
            "standard input has the lines of the batch; name a file with --slowdowns instead of -"
                .into(),
        ));
    }
    let text = match case.plan {
        Value::String(text) if !text.contains(['\n', '=', ';', '{']) => {
            return Err(usage(format!(
                "plan is \"{}\", and no plan; write the plan itself there, as an object or as \
                 text, and not the name of its file",
                pbs_text::shown(&text)
            )));
        }
        Value::String(text) => text,
        plan => toml_of_json(&plan.to_string())
            .map_err(|problem| Failure::Invalid { file: name.into(), problems: vec![problem] })?,
    };
    let plan = files::any_plan_of(text, Path::new(name))?;
    simulated(&options.options, plan, name, &mut |_| {})
}

#[cfg(test)]
mod tests {
    use super::next_line;

    #[test]
    fn a_line_that_is_too_long_ends_where_the_next_one_begins() {
        let mut input: &[u8] = b"1234\n12345\n\n123456789\n\xff\n1234";
        let mut lines = Vec::new();
        while let Some(line) = next_line(&mut input, 4).unwrap() {
            lines.push(line);
        }
        let is_text: Vec<_> = lines.iter().map(|line| line.as_deref().ok()).collect();
        assert_eq!(is_text, [Some("1234"), None, Some(""), None, None, Some("1234")]);
        assert!(lines[1].as_ref().is_err_and(|why| why.contains("more than 4 bytes")));
        assert!(lines[4].as_ref().is_err_and(|why| why.contains("byte 1 of")));
    }
}
