// SPDX-License-Identifier: GPL-2.0
//! Messages of the service on standard error, where the journal reads them with their priority
//! (sd-daemon(3)).

use std::io::Write;

/// Reports a problem.
pub fn warning(text: &str) {
    say(4, text);
}

/// Reports an event.
pub fn info(text: &str) {
    say(6, text);
}

/// Writes a message; a missing reader is no error.
fn say(priority: u8, text: &str) {
    let lines: Vec<_> = text.lines().map(|line| format!("<{priority}>{line}\n")).collect();
    let _ = std::io::stderr().write_all(lines.concat().as_bytes());
}
