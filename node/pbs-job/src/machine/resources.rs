// SPDX-License-Identifier: GPL-2.0
//! Countable resources of a machine, such as licences.

use std::collections::BTreeSet;

use pbs_text::reader::{Reader, Value};
use pbs_text::{append, between, quoted, underscored, write_list, Line, Problem, Problems};
use toml::de::DeValue;

use super::node_named;
use crate::amounts::resource_name_fault;
use crate::{Machine, Node, Resource, MAX_AMOUNT, MAX_RESOURCES};

const KEYS: &[&str] = &["name", "count", "nodes"];
const WRITE_NODES: &str =
    "write names of nodes: nodes = [\"n0\"]; or leave it out to allow all nodes";

pub(super) fn resource(
    reader: &mut Reader,
    line: Line,
    value: &Value<'_>,
    nodes: &[Node],
) -> Option<Resource> {
    let mut table = reader.table(line, value, "[[resource]]", KEYS)?;
    let Some((name_line, name)) = table.entries.remove("name") else {
        reader.problem(line, "the resource has no name; add name = \"matlab\"");
        return None;
    };
    let mut resource =
        Resource { name: reader.string(name_line, "name", name)?, line, ..Resource::default() };
    let Some((count_line, count)) = table.entries.remove("count") else {
        let message = format!("resource {} has no count; add count = 1", resource.name);
        reader.problem(line, message);
        return None;
    };
    resource.count = reader.number_in(count_line, "count", count, 1..=MAX_AMOUNT)?;
    if let Some((line, value)) = table.entries.remove("nodes") {
        let DeValue::Array(items) = value.get_ref() else {
            reader.problem(line, format!("nodes is no list; {WRITE_NODES}"));
            return None;
        };
        if items.is_empty() {
            let message = format!("nodes of resource {} is empty; {WRITE_NODES}", resource.name);
            reader.problem(line, message);
        }
        for item in items.iter() {
            let node = node_named(reader, line, item, nodes, WRITE_NODES)?;
            resource.nodes.push(node);
        }
        resource.nodes.sort_unstable();
    }
    Some(resource)
}

/// Checks the resources.
pub(super) fn check(machine: &Machine, problems: &mut Problems) {
    let mut problem = |line, message: String| problems.push(Problem::at(line, message));
    if machine.resources.len() > MAX_RESOURCES {
        let message = format!(
            "the machine has {} resources, and at most {MAX_RESOURCES} are allowed; declare fewer",
            machine.resources.len()
        );
        problem(None, message);
    }
    let mut names = BTreeSet::new();
    for resource in &machine.resources {
        let name = &resource.name;
        if let Some(fault) = resource_name_fault(name) {
            problem(resource.line, fault);
        }
        if !names.insert(name) {
            let message = format!(
                "resource {name} is declared already; add this count to that, or rename it"
            );
            problem(resource.line, message);
        }
        if !(1..=MAX_AMOUNT).contains(&resource.count) {
            let (count, range) = (underscored(resource.count), between(1, MAX_AMOUNT));
            let message = format!("count of resource {name} is {count}; it must be {range}");
            problem(resource.line, message);
        }
        if let Some(pair) = resource.nodes.windows(2).find(|pair| pair[0] == pair[1]) {
            let node = &machine.nodes[pair[0]].name;
            let message = format!("resource {name} names node {node} twice; write each once");
            problem(resource.line, message);
        }
    }
}

pub(super) fn write(out: &mut String, machine: &Machine) {
    for resource in &machine.resources {
        append!(
            out,
            "\n[[resource]]\nname = {}\ncount = {}\n",
            quoted(&resource.name),
            underscored(resource.count)
        );
        if !resource.nodes.is_empty() {
            let names = resource.nodes.iter().map(|&node| quoted(&machine.nodes[node].name));
            write_list(out, "nodes", names, false);
        }
    }
}
