// SPDX-License-Identifier: GPL-2.0
//! Hints where a number has no unit and one was probably meant.
//!
//! The rule: a time or a size of memory below 10,000, without a unit, is read as it stands, and
//! reported. No deadline is shorter than 10 µs, and few processes have less than 10 kB.

use pbs_text::reader::read;
use pbs_text::{span, Problem, Quantity};
use toml::de::{DeTable, DeValue};

use crate::output::{report, Output};

/// The least number without a unit that is taken for what was meant.
const LEAST: u64 = 10_000;

/// Keys that can hold small numbers for good reasons.
const SMALL: [&str; 5] = ["tick_ns", "latency_ns", "transfer_ns", "bytes", "lease_ns"];

/// Hint for a time on the command line, where `text` stands for `time_ns`.
pub(crate) fn unit_hint(text: &str, time_ns: u64) -> Option<String> {
    let has_unit = text.contains(|c: char| c.is_alphabetic());
    (!has_unit && (1..LEAST).contains(&time_ns))
        .then(|| format!("{text} is {time_ns} ns; write {text}s for seconds, or {text}ns"))
}

/// Reports numbers in the text of a file for which a unit was probably meant. Programs, which read
/// JSON, get no hints.
pub(crate) fn report_hints(out: Output, text: &str, file: &str) {
    if out.json {
        return;
    }
    for hint in hints(text) {
        report(&format!("hint: {}", hint.in_file(file)));
    }
}

/// The first such number of each key.
fn hints(text: &str) -> Vec<Problem> {
    let found = read(text, |reader, document| {
        let mut found: Vec<(String, Problem)> = Vec::new();
        walk(document, &mut |key, number, offset| {
            let hint = hint(key, number);
            let is_new = found.iter().all(|(known, _)| known != key);
            if let Some(hint) = hint.filter(|_| is_new) {
                found.push((key.into(), Problem::at(reader.line(offset), hint)));
            }
        });
        found
    });
    // Its reader refuses a file that is not TOML.
    found.unwrap_or_default().into_iter().map(|(_, hint)| hint).collect()
}

fn hint(key: &str, number: u64) -> Option<String> {
    if SMALL.contains(&key) || !(1..LEAST).contains(&number) {
        return None;
    }
    match Quantity::of_key(key)? {
        Quantity::Ns => Some(format!(
            "{key} = {number} is {}; write {key} = \"{number}s\" if seconds were meant, or \
             \"{number}ns\"",
            span(number)
        )),
        Quantity::Bytes => Some(format!(
            "{key} = {number} is {number} bytes; write {key} = \"{number}MiB\" if mebibytes were \
             meant, or \"{number}B\""
        )),
        Quantity::Insns | Quantity::Permille => None,
    }
}

/// Calls `note` for each number below a table: its key, its value and its place.
fn walk(table: &DeTable<'_>, note: &mut impl FnMut(&str, u64, usize)) {
    for (key, value) in table.iter() {
        match value.get_ref() {
            DeValue::Integer(number) => {
                if let Ok(known) = u64::from_str_radix(number.as_str(), number.radix()) {
                    note(key.get_ref(), known, value.span().start);
                }
            }
            DeValue::Table(below) => walk(below, note),
            DeValue::Array(items) => {
                for item in items.iter().filter_map(|item| item.get_ref().as_table()) {
                    walk(item, note);
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_number_without_a_unit_is_reported_once_for_each_key() {
        let text = "deadline_ns = 3\npriority = 5\n[[process]]\nmemory_bytes = 512\n\
                    runtime_ns = 10_000\ntasks = [{ insns = 5, memory_bytes = 64 }]\n\
                    [[link]]\nlatency_ns = 5\n";
        let hints: Vec<_> = hints(text).iter().map(|hint| hint.in_file("a").to_string()).collect();
        assert_eq!(hints.len(), 2, "{hints:?}");
        assert_eq!(
            hints[0],
            "a:1: deadline_ns = 3 is 3 ns; write deadline_ns = \"3s\" if seconds were meant, or \
             \"3ns\""
        );
        assert!(hints[1].starts_with("a:4: memory_bytes = 512 is 512 bytes; write"), "{hints:?}");
    }

    #[test]
    fn a_unit_or_a_zero_is_what_was_meant() {
        assert_eq!(hints("deadline_ns = \"3ns\"\nstart_ns = 0\nmemory_bytes = 10_000\n"), []);
        assert_eq!(hints("deadline_ns = "), []);
        assert_eq!((unit_hint("3ns", 3), unit_hint("0", 0)), (None, None));
        assert_eq!(unit_hint("3", 3).unwrap(), "3 is 3 ns; write 3s for seconds, or 3ns");
    }
}
