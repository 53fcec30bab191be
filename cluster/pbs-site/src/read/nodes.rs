// SPDX-License-Identifier: GPL-2.0
//! Nodes, from `[[nodes]]`.

use std::collections::{BTreeMap, HashSet};

use pbs_resources::{Condition, Value};
use pbs_text::reader::{Reader, Table, Value as TomlValue};
use pbs_text::Line;

use super::declared_names::DeclaredNames;
use super::{names, resources, values};
use crate::pattern::Pattern;
use crate::{Node, ReservedCores};

const KEYS: &[&str] =
    &["name", "count", "first", "has", "prio", "only_if", "kept", "switch", "per_switch"];

/// No cluster has more, and a slip of the pen should not fill the memory.
const MOST_NODES: u64 = 1 << 20;

/// Largest absolute value of a node's `prio`.
const MOST_PRIO: i64 = 1_000_000;

/// All nodes; resources that only they name become known.
pub(super) fn nodes(
    reader: &mut Reader,
    top: &mut Table<'_, '_>,
    known: &mut DeclaredNames,
) -> Vec<Node> {
    let tables = reader.tables(top, "nodes");
    let groups: Vec<_> =
        tables.into_iter().filter_map(|(line, value)| group(reader, line, value)).collect();
    let has = groups.iter().flat_map(|group| {
        let items = group.node.has.iter();
        items.map(|item| (group.has_line, item.clone()))
    });
    let has: Vec<_> = has.collect();
    resources::deduce(reader, &has, &mut known.resources);
    let mut names = HashSet::new();
    let mut nodes: Vec<Node> = Vec::new();
    for group in groups {
        check(reader, &group, known);
        if nodes.len() as u64 + group.count > MOST_NODES {
            let message = format!("there are more than {MOST_NODES} nodes; correct count");
            reader.problem(group.line, message);
            break;
        }
        for index in 0..group.count {
            let mut node = group.node.clone();
            node.name = group.name.with(group.first + index);
            if let Some((switch, per_switch)) = &group.switch {
                node.switch = Some(switch.with(index / per_switch + 1));
            }
            if names.insert(node.name.clone()) {
                nodes.push(node);
                continue;
            }
            let message = format!(
                "there is a node {} already; choose another name, or another first",
                node.name
            );
            reader.problem(group.line, message);
            // One is enough to correct.
            break;
        }
    }
    check_sums(reader, &nodes);
    if nodes.is_empty() && reader.is_content() {
        let message = "the site has no node; add [[nodes]] with name and has";
        reader.problem(None, message);
    }
    nodes
}

/// Nodes that are alike.
struct Group {
    name: Pattern,
    count: u64,
    first: u64,
    /// With how many nodes each has.
    switch: Option<(Pattern, u64)>,
    /// All else.
    node: Node,
    line: Line,
    has_line: Line,
    only_if_line: Line,
    kept_line: Line,
}

fn group(reader: &mut Reader, line: Line, value: &TomlValue<'_>) -> Option<Group> {
    let mut table = reader.table(line, value, "[[nodes]]", KEYS)?;
    let name = pattern(reader, &mut table, "name");
    let mut number = |key: &'static str, least: u64, most: u64| {
        let (line, value) = table.entries.remove(key)?;
        let number: u64 = reader.number_in(line, key, value, least..=most)?;
        if (least..=most).contains(&number) {
            return Some(number);
        }
        reader.problem(line, format!("{key} must be between {least} and {most}"));
        None
    };
    let count = number("count", 1, MOST_NODES);
    let first = number("first", 0, u32::MAX.into());
    let per_switch = number("per_switch", 1, MOST_NODES);
    let mut group = Group {
        name: Pattern::default(),
        count: count.unwrap_or(1),
        first: first.unwrap_or(1),
        switch: None,
        node: Node {
            name: String::new(),
            has: Vec::new(),
            prio: 0,
            only_if: None,
            kept: None,
            switch: None,
        },
        line,
        has_line: line,
        only_if_line: line,
        kept_line: line,
    };
    if let Some((line, value)) = table.entries.get("has") {
        group.has_line = *line;
        let items = values::read_with(reader, *line, "has", value, pbs_resources::parse_items);
        group.node.has = items?;
    } else {
        let message = "these nodes have nothing; add has = \"ncpus=16:mem=64g\"";
        reader.problem(line, message);
        return None;
    }
    if let Some((line, value)) = table.entries.remove("prio") {
        let prio = values::signed(reader, line, "prio", value, MOST_PRIO);
        group.node.prio = prio.unwrap_or(0);
    }
    if let Some(&(line, _)) = table.entries.get("only_if") {
        group.only_if_line = line;
        group.node.only_if = values::parsed::<Condition>(reader, &mut table, "only_if");
    }
    if let Some((line, value)) = table.entries.remove("kept") {
        group.kept_line = line;
        group.node.kept = kept(reader, line, value);
    }
    group.switch = switch(reader, &mut table, per_switch);
    group.name = name?;
    if group.count > 1 && !group.name.has_number() {
        let message = format!(
            "{} nodes can't have one name; write %d or %03d in it, where the number is",
            group.count
        );
        reader.problem(group.line, message);
        return None;
    }
    Some(group)
}

fn pattern(reader: &mut Reader, table: &mut Table<'_, '_>, key: &str) -> Option<Pattern> {
    let Some((line, value)) = table.entries.remove(key) else {
        let message = format!("these nodes have no {key}; add {key} = \"node%03d\"");
        reader.problem(table.line, message);
        return None;
    };
    let text = reader.string(line, key, value)?;
    let pattern = Pattern::read(&text);
    if pattern.is_none() {
        let message = format!(
            "{text:?} is no {key}; write letters, digits and any of _ - . / @, with %d or %03d \
             once for a number"
        );
        reader.problem(line, message);
    }
    pattern
}

fn switch(
    reader: &mut Reader,
    table: &mut Table<'_, '_>,
    per_switch: Option<u64>,
) -> Option<(Pattern, u64)> {
    let Some(&(line, _)) = table.entries.get("switch") else {
        if per_switch.is_some() {
            let message = "these nodes have no switch; add switch = \"leaf%d\"";
            reader.problem(table.line, message);
        }
        return None;
    };
    let pattern = pattern(reader, table, "switch")?;
    if pattern.has_number() != per_switch.is_some() {
        let message = "a number in switch and per_switch belong together; add the other, or \
                       remove this";
        reader.problem(line, message);
    }
    // All on one, if there is no number.
    Some((pattern, per_switch.unwrap_or(u64::MAX)))
}

fn kept(reader: &mut Reader, line: Line, value: &TomlValue<'_>) -> Option<ReservedCores> {
    let mut table = reader.table(line, value, "kept", &["cores", "for"])?;
    let cores = table.entries.remove("cores");
    let of = table.entries.remove("for");
    let (Some((cores_line, cores)), Some((for_line, of))) = (cores, of) else {
        let message = "kept needs a number of cores and a resource; write kept = { cores = 2, for \
                       = \"gpus\" }";
        reader.problem(line, message);
        return None;
    };
    Some(ReservedCores {
        cores: reader.number(cores_line, "cores", cores)?,
        resource: reader.string(for_line, "for", of)?,
    })
}

/// Whether what the nodes name is there, and is right.
fn check(reader: &mut Reader, group: &Group, known: &DeclaredNames) {
    let node = &group.node;
    let cores = node.amount("ncpus");
    if cores == 0 {
        let message = "these nodes have no cores; add ncpus=16";
        reader.problem(group.has_line, message);
    }
    if let Some(kept) = &node.kept {
        let (line, of) = (group.kept_line, kept.resource.as_str());
        let is_known = names::resource(reader, line, of, &known.resources).is_some();
        if is_known && (of == "ncpus" || node.amount(of) == 0) {
            let message = format!(
                "cores are kept for {of}, which these nodes do not have; add it to has, or remove \
                 kept"
            );
            reader.problem(line, message);
        }
        if !(1..=cores).contains(&kept.cores) {
            let message = format!(
                "{} cores are kept of {cores}; keep at least 1 and at most {cores}",
                kept.cores
            );
            reader.problem(line, message);
        }
    }
    if let Some(only_if) = &node.only_if {
        let line = group.only_if_line;
        names::condition(reader, line, only_if, known);
        let mut has_who = false;
        only_if.for_each_part(&mut |part| {
            has_who |= matches!(part, Condition::User(_) | Condition::Group(_));
        });
        if has_who {
            let message = "only_if can test what chunks need, not their users; use a [[pool]] to \
                           keep resources free for users";
            reader.problem(line, message);
        }
    }
}

/// Checks that each resource's sum over all nodes fits into 64 bits. Later code relies on it.
fn check_sums(reader: &mut Reader, nodes: &[Node]) {
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    for item in nodes.iter().flat_map(|node| &node.has) {
        let Value::Amount(amount) = item.value else {
            continue;
        };
        let sum = sums.entry(&item.resource).or_default();
        let Some(more) = sum.checked_add(amount) else {
            let message = format!("all nodes together have too much {}; correct it", item.resource);
            reader.problem(None, message);
            return;
        };
        *sum = more;
    }
}
