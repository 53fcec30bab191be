// SPDX-License-Identifier: GPL-2.0
//! Numbers, strings and lists as they are written in TOML.

use crate::{append, append_line};

/// Lists are wrapped at this column.
const WIDTH: usize = 80;

/// `key = [items]`, on one line if they fit, else wrapped or one a line.
pub fn write_list(
    out: &mut String,
    key: &str,
    items: impl Iterator<Item = String>,
    one_a_line: bool,
) {
    let items: Vec<_> = items.collect();
    let length: usize = items.iter().map(|item| item.len() + 2).sum();
    if key.len() + " = []".len() + length <= WIDTH {
        append_line!(out, "{key} = [{}]", items.join(", "));
        return;
    }
    append!(out, "{key} = [");
    let mut column = WIDTH;
    for item in &items {
        if one_a_line || column + item.len() + 2 > WIDTH {
            out.push_str("\n    ");
            column = 4;
        } else {
            out.push(' ');
            column += 1;
        }
        append!(out, "{item},");
        column += item.len() + 1;
    }
    out.push_str("\n]\n");
}

/// `20000000` as `20_000_000`, as numbers are written in plans.
pub fn underscored(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            out.push('_');
        }
        out.push(digit);
    }
    out
}

/// A range of numbers in words, as they can be written in a plan.
pub fn between(least: u64, most: u64) -> String {
    format!("between {} and {}", underscored(least), underscored(most))
}

/// A TOML basic string.
pub fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => {
                append!(out, "\\u{:04X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out + "\""
}

/// Text as it may stand in XML and HTML.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            // No XML can hold them.
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
