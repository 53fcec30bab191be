// SPDX-License-Identifier: GPL-2.0
//! What the service has to say, on standard error, where the journal reads it with its
//! priority (sd-daemon(3)).

use std::io::Write;

/// Something went another way than it should.
pub fn warning(text: &str) {
    say(4, text);
}

/// What happened.
pub fn info(text: &str) {
    say(6, text);
}

/// Nobody may be there to read it.
fn say(priority: u8, text: &str) {
    let lines: Vec<_> = text.lines().map(|line| format!("<{priority}>{line}\n")).collect();
    let _ = std::io::stderr().write_all(lines.concat().as_bytes());
}
