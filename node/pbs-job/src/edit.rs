// SPDX-License-Identifier: GPL-2.0
//! Another value of a job file, with all else as somebody wrote it.

use std::ops::Range;

use toml::de::DeTable;

/// The file of a job with other values, written as in TOML, of keys that stand in front
/// of its first table.
///
/// A key that the file has keeps its place, so that lines in messages are those of the
/// file as long as the value before was on one line; others come first, in that order.
/// What is no TOML remains as it is: the check of the job says why.
pub fn with_values(text: &str, values: &[(&str, String)]) -> String {
    let Ok(document) = DeTable::parse(text) else {
        return text.into();
    };
    let mut places: Vec<(Range<usize>, &str)> = Vec::new();
    let mut out = String::new();
    for (key, value) in values {
        match place(text, document.get_ref(), key) {
            Some(place) => places.push((place, value)),
            None => out += &format!("{key} = {value}\n"),
        }
    }
    places.sort_by_key(|(place, _)| place.start);
    let mut from = 0;
    for (place, value) in places {
        out += &text[from..place.start];
        out += value;
        from = place.end;
    }
    out + &text[from..]
}

/// Returns the place of the key's value. `None`: there is none, or it is a table whose header is
/// the key, which no job has.
fn place(text: &str, document: &DeTable<'_>, key: &str) -> Option<Range<usize>> {
    let (name, value) = document.get_key_value(key)?;
    let place = value.span();
    let between = text.get(name.span().end..place.start)?;
    (between.trim() == "=").then_some(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(text: &str) -> String {
        with_values(text, &[("deadline_ns", "5".into()), ("cpus", "[1, 2]".into())])
    }

    #[test]
    fn what_is_not_there_comes_first() {
        let job = "name = \"a\"\n[[process]]\ncpus = 7\ndeadline_ns = 8\n";
        assert_eq!(with(job), format!("deadline_ns = 5\ncpus = [1, 2]\n{job}"));
        assert_eq!(with(""), "deadline_ns = 5\ncpus = [1, 2]\n");
    }

    #[test]
    fn what_is_there_keeps_its_place() {
        let job = "cpus = [ 0, # the first\n  3 ] # two\nname = \"cpus = [4]\"\n\
                   \"deadline_ns\"=\"2s\"\n[[process]]\nid = 1\ncpus = [5]\n";
        let with_both = "cpus = [1, 2] # two\nname = \"cpus = [4]\"\n\
                         \"deadline_ns\"=5\n[[process]]\nid = 1\ncpus = [5]\n";
        assert_eq!(with(job), with_both);
        assert_eq!(with(with_both), with_both);
        // Without a newline at the end, and with those of others.
        assert_eq!(with("cpus = 0\r\ndeadline_ns = 1"), "cpus = [1, 2]\r\ndeadline_ns = 5");
    }

    #[test]
    fn a_list_and_a_string_over_lines_are_replaced() {
        let job = "name = \"\"\"\n[a]\ncpus = [9]\n\"\"\"\ndeadline_ns = \"\"\"\n2s\"\"\"\n\
                   cpus = [\n    # [[none]]\n    0,\n    1,\n]\n\n[[process]]\nid = 1\n";
        let with_both =
            "name = \"\"\"\n[a]\ncpus = [9]\n\"\"\"\ndeadline_ns = 5\ncpus = [1, 2]\n\n\
                         [[process]]\nid = 1\n";
        assert_eq!(with(job), with_both);
    }

    #[test]
    fn what_no_job_has_is_left_to_its_check() {
        assert_eq!(with("name = \n"), "name = \n");
        for odd in ["[cpus]\na = 1\n", "[[cpus]]\n", "cpus.a = 1\n"] {
            let job = format!("deadline_ns = 1\n{odd}");
            let with_both = format!("cpus = [1, 2]\ndeadline_ns = 5\n{odd}");
            assert_eq!(with(&job), with_both);
            assert!(crate::job_from_toml(&with_both).is_err());
        }
    }
}
