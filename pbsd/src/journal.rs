// SPDX-License-Identifier: GPL-2.0
//! Messages of the service on standard error, where the journal reads them with their priority
//! (sd-daemon(3)). On a terminal they have none.
//!
//! A message is one line. Words of users in it can neither begin another line, which would have
//! a priority of their choice, nor change how the line is shown.

use std::io::{IsTerminal, Write};

use pbs_text::shown;

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
    let mut stderr = std::io::stderr();
    let priority = (!stderr.is_terminal()).then_some(priority);
    // Nobody is left to be told if the journal is gone.
    let _ = stderr.write_all(line(priority, text).as_bytes());
}

fn line(priority: Option<u8>, text: &str) -> String {
    let priority = priority.map_or_else(String::new, |priority| format!("<{priority}>"));
    format!("{priority}{}\n", shown(text))
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_message_is_one_line() {
        let argument = "true\n<4>12 job backup is over: complete\r\u{1b}[2K\u{202e}";
        let text = format!("programs of the plan: {argument}: No such file or directory");
        let line = super::line(Some(6), &text);
        assert_eq!(super::line(None, "pbsd: ready"), "pbsd: ready\n");
        assert_eq!(line.matches('\n').count(), 1);
        assert_eq!(
            line,
            "<6>programs of the plan: true\\n<4>12 job backup is over: \
             complete\\r\\u001B[2K\\u202E: No such file or directory\n"
        );
    }
}
