// SPDX-License-Identifier: GPL-2.0
//! Messages of the service on standard error. Where that is the journal, a message begins with its
//! priority (sd-daemon(3)); on a terminal and in a file it has none.
//!
//! A message is one line. Words of users in it can neither begin another line, which would have
//! a priority of their choice, nor change how the line is shown.

use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::sync::OnceLock;

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
    static IS_JOURNAL: OnceLock<bool> = OnceLock::new();
    let is_journal = *IS_JOURNAL.get_or_init(|| {
        let stream = std::env::var("JOURNAL_STREAM");
        stream.is_ok_and(|stream| is_file(&stream, "/dev/stderr"))
    });
    let mut stderr = std::io::stderr();
    let priority = is_journal.then_some(priority);
    // Nobody is left to be told if the journal is gone.
    let _ = stderr.write_all(line(priority, text).as_bytes());
}

/// Whether `stream`, the device and the inode of the journal (systemd.exec(5)), is that file.
fn is_file(stream: &str, file: &str) -> bool {
    fs::metadata(file).is_ok_and(|file| stream == format!("{}:{}", file.dev(), file.ino()))
}

fn line(priority: Option<u8>, text: &str) -> String {
    let priority = priority.map_or_else(String::new, |priority| format!("<{priority}>"));
    format!("{priority}{}\n", shown(text))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::MetadataExt;

    /// A service on a terminal, or with its messages in a file, may have inherited the variable of
    /// another one.
    #[test]
    fn only_the_journal_reads_priorities() {
        let known = fs::metadata("/proc/self/exe").unwrap();
        let stream = format!("{}:{}", known.dev(), known.ino());
        assert!(super::is_file(&stream, "/proc/self/exe"));
        assert!(!super::is_file(&stream, "/dev/null"));
        assert!(!super::is_file("", "/proc/self/exe"));
        assert!(!super::is_file(&stream, "/no/such/file"));
    }

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
