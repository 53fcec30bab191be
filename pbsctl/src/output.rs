// SPDX-License-Identifier: GPL-2.0
//! Printing, as text or as JSON.

use std::io::{self, Write};
use std::process::ExitCode;

use pbs_text::{grouped, shown_lines};
use serde::Serialize;

use crate::failure::Failure;

/// The version of what is printed as JSON: another when a key goes or means something
/// else, not when one comes.
const VERSION: u32 = 1;

/// Format of the output.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    pub(crate) json: bool,
    /// Command whose answers are printed, without "pbsctl".
    pub(crate) command: &'static str,
}

/// An answer, and what it is.
#[derive(Serialize)]
struct Stamped<'a, T> {
    schema: String,
    #[serde(flatten)]
    answer: &'a T,
}

fn stamped<'a, T>(name: &str, answer: &'a T) -> Stamped<'a, T> {
    Stamped { schema: format!("pbs.{name}/{VERSION}"), answer }
}

impl Output {
    /// The output for an answer with a schema of its own.
    pub(crate) fn named(self, command: &'static str) -> Self {
        Self { command, ..self }
    }

    /// Prints one of both.
    pub(crate) fn print<T: Serialize>(
        self,
        json: &T,
        text: impl FnOnce() -> String,
    ) -> Result<(), Failure> {
        if self.json {
            write_out(&(to_json(&stamped(self.command, json)) + "\n"))
        } else {
            write_out(&shown_lines(&text()))
        }
    }

    /// Prints one of both, where the JSON is in a format of others.
    pub(crate) fn print_foreign<T: Serialize>(
        self,
        json: &T,
        text: impl FnOnce() -> String,
    ) -> Result<(), Failure> {
        write_out(&if self.json { to_json(json) + "\n" } else { text() })
    }

    /// Tells what went wrong; the answer is the exit status.
    pub(crate) fn tell(self, failure: &Failure) -> ExitCode {
        if failure.is_silent() {
            return ExitCode::from(failure.code());
        }
        report(&failure.to_string());
        if self.json {
            write_failure(failure);
        }
        ExitCode::from(failure.code())
    }

    /// Tells what went wrong after an answer was printed, beside which no other JSON may
    /// stand.
    pub(crate) fn tell_after(self, failure: &Failure) -> ExitCode {
        let text = Self { json: false, ..self };
        text.tell(failure)
    }

    /// Prints one of both as a line of its own.
    pub(crate) fn print_line<T: Serialize>(
        self,
        json: &T,
        text: impl FnOnce() -> String,
    ) -> Result<(), Failure> {
        if self.json {
            write_out(&(to_json_line(&stamped(self.command, json)) + "\n"))
        } else {
            write_out(&(shown_lines(&text()).into_owned() + "\n"))
        }
    }

    /// Prints one of both as a line of its own, the text behind what moves the cursor.
    pub(crate) fn print_view<T: Serialize>(
        self,
        json: &T,
        before: &str,
        text: impl FnOnce() -> String,
    ) -> Result<(), Failure> {
        if !self.json {
            write_out(before)?;
        }
        self.print_line(json, text)
    }
}

/// Prints a failure as JSON, after it was printed as text.
pub(crate) fn write_failure(failure: &Failure) {
    // If that fails, the text still tells what went wrong first.
    let _ = write_out(&(to_json(&stamped("failure", &failure.json())) + "\n"));
}

/// JSON for people and programs.
pub(crate) fn to_json<T: Serialize>(value: &T) -> String {
    serde_json::to_string_pretty(value).expect(HAS_JSON)
}

/// JSON for programs, in one line.
pub(crate) fn to_json_line<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).expect(HAS_JSON)
}

/// Reason why the JSON text of a value exists.
const HAS_JSON: &str = "nothing that is printed has keys other than strings";

/// Thousandths as `4.2 %`.
pub(crate) fn share(permille: u64) -> String {
    format!("{}.{} %", grouped(permille / 10), permille % 10)
}

/// A number of things: 1 slot, 2 slots.
pub(crate) fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(number), if number == 1 { one } else { many })
}

/// Writes to standard output. Not with `print!`, which panics where that is full or
/// its reader has gone.
pub(crate) fn write_out(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.map_err(|error| Failure::output("standard output", &error))
}

/// Writes a message to standard error, in which text of others may stand.
pub(crate) fn report(text: &str) {
    write_err(&format!("{}\n", shown_lines(text)));
}

/// Writes to standard error. If that fails nobody is left to be told.
pub(crate) fn write_err(text: &str) {
    let mut err = io::stderr().lock();
    // Nobody is left to be told if standard error is closed.
    let _ = err.write_all(text.as_bytes()).and_then(|()| err.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_have_one_digit() {
        assert_eq!(share(42), "4.2 %");
        assert_eq!(share(12_345_678), "1,234,567.8 %");
    }
}
