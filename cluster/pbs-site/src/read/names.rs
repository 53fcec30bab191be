// SPDX-License-Identifier: GPL-2.0
//! Checks of names against the declared ones.

use pbs_resources::Condition;
use pbs_text::reader::{closest, Reader, Table};
use pbs_text::Line;

use super::declared_names::DeclaredNames;
use crate::{Kind, Resource};

/// Words that mean something else where names of resources can stand.
const RESERVED: &[&str] = &[
    "jobs",
    "arrayjobs",
    "duration",
    "area",
    "user",
    "group",
    "place",
    "always",
    "never",
    "rset",
    "avoid",
];

/// Whether a name can be written in requests and conditions.
pub(super) fn is_word(reader: &mut Reader, line: Line, name: &str) -> bool {
    let is_word = pbs_resources::is_word(name);
    if !is_word {
        let message = format!("{name:?} is no name; write letters, digits and any of _ - . / @");
        reader.problem(line, message);
    }
    is_word
}

/// A name that something was given, unless another has it.
pub(super) fn own_name(
    reader: &mut Reader,
    table: &mut Table<'_, '_>,
    what: &str,
    example: &str,
    taken: &[String],
) -> Option<String> {
    let Some((line, value)) = table.entries.remove("name") else {
        reader.problem(table.line, format!("{what} has no name; add name = \"{example}\""));
        return None;
    };
    let name = reader.string(line, "name", value)?;
    if !is_word(reader, line, &name) {
        return None;
    }
    if taken.contains(&name) {
        reader.problem(line, format!("there is a {what} {name} already; choose another name"));
        return None;
    }
    Some(name)
}

/// Whether a resource can be called so.
pub(super) fn can_be_resource(reader: &mut Reader, line: Line, name: &str) -> bool {
    if !is_word(reader, line, name) {
        return false;
    }
    let is_number = name.bytes().all(|byte| byte.is_ascii_digit());
    if is_number || RESERVED.contains(&name) {
        let message = format!("no resource can be called {name}; choose another name");
        reader.problem(line, message);
        return false;
    }
    true
}

/// The resource of that name.
pub(super) fn resource<'r>(
    reader: &mut Reader,
    line: Line,
    name: &str,
    resources: &'r [Resource],
) -> Option<&'r Resource> {
    let found = resources.iter().find(|resource| resource.name == name);
    if found.is_none() {
        let names = resources.iter().map(|resource| resource.name.as_str());
        let instead = match closest(name, names.clone()) {
            Some(close) => format!("did you mean {close}?"),
            None => {
                let names: Vec<_> = names.collect();
                format!("there are {}", names.join(", "))
            }
        };
        reader.problem(line, format!("there is no resource {name}; {instead}"));
    }
    found
}

/// Whether the name can be limited or kept free: a consumable resource by its name, or one word of
/// a resource that is requested by word, as `sw=g03`.
pub(super) fn countable(
    reader: &mut Reader,
    line: Line,
    name: &str,
    resources: &[Resource],
) -> bool {
    let (name, word) = match name.split_once('=') {
        Some((name, word)) => (name, Some(word)),
        None => (name, None),
    };
    let Some(resource) = resource(reader, line, name, resources) else {
        return false;
    };
    let words: Vec<_> = resource.items.keys().map(String::as_str).collect();
    let message = match word {
        _ if resource.kind == Kind::Attribute => {
            format!("{name} is an attribute, which is not used up; name what is counted")
        }
        None if words.is_empty() => return true,
        Some(word) if words.contains(&word) => return true,
        Some(word) if words.is_empty() => {
            format!("{name} is counted as a whole; write {name} without ={word}")
        }
        _ => {
            let words: Vec<_> = words.iter().map(|word| format!("{name}={word}")).collect();
            format!("{name} is asked for by word; write one of {}", words.join(", "))
        }
    };
    reader.problem(line, message);
    false
}

/// Whether there is a user of that name, if users are listed.
pub(super) fn user(reader: &mut Reader, line: Line, name: &str, known: &DeclaredNames) {
    listed(reader, line, "user", name, &known.users);
}

/// Whether there is a group of that name, if groups are listed.
pub(super) fn group(reader: &mut Reader, line: Line, name: &str, known: &DeclaredNames) {
    listed(reader, line, "group", name, &known.groups);
}

fn listed(reader: &mut Reader, line: Line, what: &str, name: &str, names: &[String]) {
    if names.is_empty() || names.iter().any(|listed| listed == name) {
        return;
    }
    let instead = match closest(name, names.iter().map(String::as_str)) {
        Some(close) => format!("did you mean {close}?"),
        None => format!("add [[{what}]] name = \"{name}\", as the file lists its {what}s"),
    };
    reader.problem(line, format!("there is no {what} {name}; {instead}"));
}

/// Whether all that a condition names is there.
pub(super) fn condition(
    reader: &mut Reader,
    line: Line,
    condition: &Condition,
    known: &DeclaredNames,
) {
    condition.for_each_part(&mut |part| match part {
        Condition::User(name) => user(reader, line, name, known),
        Condition::Group(name) => group(reader, line, name, known),
        Condition::Compare { name, .. } if matches!(name.as_str(), "duration" | "area") => {}
        Condition::Compare { name, .. } => {
            countable(reader, line, name, &known.resources);
        }
        Condition::Any(_) | Condition::All(_) => {}
    });
}
