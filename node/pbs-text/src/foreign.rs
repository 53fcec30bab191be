// SPDX-License-Identifier: GPL-2.0
//! Text of others, such as names and arguments, as it may be printed.
//!
//! A control character moves the cursor, clears the screen or begins another line. A control
//! character of bidirectional text changes the order in which the rest of the line is shown.
//! Either can forge what a person reads on a terminal or in a log.

use std::borrow::Cow;

use crate::append;

/// A text on one line: control characters and line separators are visible escapes, as in TOML
/// and JSON.
pub fn shown(text: &str) -> Cow<'_, str> {
    escape(text, is_hidden)
}

/// A text of several lines: line feeds and tabs stay.
pub fn shown_lines(text: &str) -> Cow<'_, str> {
    escape(text, |c| is_hidden(c) && !matches!(c, '\n' | '\t'))
}

/// Whether a character has an effect other than to be seen.
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(c, '\u{2066}'..='\u{2069}')
}

fn escape(text: &str, is_escaped: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_escaped) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '\n' if is_escaped(c) => out.push_str("\\n"),
            '\r' if is_escaped(c) => out.push_str("\\r"),
            '\t' if is_escaped(c) => out.push_str("\\t"),
            c if is_escaped(c) => {
                append!(out, "\\u{:04X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns;

    #[test]
    fn what_is_not_seen_is_escaped() {
        for (text, one_line) in [
            ("sort 12", "sort 12"),
            ("größer \u{4e2d}\u{5d0} \\n", "größer \u{4e2d}\u{5d0} \\n"),
            ("a\nb\rc\td", r"a\nb\rc\td"),
            ("\u{1b}[2J\u{7}\u{9b}0m\u{7f}\0", r"\u001B[2J\u0007\u009B0m\u007F\u0000"),
            ("a\u{202e}b\u{2066}c\u{2069}\u{200f}", r"a\u202Eb\u2066c\u2069\u200F"),
            ("a\u{2028}b\u{2029}c\u{85}\u{61c}", r"a\u2028b\u2029c\u0085\u061C"),
        ] {
            assert_eq!(shown(text), one_line);
        }
        assert_eq!(shown_lines("a\n\tb\r\u{1b}c"), "a\n\tb\\r\\u001Bc");
    }

    /// A cell does not make another row, nor does it change the width of others.
    #[test]
    fn a_cell_of_a_table_stays_in_its_place() {
        let rows = [["1", "a\n2  root", "x"], ["2", "\u{1b}[31mb\u{202e}", "y"]];
        let rows = rows.map(|row| row.map(String::from).to_vec());
        let table = columns(&rows, 3);
        assert_eq!(table, "1  a\\n2  root         x\n2  \\u001B[31mb\\u202E  y\n");
    }
}
