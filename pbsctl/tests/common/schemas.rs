// SPDX-License-Identifier: GPL-2.0
//! JSON Schemas of the folder `schemas/`, and the check of a value by one of them.
//!
//! The check has the keywords that these schemas use.  It is for tests: a keyword that it does not
//! have, and a reference that leads nowhere, are a panic.

// No test needs all of it.
#![allow(dead_code)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use pbs_text::Quantity;
use serde_json::Value;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../schemas");
const ENDING: &str = ".schema.json";

/// The schemas by name.
#[derive(Debug)]
pub(crate) struct Schemas(BTreeMap<String, Value>);

/// Keys that a check accepts although a schema has no name for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unknown {
    /// New keys where the schema permits them, as a reader accepts them.
    AsPermitted,
    /// No keys: the writer of this version is checked.
    Refused,
}

/// One check: the document with the present schema, and the rule for unknown keys.
#[derive(Clone, Copy)]
struct Check<'a> {
    schemas: &'a Schemas,
    document: &'a Value,
    unknown: Unknown,
}

impl Schemas {
    /// Reads all files of the folder.
    ///
    /// # Panics
    ///
    /// Panics if a file cannot be read or is no JSON.
    pub(crate) fn read() -> Self {
        let entries = fs::read_dir(FOLDER).expect("the folder of schemas");
        let files = entries.map(|entry| entry.expect("an entry of the folder").path());
        let named = files.filter_map(|path| Some((name_of(&path)?, path)));
        Self(
            named
                .map(|(name, path)| {
                    let text = fs::read_to_string(&path).expect("a schema");
                    (name, serde_json::from_str(&text).expect("a schema in JSON"))
                })
                .collect(),
        )
    }

    /// Names of the schemas, in alphabetical order.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// The schema of that name.
    ///
    /// # Panics
    ///
    /// Panics if there is none.
    pub(crate) fn named(&self, name: &str) -> &Value {
        self.0.get(name).unwrap_or_else(|| panic!("there is no schema {name}"))
    }

    /// The first problem of a value under the schema of that name.
    pub(crate) fn problem(&self, name: &str, value: &Value) -> Option<String> {
        self.check(name, value, Unknown::AsPermitted)
    }

    /// The first problem of an answer of `pbsctl --json`, which names its schema itself.  A key
    /// without a name in the schema is a problem, too.
    pub(crate) fn answer_problem(&self, answer: &Value) -> Option<String> {
        let stamp = answer["schema"].as_str().unwrap_or_default();
        match stamp.split_once('/').filter(|(name, _)| self.0.contains_key(*name)) {
            Some((name, _)) => self.check(name, answer, Unknown::Refused),
            None => Some(format!("there is no schema of {stamp:?}: {answer}")),
        }
    }

    fn check(&self, name: &str, value: &Value, unknown: Unknown) -> Option<String> {
        let document = self.named(name);
        Check { schemas: self, document, unknown }.fault(document, value, name).err()
    }
}

fn name_of(path: &Path) -> Option<String> {
    path.file_name()?.to_str()?.strip_suffix(ENDING).map(str::to_owned)
}

impl<'a> Check<'a> {
    /// The schema that a reference names, with the document that has it.
    fn referred(self, reference: &str) -> (Self, &'a Value) {
        let (id, pointer) = reference.split_once('#').unwrap_or((reference, ""));
        let document = match id {
            "" => self.document,
            id => {
                let mut all = self.schemas.0.values();
                all.find(|it| it["$id"] == id).unwrap_or_else(|| panic!("no schema {id}"))
            }
        };
        let schema = document.pointer(pointer).unwrap_or_else(|| panic!("no {reference}"));
        (Self { document, ..self }, schema)
    }

    fn fault(self, schema: &'a Value, value: &Value, at: &str) -> Result<(), String> {
        for (keyword, rule) in schema.as_object().expect("an object") {
            match keyword.as_str() {
                "$schema" | "$id" | "$defs" | "title" | "description" | "default" => {}
                "$ref" => {
                    let (check, schema) = self.referred(rule.as_str().expect("a reference"));
                    check.fault(schema, value, at)?;
                }
                "anyOf" => {
                    let faults = rule.as_array().expect("schemas").iter();
                    let faults: Vec<_> =
                        faults.map(|schema| self.fault(schema, value, at)).collect();
                    if faults.iter().all(Result::is_err) {
                        return Err(format!("{at}: none of {faults:?}: {value}"));
                    }
                }
                "items" => {
                    for (number, item) in value.as_array().into_iter().flatten().enumerate() {
                        self.fault(rule, item, &format!("{at}/{number}"))?;
                    }
                }
                "properties" | "additionalProperties" => self.keys_fault(schema, value, at)?,
                _ => {
                    if let Some(words) = keyword_fault(keyword, rule, value) {
                        return Err(format!("{at}: {words}: {value}"));
                    }
                }
            }
        }
        Ok(())
    }

    /// The first problem of the keys of an object and of their values.
    fn keys_fault(self, schema: &'a Value, value: &Value, at: &str) -> Result<(), String> {
        let known = schema.get("properties");
        let others = &schema["additionalProperties"];
        for (key, part) in value.as_object().into_iter().flatten() {
            let at_key = format!("{at}/{key}");
            match (known.and_then(|known| known.get(key)), others) {
                (Some(schema), _) => self.fault(schema, part, &at_key)?,
                (None, Value::Object(_)) => self.fault(others, part, &at_key)?,
                (None, Value::Bool(true)) if known.is_none() => {}
                (None, Value::Bool(true)) if self.unknown == Unknown::AsPermitted => {}
                _ => return Err(format!("{at}: unknown key {key}: {value}")),
            }
        }
        Ok(())
    }
}

/// The problem of a value under a keyword without schemas of its own.
fn keyword_fault(keyword: &str, rule: &Value, value: &Value) -> Option<String> {
    let number = rule.as_u64();
    let text = value.as_str();
    let items = value.as_array().map(|items| items.len() as u64);
    let (has_fault, words) = match keyword {
        "type" => return (!is_of_type(rule, value)).then(|| format!("no {rule}")),
        "enum" => {
            let all = rule.as_array().expect("values");
            return (!all.contains(value)).then(|| format!("none of {rule}"));
        }
        "minimum" => (integer(value).is_some_and(|it| Some(it) < integer(rule)), "too small"),
        "maximum" => (integer(value) > integer(rule), "too large"),
        "pattern" => return pattern_fault(rule, text.unwrap_or_default()).map(str::to_owned),
        "minLength" => {
            let chars = text.map(|text| text.chars().count() as u64);
            (chars.is_some_and(|chars| Some(chars) < number), "too short")
        }
        "minItems" => (items.is_some_and(|items| Some(items) < number), "too few"),
        "maxItems" => (items > number, "too many"),
        "uniqueItems" => {
            let all = value.as_array().into_iter().flatten();
            let texts: BTreeSet<_> = all.map(ToString::to_string).collect();
            (items.is_some_and(|items| items > texts.len() as u64), "twice")
        }
        "required" => {
            let mut keys = rule.as_array().expect("keys").iter().filter_map(Value::as_str);
            let missing = keys.find(|&key| value.is_object() && value.get(key).is_none());
            return missing.map(|key| format!("no key {key}"));
        }
        other => panic!("keyword {other}"),
    };
    has_fault.then(|| words.to_owned())
}

fn is_of_type(rule: &Value, value: &Value) -> bool {
    match rule.as_str().expect("a type") {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "null" => value.is_null(),
        other => panic!("type {other}"),
    }
}

/// The problem of a text under a pattern.  The patterns are those of quantities and of points in
/// time; the text is given to the readers of these.
fn pattern_fault(rule: &Value, text: &str) -> Option<&'static str> {
    let unit = match rule.as_str().expect("a pattern") {
        it if it.contains("[T ]") => {
            return (!pbs_job::is_moment(text)).then_some("no point in time");
        }
        it if it.contains("[kMGT]") => Quantity::Insns,
        it if it.contains("|min|") => Quantity::Ns,
        it if it.contains("KiB") => Quantity::Bytes,
        it if it.contains('%') => Quantity::Permille,
        other => panic!("pattern {other}"),
    };
    // Numbers without a unit are no text.
    let has_unit = !text.ends_with(|end: char| end.is_ascii_digit());
    (!has_unit || unit.parse(text).is_err()).then_some("no quantity")
}

/// A number of 64 bits, with or without a sign.
fn integer(value: &Value) -> Option<i128> {
    value.as_u64().map(i128::from).or_else(|| value.as_i64().map(i128::from))
}
