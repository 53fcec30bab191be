// SPDX-License-Identifier: GPL-2.0
//! Resources, from `[resource.NAME]` and from what nodes have.

use std::collections::BTreeMap;

use jiff::tz::TimeZone;
use pbs_resources::{Item, Value, BUILT_IN};
use pbs_text::reader::{Reader, Table, Value as TomlValue};
use pbs_text::Line;
use toml::de::{DeTable, DeValue};

use super::{names, values};
use crate::{Kind, Resource, Scope, Validity};

const KEYS: &[&str] = &["scope", "kind", "amount", "items", "validity"];

/// Returns the built-in resources and those that the file declares, by name; their validity is
/// still missing.
pub(super) fn declared(reader: &mut Reader, top: &mut Table<'_, '_>) -> Vec<Resource> {
    let mut resources = Resource::built_in();
    let Some((line, value)) = top.entries.remove("resource") else {
        return resources;
    };
    for (line, name, value) in values::entries(reader, line, "resource", value) {
        if BUILT_IN.contains(&name) {
            let what = "a built-in resource";
            if let Some(table) = reader.table(line, value, what, KEYS) {
                for (key, (line, _)) in table.entries {
                    if key != "validity" {
                        let message = format!("{name} is built in; remove {key}");
                        reader.problem(line, message);
                    }
                }
            }
            continue;
        }
        if names::can_be_resource(reader, line, name) {
            resources.extend(one(reader, line, name, value));
        }
    }
    sort(&mut resources);
    resources
}

/// The built-in ones stay where they are, others are by name.
fn sort(resources: &mut [Resource]) {
    resources[BUILT_IN.len()..].sort_by(|a, b| a.name.cmp(&b.name));
}

fn one(reader: &mut Reader, line: Line, name: &str, value: &TomlValue<'_>) -> Option<Resource> {
    let mut table = reader.table(line, value, "[resource.NAME]", KEYS)?;
    // The place of what is told in a list; the first if nothing is.
    let mut choice = |key: &'static str, names: [&'static str; 2]| {
        let Some((line, value)) = table.entries.remove(key) else {
            return Some(0);
        };
        let name = reader.string(line, key, value)?;
        reader.one_of(line, key, &name, &names)
    };
    let scope = choice("scope", ["node", "job"]);
    let kind = choice("kind", ["consumable", "attribute"]);
    let (scope, kind) = match (scope?, kind?) {
        (0, 0) => (Scope::Node, Kind::Consumable),
        (0, _) => (Scope::Node, Kind::Attribute),
        (_, 0) => (Scope::Job, Kind::Consumable),
        _ => (Scope::Job, Kind::Attribute),
    };
    let mut resource = Resource::of_nodes(name, kind);
    resource.scope = scope;
    let amount = table.entries.remove("amount");
    let items = table.entries.remove("items");
    let message = match (scope, kind) {
        (Scope::Node, _) if amount.is_some() || items.is_some() => format!(
            "{name} is a resource of nodes, so their \"has\" says how much there is; remove \
             amount and items, or add scope = \"job\""
        ),
        (Scope::Job, Kind::Attribute) => format!(
            "{name} is of no node, so it can't be an attribute of one; remove scope or kind"
        ),
        (Scope::Job, _) if amount.is_some() == items.is_some() => format!(
            "{name} needs one amount; write amount = 8, or items = {{ NAME = 8 }} if requests name \
             the items"
        ),
        _ => String::new(),
    };
    if !message.is_empty() {
        reader.problem(line, message);
        return Some(resource);
    }
    if let Some((line, value)) = amount {
        resource.amount = values::amount(reader, line, "amount", value).unwrap_or(0);
    }
    if let Some((line, value)) = items {
        let entries = values::entries(reader, line, "items", value);
        if entries.is_empty() && reader.is_content() {
            let message = format!("{name} has no items; write items = {{ NAME = 8 }}");
            reader.problem(line, message);
        }
        for (line, word, value) in entries {
            // Only what is read as a word can be asked for by word.
            let is_word = matches!(
                pbs_resources::parse_items(&format!("{name}={word}")).as_deref(),
                Ok([Item { value: Value::Word(read), .. }]) if read == word
            );
            if !is_word {
                let message = format!("{word:?} can't be the name of an item; choose another name");
                reader.problem(line, message);
                continue;
            }
            let amount = values::amount(reader, line, word, value);
            resource.items.insert(word.into(), amount.unwrap_or(0));
        }
    }
    Some(resource)
}

/// The validity of a resource, which needs the time zone.
pub(super) fn read_validity(
    reader: &mut Reader,
    document: &DeTable<'_>,
    resource: &mut Resource,
    zone: &TimeZone,
) {
    let table = |value: &TomlValue<'_>| matches!(value.get_ref(), DeValue::Table(_));
    let Some(declared) = document.get("resource").filter(|value| table(value)) else {
        return;
    };
    let Some(of) = declared.get_ref().get(resource.name.as_str()) else {
        return;
    };
    if let Some(value) = of.get_ref().get("validity") {
        let line = reader.line_of(value);
        if resource.kind == Kind::Attribute {
            let name = &resource.name;
            let message = format!(
                "{name} is an attribute, and only what is counted has a validity; remove \
                 validity"
            );
            reader.problem(line, message);
            return;
        }
        let parse = |text: &str| Validity::parse(text, zone);
        let validity = values::read_with(reader, line, "validity", value, parse);
        // A wrong validity is a problem already, and the site is refused.
        resource.validity = validity.unwrap_or_default();
    }
}

/// Deduces resources from those of nodes that are not declared: a number is consumed, a word is an
/// attribute.
pub(super) fn deduce(reader: &mut Reader, had: &[(Line, Item)], resources: &mut Vec<Resource>) {
    let mut deduced: BTreeMap<&str, (Kind, Line)> = BTreeMap::new();
    for (line, item) in had {
        let name = item.resource.as_str();
        let is_word = matches!(item.value, Value::Word(_));
        if let Some(resource) = resources.iter().find(|of| of.name == name) {
            let message = match (resource.scope, resource.kind) {
                (Scope::Job, _) => {
                    format!("{name} is a resource of no node; remove it here, or its scope")
                }
                _ if name == "ompthreads" => {
                    "ompthreads is passed to programs, and nodes do not have it; remove it \
                     here"
                        .into()
                }
                (_, Kind::Consumable) if is_word => format!(
                    "{name} is counted; write a number, or kind = \"attribute\" in \
                     [resource.{name}]"
                ),
                _ => continue,
            };
            reader.problem(*line, message);
            continue;
        }
        let kind = if is_word { Kind::Attribute } else { Kind::Consumable };
        match deduced.get(name) {
            None if !names::can_be_resource(reader, *line, name) => {}
            None => {
                deduced.insert(name, (kind, *line));
            }
            Some(&(other, first)) if other != kind => {
                let first = first.map_or(String::new(), |line| format!(" at line {line}"));
                let message = format!(
                    "{name} is a number and a word{first}; correct one, or add [resource.{name}] \
                     with kind = \"attribute\""
                );
                reader.problem(*line, message);
            }
            Some(_) => {}
        }
    }
    let deduced = deduced.into_iter();
    resources.extend(deduced.map(|(name, (kind, _))| Resource::of_nodes(name, kind)));
    sort(resources);
}
