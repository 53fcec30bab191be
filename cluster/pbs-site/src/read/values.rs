// SPDX-License-Identifier: GPL-2.0
//! Values that only sites have.

use std::ops::RangeInclusive;
use std::str::FromStr;

use pbs_resources::{format_duration, parse_duration_s, parse_size_bytes, Error, Item, Value};
use pbs_text::reader::{Reader, Table, Value as TomlValue};
use pbs_text::Line;
use toml::de::DeValue;

use super::declared_names::DeclaredNames;
use super::names;
use crate::share::permille as parse_permille;
use crate::{Resource, Validity};

/// Largest absolute value that one number can add to a priority.
pub(super) const MAX_PRIORITY: i64 = 1_000_000_000;

/// A text that is read by something of its own.
pub(super) fn read_with<T>(
    reader: &mut Reader,
    line: Line,
    key: &str,
    value: &TomlValue<'_>,
    read: impl FnOnce(&str) -> Result<T, Error>,
) -> Option<T> {
    let text = reader.string(line, key, value)?;
    match read(&text) {
        Ok(result) => Some(result),
        Err(error) => {
            reader.problem(line, format!("{key}, {error}"));
            None
        }
    }
}

/// Reads a value of a type with a single notation, if the key is there.
pub(super) fn parsed<T: FromStr<Err = Error>>(
    reader: &mut Reader,
    table: &mut Table<'_, '_>,
    key: &str,
) -> Option<T> {
    let (line, value) = table.entries.remove(key)?;
    read_with(reader, line, key, value, T::from_str)
}

/// A whole number that the file has without quotes.
pub(super) fn plain(value: &TomlValue<'_>) -> Option<u64> {
    match value.get_ref() {
        DeValue::Integer(number) => u64::from_str_radix(number.as_str(), number.radix()).ok(),
        _ => None,
    }
}

/// Seconds of `"4d3h"`, or of a number.
pub(super) fn duration_s(
    reader: &mut Reader,
    table: &mut Table<'_, '_>,
    key: &'static str,
    range: RangeInclusive<u64>,
) -> Option<u64> {
    let (line, value) = table.entries.remove(key)?;
    let seconds = match plain(value) {
        Some(seconds) => seconds,
        None => read_with(reader, line, key, value, parse_duration_s)?,
    };
    if range.contains(&seconds) {
        return Some(seconds);
    }
    let (least, most) = (*range.start(), *range.end());
    let (least, most) = (format_duration(least), format_duration(most));
    reader.problem(line, format!("{key} must be between {least} and {most}"));
    None
}

/// Thousandths of `"10%"`.
pub(super) fn permille(
    reader: &mut Reader,
    table: &mut Table<'_, '_>,
    key: &'static str,
) -> Option<u64> {
    let (line, value) = table.entries.remove(key)?;
    let text = reader.string(line, key, value)?;
    let permille = parse_permille(&text);
    if permille.is_none() {
        reader.problem(line, format!("{key} is {text:?}; write a percentage up to 100%: \"10%\""));
    }
    permille
}

/// A number that may be negative.
pub(super) fn signed(
    reader: &mut Reader,
    line: Line,
    key: &str,
    value: &TomlValue<'_>,
    most: i64,
) -> Option<i64> {
    let number = match value.get_ref() {
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix()).ok(),
        _ => None,
    };
    let number = number.filter(|number| (-most..=most).contains(number));
    if number.is_none() {
        let message =
            format!("{key} must be a whole number from -{most} to {most}, without quotes");
        reader.problem(line, message);
    }
    number
}

/// A part of a priority; 0 if the key isn't there.
pub(super) fn priority(reader: &mut Reader, table: &mut Table<'_, '_>, key: &str) -> i64 {
    let Some((line, value)) = table.entries.remove(key) else {
        return 0;
    };
    signed(reader, line, key, value, MAX_PRIORITY).unwrap_or(0)
}

/// Reads a validity; always, if the key is missing.
pub(super) fn validity(
    reader: &mut Reader,
    table: &mut Table<'_, '_>,
    known: &DeclaredNames,
) -> Validity {
    let Some((line, value)) = table.entries.remove("validity") else {
        return Validity::Always;
    };
    let parse = |text: &str| Validity::parse(text, &known.zone);
    read_with(reader, line, "validity", value, parse).unwrap_or_default()
}

/// The entries of a table whose keys are names, in the order of the file.
pub(super) fn entries<'a, 'i>(
    reader: &mut Reader,
    line: Line,
    what: &str,
    value: &'a TomlValue<'i>,
) -> Vec<(Line, &'a str, &'a TomlValue<'i>)> {
    let DeValue::Table(table) = value.get_ref() else {
        let message = format!("{what} must be a table with names and values");
        reader.problem(line, message);
        return Vec::new();
    };
    let entries = table.iter().map(|(key, value)| {
        let name: &str = key.get_ref();
        (key.span().start, name, value)
    });
    let mut entries: Vec<_> = entries.collect();
    entries.sort_by_key(|&(start, ..)| start);
    let entries = entries.into_iter();
    entries.map(|(start, name, value)| (reader.line(start), name, value)).collect()
}

/// An amount, a word or a number that stands for one.
pub(super) fn value(
    reader: &mut Reader,
    line: Line,
    key: &str,
    value: &TomlValue<'_>,
) -> Option<Value> {
    if let Some(number) = plain(value) {
        return Some(Value::Amount(number));
    }
    let read = |text: &str| {
        let mut items =
            pbs_resources::parse_items(&format!("{key}={text}")).map_err(|mut error| {
                error.column = error.column.saturating_sub(key.chars().count() + 1).max(1);
                error
            })?;
        let message = "there must be one value".to_string();
        let item = items.pop().filter(|_| items.is_empty());
        let item = item.ok_or(Error { column: 1, message })?;
        Ok(item.value)
    };
    read_with(reader, line, key, value, read)
}

/// `defaults` or `force`: resources with values.
pub(super) fn items(
    reader: &mut Reader,
    table: &mut Table<'_, '_>,
    key: &str,
    resources: &[Resource],
) -> Vec<Item> {
    let Some((line, table)) = table.entries.remove(key) else {
        return Vec::new();
    };
    let mut items = Vec::new();
    for (line, name, toml) in entries(reader, line, key, table) {
        let Some(resource) = names::resource(reader, line, name, resources) else {
            continue;
        };
        let Some(value) = value(reader, line, name, toml) else {
            continue;
        };
        if let Some(wrong) = resource.fault(&value) {
            reader.problem(line, wrong);
            continue;
        }
        items.push(Item { resource: name.into(), value });
    }
    items
}

/// An amount, as a number or a text with a unit.
pub(super) fn amount(
    reader: &mut Reader,
    line: Line,
    key: &str,
    value: &TomlValue<'_>,
) -> Option<u64> {
    match plain(value) {
        Some(number) => Some(number),
        None => read_with(reader, line, key, value, parse_size_bytes),
    }
}

/// The texts of a list, if the key is there.
pub(super) fn texts(
    reader: &mut Reader,
    table: &mut Table<'_, '_>,
    key: &str,
    example: &str,
) -> Option<Vec<(Line, String)>> {
    let (line, value): (Line, &TomlValue<'_>) = table.entries.remove(key)?;
    let DeValue::Array(items) = value.get_ref() else {
        let message = format!("{key} must be a list of names; write {key} = [\"{example}\"]");
        reader.problem(line, message);
        return None;
    };
    let mut texts = Vec::new();
    for item in items.iter() {
        let line = reader.line_of(item);
        if let Some(text) = reader.string(line, key, item) {
            texts.push((line, text));
        }
    }
    Some(texts)
}
