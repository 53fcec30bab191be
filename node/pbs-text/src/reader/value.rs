// SPDX-License-Identifier: GPL-2.0
//! Values of one kind, and what is said where they are of another.

use std::collections::HashMap;
use std::ops::RangeInclusive;

use toml::de::{DeInteger, DeTable, DeValue};

use super::{Reader, Table, Value};
use crate::{between, underscored, Line, Quantity};

impl Reader {
    /// The tables of an array of tables.
    pub fn tables<'a, 'i>(
        &mut self,
        top: &mut Table<'a, 'i>,
        key: &'static str,
    ) -> Vec<(Line, &'a Value<'i>)> {
        match top.entries.remove(key) {
            None => Vec::new(),
            Some((line, value)) => match value.get_ref() {
                DeValue::Array(items) => {
                    items.iter().map(|item| (self.line_of(item), item)).collect()
                }
                _ => {
                    self.problem(
                        line,
                        format!("{key} must be a list of tables; write [[{key}]] in two brackets"),
                    );
                    Vec::new()
                }
            },
        }
    }

    /// A value that must be a table with some of those keys.
    pub fn table<'a, 'i>(
        &mut self,
        line: Line,
        value: &'a Value<'i>,
        what: &'static str,
        keys: &[&str],
    ) -> Option<Table<'a, 'i>> {
        match value.get_ref() {
            DeValue::Table(table) => Some(self.open(table, what, line, keys)),
            _ => {
                self.problem(line, format!("{what} must be a table with keys and values"));
                None
            }
        }
    }

    /// A table; keys other than those are problems.
    pub fn open<'a, 'i>(
        &mut self,
        table: &'a DeTable<'i>,
        what: &'static str,
        line: Line,
        keys: &[&str],
    ) -> Table<'a, 'i> {
        let mut entries = HashMap::new();
        for (key, value) in table.iter() {
            let line = self.line(key.span().start);
            let name: &str = key.get_ref();
            if keys.contains(&name) {
                entries.insert(name, (line, value));
                continue;
            }
            let instead = instead(name, "it can have", keys);
            self.problem(line, format!("{what} has no key {name}; {instead}"));
        }
        Table { entries, line }
    }

    /// A number that fits into its type.
    pub fn number<T: TryFrom<u64>>(
        &mut self,
        line: Line,
        what: &str,
        value: &Value<'_>,
    ) -> Option<T> {
        let most = u64::MAX >> (64 - 8 * size_of::<T>());
        self.number_in(line, what, value, 0..=most)
    }

    /// A number of instructions of a slot or task.
    pub fn insns(
        &mut self,
        line: Line,
        what: &str,
        value: &Value<'_>,
        range: RangeInclusive<u64>,
    ) -> Option<u64> {
        self.quantity_in(line, what, Some(Quantity::Insns), value, range)
    }

    /// A time in nanoseconds, with a unit or without, under a key that does not say so.
    pub fn ns(&mut self, line: Line, what: &str, value: &Value<'_>) -> Option<u64> {
        self.quantity_in(line, what, Some(Quantity::Ns), value, 0..=u64::MAX)
    }

    /// A number, or text with a unit if the end of `what` says what it measures. `range`
    /// is what is told where it does not fit into its type;
    /// whether others are in it is for `check`, which can say more.
    pub fn number_in<T: TryFrom<u64>>(
        &mut self,
        line: Line,
        what: &str,
        value: &Value<'_>,
        range: RangeInclusive<u64>,
    ) -> Option<T> {
        self.quantity_in(line, what, Quantity::of_key(what), value, range)
    }

    fn quantity_in<T: TryFrom<u64>>(
        &mut self,
        line: Line,
        what: &str,
        quantity: Option<Quantity>,
        value: &Value<'_>,
        range: RangeInclusive<u64>,
    ) -> Option<T> {
        // Only what has a unit needs quotes.
        let has_unit = |text: &str| text.contains(|c: char| !c.is_ascii_digit() && c != '_');
        let number = match value.get_ref() {
            DeValue::Integer(number) => u64::from_str_radix(number.as_str(), number.radix()).ok(),
            DeValue::Float(number) => {
                let instead = whole(what, number.as_str());
                self.problem(line, format!("{what} must be a whole number; {instead}"));
                return None;
            }
            DeValue::String(text) if quantity.is_some() && has_unit(text) => {
                let parsed = quantity.map(|quantity| quantity.parse(text));
                match parsed.unwrap_or(Ok(0)) {
                    Ok(number) => Some(number),
                    Err(words) => {
                        self.problem(line, format!("{what}: {words}"));
                        return None;
                    }
                }
            }
            other => {
                let message = no_number(what, quantity, other, range);
                self.problem(line, message);
                return None;
            }
        };
        let number = number.and_then(|number| T::try_from(number).ok());
        if number.is_none() {
            let written = match value.get_ref() {
                DeValue::Integer(number) => written(number),
                DeValue::String(text) => format!("\"{text}\""),
                _ => "no number".into(),
            };
            let range = between(*range.start(), *range.end());
            self.problem(line, format!("{what} is {written}; it must be {range}"));
        }
        number
    }

    /// A string that is not empty.
    pub fn string(&mut self, line: Line, what: &str, value: &Value<'_>) -> Option<String> {
        match value.get_ref() {
            DeValue::String(text) if !text.is_empty() && !text.contains('\0') => {
                Some(text.to_string())
            }
            DeValue::String(_) => {
                self.problem(line, format!("{what} is empty or holds a NUL character"));
                None
            }
            _ => {
                self.problem(line, format!("{what} must be a string; put it in quotes"));
                None
            }
        }
    }

    /// True or false.
    pub fn flag(&mut self, line: Line, what: &str, value: &Value<'_>) -> Option<bool> {
        match value.get_ref() {
            DeValue::Boolean(flag) => Some(*flag),
            _ => {
                self.problem(line, format!("{what} must be true or false, without quotes"));
                None
            }
        }
    }

    /// Returns the index of `name` among `names`.
    pub fn one_of(&mut self, line: Line, what: &str, name: &str, names: &[&str]) -> Option<usize> {
        let found = names.iter().position(|&known| known == name);
        if found.is_none() {
            let instead = instead(name, "it can be", names);
            self.problem(line, format!("there is no {what} {name}; {instead}"));
        }
        found
    }
}

/// An integer for people, also one that fits into no type.
fn written(number: &DeInteger<'_>) -> String {
    let Ok(number) = i128::from_str_radix(number.as_str(), number.radix()) else {
        return "too large".into();
    };
    let sign = if number < 0 { "-" } else { "" };
    let amount = number.unsigned_abs();
    let amount = u64::try_from(amount).map_or_else(|_| amount.to_string(), underscored);
    format!("{sign}{amount}")
}

/// Describes what to write instead of a value that is no number.
fn no_number(
    what: &str,
    quantity: Option<Quantity>,
    value: &DeValue<'_>,
    range: RangeInclusive<u64>,
) -> String {
    let example = example(quantity, &range);
    let DeValue::String(text) = value else {
        let kind = match value {
            DeValue::Boolean(_) => "true or false",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
            _ => "a time",
        };
        return format!("{what} must be a number, and not {kind}; write {example}");
    };
    let is_number = text.starts_with(|first: char| first.is_ascii_digit())
        && text.chars().all(|c| c.is_ascii_digit() || c == '_');
    let text = crate::shown(text);
    match quantity {
        _ if !is_number => {
            format!(
                "{what} must be a number, and not \"{text}\"; write it without quotes: {example}"
            )
        }
        Some(quantity) => {
            let unit = quantity.usual_unit();
            format!(
                "{what} is \"{text}\", which has no unit; write \"{text}{unit}\", or {text} \
                 without quotes"
            )
        }
        None => format!("{what} is \"{text}\"; write {text} without quotes"),
    }
}

/// A number that is in most ranges; a count is mostly small.
fn example(quantity: Option<Quantity>, range: &RangeInclusive<u64>) -> String {
    let usual = if quantity.is_some() { 20_000_000 } else { 1 };
    underscored(if range.contains(&usual) { usual } else { *range.start() })
}

/// Describes what to write instead of a number with a point or exponent.
fn whole(what: &str, text: &str) -> String {
    let number: f64 = text.replace('_', "").parse().unwrap_or(f64::NAN);
    // 1.05 is a factor, 1050.0 has been reckoned already.
    let thousandths = what.ends_with("_permille") && number < 100.0;
    let scaled = if thousandths { number * 1000.0 } else { number };
    let meant = scaled.round();
    // Up to here a float holds every whole number.
    if (scaled - meant).abs() < 1e-6 && (0.0..9e15).contains(&meant) {
        let unit = if thousandths { "it is in thousandths: " } else { "" };
        return format!("{unit}write {}", underscored(meant as u64));
    }
    "write it without point and exponent: 20_000_000".into()
}

/// Describes what to write instead of a name that is none of `names`.
fn instead(name: &str, it_can: &str, names: &[&str]) -> String {
    match closest(name, names.iter().copied()) {
        Some(close) => format!("did you mean {close}?"),
        None => format!("{it_can} {}", names.join(", ")),
    }
}

/// The longest name that is compared with others, in bytes: the work of a comparison grows with
/// the product of both lengths, and nobody mistypes a longer one.
const MOST_COMPARED_BYTES: usize = 64;

/// The candidate that was probably meant. A long name is taken for none of them.
pub fn closest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if name.len() > MOST_COMPARED_BYTES {
        return None;
    }
    candidates
        .filter(|candidate| candidate.len() <= MOST_COMPARED_BYTES)
        .map(|candidate| {
            let prefix = candidate.len() > 2
                && name.len() > 2
                && (candidate.starts_with(name) || name.starts_with(candidate));
            (if prefix { 1 } else { distance(name, candidate) }, candidate)
        })
        .filter(|&(distance, candidate)| 2 * distance <= candidate.len())
        .min()
        .map(|(_, candidate)| candidate)
}

/// Returns the number of letters that differ (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<_> = b.chars().collect();
    let mut row: Vec<_> = (0..=b.len()).collect();
    for (i, a) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, &b) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
