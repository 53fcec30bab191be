// SPDX-License-Identifier: GPL-2.0
//! JSON in the place of TOML: plans, jobs and machines that a program writes.
//!
//! The JSON becomes TOML before it is read, with each value in the line that it had. There is
//! therefore one reader, and its messages name lines of the file.

use std::num::NonZeroU32;

use serde_json::Value;
use toml::de::{DeTable, DeValue};

use crate::{append, Problem};

/// Whether a text is a JSON object, as its first character says.
pub fn is_json(text: &str) -> bool {
    text.trim_start().starts_with('{')
}

/// A JSON object as TOML. Each value keeps its line, unless several keys of the object itself
/// are on one line.
///
/// # Errors
///
/// The text is no JSON object, or has `null`, which TOML does not have.
pub fn toml_of_json(text: &str) -> Result<String, Problem> {
    if let Err(error) = serde_json::from_str::<Value>(text) {
        let line = u32::try_from(error.line()).ok().and_then(NonZeroU32::new);
        return Err(Problem::at(line, format!("this is no JSON: {error}")));
    }
    if !is_json(text) {
        return Err(Problem::at(None, "this is no JSON object; write { \"key\": value, ... }"));
    }
    let mut scan = Scan { rest: text, out: String::new(), depth: 0, line: 1, held_lines: 0 };
    scan.document()?;
    Ok(scan.out)
}

/// The values of a TOML document as JSON; `None`: it is no TOML.
pub fn json_of_toml(text: &str) -> Option<Value> {
    let document = DeTable::parse(text).ok()?;
    of_table(document.get_ref())
}

fn of_table(table: &DeTable<'_>) -> Option<Value> {
    let entries = table
        .iter()
        .map(|(key, value)| Some((key.get_ref().to_string(), of_value(value.get_ref())?)));
    entries.collect::<Option<serde_json::Map<_, _>>>().map(Value::Object)
}

fn of_value(value: &DeValue<'_>) -> Option<Value> {
    Some(match value {
        DeValue::String(text) => Value::String(text.to_string()),
        DeValue::Integer(number) => {
            let (text, radix) = (number.as_str(), number.radix());
            match i64::from_str_radix(text, radix) {
                Ok(number) => number.into(),
                Err(_) => u64::from_str_radix(text, radix).ok()?.into(),
            }
        }
        DeValue::Float(number) => number.as_str().parse::<f64>().ok()?.into(),
        DeValue::Boolean(is) => (*is).into(),
        DeValue::Datetime(time) => time.to_string().into(),
        DeValue::Array(items) => {
            let items = items.iter().map(|item| of_value(item.get_ref()));
            Value::Array(items.collect::<Option<_>>()?)
        }
        DeValue::Table(table) => of_table(table)?,
    })
}

/// Rewriting of a valid JSON text.
struct Scan<'a> {
    rest: &'a str,
    out: String,
    /// Number of brackets that are open.
    depth: usize,
    line: u32,
    /// Line feeds between a key and its value, where TOML allows none.
    held_lines: usize,
}

impl Scan<'_> {
    fn document(&mut self) -> Result<(), Problem> {
        // Between a key and its value.
        let mut is_held = false;
        while let Some(first) = self.rest.chars().next() {
            match first {
                '"' => {
                    self.string();
                    let is_key = self.rest.trim_start().starts_with(':');
                    is_held = is_key;
                    self.flush(is_held);
                }
                ':' if self.rest[1..].starts_with([' ', '\n']) => self.replace(1, " ="),
                ':' => self.replace(1, " = "),
                '\n' if is_held => {
                    self.held_lines += 1;
                    self.replace(1, "");
                    self.line += 1;
                }
                '\n' => {
                    self.replace(1, "\n");
                    self.line += 1;
                }
                first if first.is_whitespace() => self.replace(1, " "),
                '{' | '[' => {
                    self.depth += 1;
                    self.replace(1, if self.depth == 1 { "" } else { &self.rest[..1] });
                    is_held = false;
                    self.flush(is_held);
                }
                '}' | ']' => {
                    self.depth -= 1;
                    self.replace(1, if self.depth == 0 { "" } else { &self.rest[..1] });
                }
                ',' => {
                    let after = self.rest[1..].trim_start_matches([' ', '\t', '\r']);
                    let is_last_of_line = after.starts_with('\n');
                    let comma = match (self.depth, is_last_of_line) {
                        (1, true) => "",
                        (1, false) => "\n",
                        _ => ",",
                    };
                    self.replace(1, comma);
                }
                _ => {
                    self.scalar()?;
                    is_held = false;
                    self.flush(is_held);
                }
            }
        }
        Ok(())
    }

    /// Writes the line feeds that were held, after the value.
    fn flush(&mut self, is_held: bool) {
        if !is_held {
            let held_lines = std::mem::take(&mut self.held_lines);
            self.out.extend(std::iter::repeat_n('\n', held_lines));
        }
    }

    fn replace(&mut self, bytes: usize, by: &str) {
        self.out.push_str(by);
        self.rest = &self.rest[bytes..];
    }

    /// A number, `true` or `false`, which are the same in TOML.
    fn scalar(&mut self) -> Result<(), Problem> {
        let end = self.rest.find([',', '}', ']', ' ', '\t', '\r', '\n']);
        let end = end.unwrap_or(self.rest.len());
        let text = &self.rest[..end];
        if text == "null" {
            let message = "null is no value here; leave the key out";
            return Err(Problem::at(NonZeroU32::new(self.line), message));
        }
        self.out.push_str(text);
        self.rest = &self.rest[end..];
        Ok(())
    }

    /// A string; few escapes differ.
    fn string(&mut self) {
        let mut end = 1;
        let bytes = self.rest.as_bytes();
        while bytes[end] != b'"' {
            end += if bytes[end] == b'\\' { 2 } else { 1 };
        }
        // The text was valid JSON before.
        let text = serde_json::from_str::<String>(&self.rest[..=end]).unwrap_or_default();
        self.out.push('"');
        for char in text.chars() {
            match char {
                '"' | '\\' => self.out.extend(['\\', char]),
                char if char.is_control() => {
                    append!(self.out, "\\u{:04X}", u32::from(char));
                }
                char => self.out.push(char),
            }
        }
        self.out.push('"');
        self.rest = &self.rest[end + 1..];
    }
}

#[cfg(test)]
mod tests {
    use pbs_random::Random;
    use serde_json::json;

    use super::*;

    fn back(value: &Value, text: &str) {
        let toml = toml_of_json(text).unwrap_or_else(|problem| panic!("{text}: {problem:?}"));
        assert_eq!(json_of_toml(&toml).as_ref(), Some(value), "{text}\n{toml}");
    }

    #[test]
    fn every_value_keeps_what_it_is_and_where_it_is() {
        let text = "{\n \"a\": 1, \"b\" :\n -2.5e3,\n \"c\": [\n {\"d\": true,\n \"e\": \"\\/\\ud83d\\ude00\"\n}],\
                    \"f\": {\n\"g\":\n[]}\n}\n";
        let value = json!({
            "a": 1, "b": -2500.0, "c": [{ "d": true, "e": "/😀" }], "f": { "g": [] }
        });
        back(&value, text);
        let pretty = serde_json::to_string_pretty(&value).unwrap();
        let toml = toml_of_json(&pretty).unwrap();
        let line = |text: &str, words: &str| text.lines().position(|line| line.contains(words));
        for words in ["\"a\"", "\"d\"", "\"g\""] {
            assert_eq!(line(&toml, words), line(&pretty, words), "{toml}");
        }
    }

    #[test]
    fn what_is_no_object_of_values_is_told_with_its_line() {
        for (text, line, words) in [
            ("{\n\"a\": }", Some(2), "this is no JSON"),
            ("{ \"a\": 1", Some(1), "this is no JSON"),
            ("[1]", None, "no JSON object"),
            ("{\n\"a\": [\nnull]}", Some(3), "null is no value here"),
        ] {
            let problem = toml_of_json(text).unwrap_err();
            assert_eq!(problem.line.map(NonZeroU32::get), line, "{text}");
            assert!(problem.message.contains(words), "{}", problem.message);
        }
    }

    /// Values without a pattern.
    struct Values(Random);

    impl Values {
        fn below(&mut self, end: u64) -> u64 {
            self.0.below(end)
        }

        fn text(&mut self) -> String {
            let chars = ['a', '"', '\\', '\n', '\u{7f}', '😀', ' ', ':', '{', ',', '\u{1}', '/'];
            (0..self.below(6)).map(|_| chars[self.below(12) as usize]).collect()
        }

        fn value(&mut self, depth: u64) -> Value {
            match self.below(if depth == 0 { 4 } else { 6 }) {
                0 => self.text().into(),
                1 => (self.below(u64::MAX) as i64).into(),
                2 => (self.below(2) == 0).into(),
                3 => (self.below(1000) as f64 / 8.0).into(),
                4 => (0..self.below(4)).map(|_| self.value(depth - 1)).collect(),
                _ => self.object(depth - 1),
            }
        }

        fn object(&mut self, depth: u64) -> Value {
            let entries = (0..self.below(5)).map(|_| (self.text(), self.value(depth)));
            Value::Object(entries.collect())
        }
    }

    #[test]
    fn random_values_survive_the_way_to_toml_and_back() {
        let mut random = Values(Random::new(1));
        for _ in 0..2000 {
            let value = random.object(4);
            back(&value, &value.to_string());
            back(&value, &serde_json::to_string_pretty(&value).unwrap());
        }
    }
}
