// SPDX-License-Identifier: GPL-2.0
//! Limits and free pools, from `[[limit]]` and `[[pool]]`.

use std::str::FromStr;

use pbs_resources::{parse_duration_s, Condition};
use pbs_text::reader::{Reader, Table, Value as TomlValue};
use pbs_text::Line;
use toml::de::DeValue;

use super::declared_names::DeclaredNames;
use super::names::{self, own_name};
use super::values;
use crate::limit::{ALL, REQUESTS};
use crate::{Limit, Pool, Share, Validity, Whom, MOST_POOLS};

const LIMIT_KEYS: &[&str] = &["for", "resource", "items", "soft", "duration", "area", "validity"];
const POOL_KEYS: &[&str] = &["name", "resource", "free", "access", "share", "validity"];

/// Words for the absence of a limit; Keller's example 1 has both.
const NO_LIMIT: [&str; 2] = ["unlimited", "none"];

pub(super) fn limits(
    reader: &mut Reader,
    top: &mut Table<'_, '_>,
    known: &DeclaredNames,
) -> Vec<Limit> {
    let mut limits: Vec<Limit> = Vec::new();
    for (line, value) in reader.tables(top, "limit") {
        let Some(limit) = limit(reader, line, value, known) else {
            continue;
        };
        let is_same = |other: &Limit| {
            (&other.whom, &other.resource, &other.validity)
                == (&limit.whom, &limit.resource, &limit.validity)
        };
        if limits.iter().any(is_same) {
            let (whom, resource) = (&limit.whom, &limit.resource);
            let message = format!(
                "there is already a limit of {resource} for {whom} with this validity; keep one of \
                 both"
            );
            reader.problem(line, message);
        }
        limits.push(limit);
    }
    limits
}

fn limit(
    reader: &mut Reader,
    line: Line,
    value: &TomlValue<'_>,
    known: &DeclaredNames,
) -> Option<Limit> {
    let mut table = reader.table(line, value, "[[limit]]", LIMIT_KEYS)?;
    let whom = whom(reader, &mut table, known);
    let resource = limited(reader, &mut table, known);
    let items_line = table.entries.get("items").map(|(line, _)| *line);
    let items =
        unless_none(reader, &mut table, "items", |reader, line, value| {
            match values::plain(value) {
                Some(least) => Some(Share { least: Some(least), permille: None }),
                None => values::read_with(reader, line, "items", value, Share::from_str),
            }
        });
    let soft_line = table.entries.get("soft").map(|(line, _)| *line);
    let soft_permille = values::permille(reader, &mut table, "soft");
    let spans = ["duration", "area"].map(|key| {
        let at = table.entries.get(key).map(|(line, _)| *line);
        let span =
            unless_none(reader, &mut table, key, |reader, line, value| {
                match values::plain(value) {
                    Some(seconds) => Some(seconds),
                    None => values::read_with(reader, line, key, value, parse_duration_s),
                }
            });
        (key, at, span)
    });
    let validity = values::validity(reader, &mut table, known);
    let (whom, resource) = (whom?, resource?);
    if REQUESTS.contains(&resource.as_str()) {
        for (key, at, span) in &spans {
            if span.is_some() {
                let message = format!("{resource} are counted only; remove {key}, or write none");
                reader.problem(at.unwrap_or(line), message);
            }
        }
    }
    if let Some(line) = soft_line {
        if items.is_none() || REQUESTS.contains(&resource.as_str()) {
            let message = "soft permits more items than a limit of items; add items, or remove \
                           soft";
            reader.problem(line, message);
        }
    }
    let is_unclear = match (resource.as_str(), items) {
        (ALL, Some(Share { least, .. })) => least.is_some(),
        _ => false,
    };
    if is_unclear {
        let message = "a number of items needs a resource; name the resource, or write a \
                       percentage: \"45%\"";
        reader.problem(items_line.unwrap_or(line), message);
    }
    Some(Limit {
        whom,
        resource,
        items,
        soft_permille,
        duration_s: spans[0].2,
        area_s: spans[1].2,
        validity,
    })
}

/// The value of a key, unless it isn't there or says that there is no limit.
fn unless_none<T>(
    reader: &mut Reader,
    table: &mut Table<'_, '_>,
    key: &str,
    read: impl FnOnce(&mut Reader, Line, &TomlValue<'_>) -> Option<T>,
) -> Option<T> {
    let (line, value) = table.entries.remove(key)?;
    let is_none = match value.get_ref() {
        DeValue::String(text) => NO_LIMIT.contains(&text.as_ref()),
        _ => false,
    };
    if is_none {
        return None;
    }
    read(reader, line, value)
}

fn whom(reader: &mut Reader, table: &mut Table<'_, '_>, known: &DeclaredNames) -> Option<Whom> {
    let example = "write \"user:alice\", \"group:G1\" or \"everyone\"";
    let Some((line, value)) = table.entries.remove("for") else {
        let message = format!("the limit does not say for whom; add for, and {example}");
        reader.problem(table.line, message);
        return None;
    };
    let text = reader.string(line, "for", value)?;
    let whom = match text.split_once(':') {
        Some(("user", name)) => Whom::User(name.into()),
        Some(("group", name)) => Whom::Group(name.into()),
        None if text == "everyone" => Whom::Everyone,
        _ => {
            reader.problem(line, format!("{text:?} is no user or group; {example}"));
            return None;
        }
    };
    match &whom {
        Whom::User(name) if names::is_word(reader, line, name) => {
            names::user(reader, line, name, known);
        }
        Whom::Group(name) if names::is_word(reader, line, name) => {
            names::group(reader, line, name, known);
        }
        _ => {}
    }
    Some(whom)
}

/// Reads the subject of a limit.
fn limited(
    reader: &mut Reader,
    table: &mut Table<'_, '_>,
    known: &DeclaredNames,
) -> Option<String> {
    let (line, name) = named(reader, table, "the limit")?;
    if name == ALL || REQUESTS.contains(&name.as_str()) {
        return Some(name);
    }
    names::countable(reader, line, &name, &known.resources).then_some(name)
}

fn named(reader: &mut Reader, table: &mut Table<'_, '_>, what: &str) -> Option<(Line, String)> {
    let Some((line, value)) = table.entries.remove("resource") else {
        let message = format!("{what} has no resource; add resource = \"ncpus\"");
        reader.problem(table.line, message);
        return None;
    };
    Some((line, reader.string(line, "resource", value)?))
}

pub(super) fn pools(
    reader: &mut Reader,
    top: &mut Table<'_, '_>,
    known: &DeclaredNames,
) -> Vec<Pool> {
    let mut pools = Vec::new();
    let mut taken = Vec::new();
    let mut lines: Vec<Line> = Vec::new();
    for (line, value) in reader.tables(top, "pool") {
        let number = taken.len() + 1;
        let pool = pool(reader, line, value, number, &taken, known);
        taken.push(pool.as_ref().map_or(String::new(), |pool| pool.name.clone()));
        pools.extend(pool);
        lines.push(line);
    }
    let limited = known.resources.iter().filter(|of| of.validity != Validity::Always);
    let of_validity: usize = limited.map(|of| of.items.len().max(1)).sum();
    let all = lines.len() + of_validity;
    if all > MOST_POOLS {
        // The first that is too many.
        let line = lines.get(MOST_POOLS.saturating_sub(of_validity)).copied().flatten();
        let message = format!(
            "there are {all} pools, {of_validity} of them for the validity of resources and their \
             items; a site has at most {MOST_POOLS}, so remove or join some"
        );
        reader.problem(line, message);
    }
    pools
}

fn pool(
    reader: &mut Reader,
    line: Line,
    value: &TomlValue<'_>,
    number: usize,
    taken: &[String],
    known: &DeclaredNames,
) -> Option<Pool> {
    let mut table = reader.table(line, value, "[[pool]]", POOL_KEYS)?;
    let name = if table.entries.contains_key("name") {
        own_name(reader, &mut table, "pool", "small-jobs", taken)
    } else {
        Some(format!("pool-{number}"))
    };
    let resource = named(reader, &mut table, "the pool");
    let resource =
        resource.filter(|(line, name)| names::countable(reader, *line, name, &known.resources));
    let free = match table.entries.remove("free") {
        Some((line, value)) => match values::plain(value) {
            Some(least) => Some(Share { least: Some(least), permille: None }),
            None => values::read_with(reader, line, "free", value, Share::from_str),
        },
        None => {
            let message = "the pool keeps nothing free; add free = \"10/20%\"";
            reader.problem(line, message);
            None
        }
    };
    let access_line = table.entries.get("access").map(|(line, _)| *line);
    let access: Option<Condition> = values::parsed(reader, &mut table, "access");
    if let (Some(line), Some(access)) = (access_line, &access) {
        names::condition(reader, line, access, known);
    }
    let share = match table.entries.remove("share") {
        Some((line, value)) => reader.flag(line, "share", value),
        None => Some(false),
    };
    let validity = values::validity(reader, &mut table, known);
    Some(Pool {
        name: name?,
        resource: resource?.1,
        free: free?,
        // Who may is said, or nobody may.
        access: access.unwrap_or(Condition::Any(Vec::new())),
        share: share?,
        validity,
    })
}
