// SPDX-License-Identifier: GPL-2.0
//! Amounts of countable resources that a job or a process names, from TOML and to it.

use pbs_text::reader::{Reader, Value};
use pbs_text::{append_line, between, quoted, underscored, Line};
use toml::de::DeValue;

use crate::{Amount, MAX_AMOUNT, MAX_NAME_BYTES, MAX_RESOURCES};

const WRITE: &str =
    "write each resource of the machine with its amount: resources = { matlab = 1 }";

/// Reads the amounts below the key `resources`.
pub(crate) fn read_amounts(reader: &mut Reader, line: Line, value: &Value<'_>) -> Vec<Amount> {
    let DeValue::Table(entries) = value.get_ref() else {
        reader.problem(line, format!("resources is no table; {WRITE}"));
        return Vec::new();
    };
    if entries.len() > MAX_RESOURCES {
        let message = format!(
            "resources names {} resources, and at most {MAX_RESOURCES} are allowed; name fewer",
            entries.len()
        );
        reader.problem(line, message);
        return Vec::new();
    }
    let amounts = entries.iter().filter_map(|(name, value)| {
        let name: &str = name.get_ref();
        let line = reader.line_of(value);
        if let Some(fault) = resource_name_fault(name) {
            reader.problem(line, fault);
            return None;
        }
        let what = format!("resource {name}: the amount");
        let count = reader.number_in(line, &what, value, 1..=MAX_AMOUNT)?;
        Some(Amount { resource: name.into(), count })
    });
    amounts.collect()
}

/// Writes the amounts as [`read_amounts`] reads them.
pub(crate) fn write_amounts(out: &mut String, amounts: &[Amount]) {
    if amounts.is_empty() {
        return;
    }
    let pairs = amounts
        .iter()
        .map(|amount| format!("{} = {}", quoted(&amount.resource), underscored(amount.count)));
    append_line!(out, "resources = {{ {} }}", pairs.collect::<Vec<_>>().join(", "));
}

/// Returns the fault of the amounts of a job or a process: a file has each name once, a draft may
/// not.
pub(crate) fn amounts_fault(amounts: &[Amount]) -> Option<String> {
    if amounts.len() > MAX_RESOURCES {
        return Some(format!("at most {MAX_RESOURCES} resources are allowed; name fewer"));
    }
    amounts.iter().enumerate().find_map(|(place, amount)| {
        let name = &amount.resource;
        if let Some(fault) = resource_name_fault(name) {
            return Some(fault);
        }
        if !(1..=MAX_AMOUNT).contains(&amount.count) {
            let (count, range) = (underscored(amount.count), between(1, MAX_AMOUNT));
            return Some(format!("resource {name}: the amount is {count}; it must be {range}"));
        }
        let is_twice = amounts[..place].iter().any(|other| other.resource == *name);
        is_twice.then(|| format!("resource {name} is named twice; write its amount once"))
    })
}

/// Returns the fault of the name of a resource.
pub(crate) fn resource_name_fault(name: &str) -> Option<String> {
    if name.len() > MAX_NAME_BYTES {
        return Some(format!(
            "the name of a resource has {} bytes, and at most {MAX_NAME_BYTES} are allowed; choose \
             a shorter one",
            name.len()
        ));
    }
    let is_printable = !name.is_empty() && !name.contains(char::is_control);
    (!is_printable).then(|| format!("resource name {name:?} cannot be printed; choose another"))
}
