// SPDX-License-Identifier: GPL-2.0
//! Machines, from TOML and to it.

use std::collections::HashMap;
use std::fmt::Write;

use pbs_plan::text::{quoted, read, underscored, write_list, Reader, Table, Value};
use pbs_plan::{between, Line, Problem};
use toml::de::{DeTable, DeValue};

use crate::{Core, Machine, Node, MAX_MEMORY_BYTES, MAX_NS, MAX_RATE_INSNS_PER_S, TICK_NS};

const TOP_KEYS: &[&str] = &["name", "tick_ns", "node"];
const NODE_KEYS: &[&str] = &["name", "memory_bytes", "rate_insns_per_s", "cores"];
const CORE_KEYS: &[&str] = &["name", "cpu", "rate_insns_per_s"];
const WRITE_CORES: &str =
    "write a name, or a table, for each: cores = [{ name = \"c0\", cpu = 0 }]";

/// Reads a machine and checks it.
pub fn machine_from_toml(text: &str) -> Result<Machine, Vec<Problem>> {
    let machine = read(text, machine)?;
    check(&machine)?;
    Ok(machine)
}

/// The machine as [`machine_from_toml`] reads it.
pub fn machine_to_toml(machine: &Machine) -> String {
    let mut out = String::new();
    if let Some(name) = &machine.name {
        let _ = writeln!(out, "name = {}", quoted(name));
    }
    if machine.tick_ns != TICK_NS {
        let _ = writeln!(out, "tick_ns = {}", underscored(machine.tick_ns));
    }
    for node in &machine.nodes {
        let _ = write!(
            out,
            "\n[[node]]\nname = {}\nmemory_bytes = {}\n",
            quoted(&node.name),
            underscored(node.memory_bytes)
        );
        let mut rates = node.cores.iter().map(|core| core.rate_insns_per_s);
        let first = rates.next();
        let shared = first.filter(|&first| rates.all(|rate| rate == first));
        if let Some(rate) = shared {
            let _ = writeln!(out, "rate_insns_per_s = {}", underscored(rate));
        }
        let cores = node.cores.iter().map(|core| {
            let mut fields = vec![format!("name = {}", quoted(&core.name))];
            if let Some(cpu) = core.cpu {
                fields.push(format!("cpu = {cpu}"));
            }
            if shared.is_none() {
                let rate = underscored(core.rate_insns_per_s);
                fields.push(format!("rate_insns_per_s = {rate}"));
            }
            match &fields[..] {
                [_] => quoted(&core.name),
                _ => format!("{{ {} }}", fields.join(", ")),
            }
        });
        write_list(&mut out, "cores", cores, true);
    }
    out
}

fn machine(reader: &mut Reader, document: &DeTable<'_>) -> Machine {
    let mut top = reader.open(document, "the machine", None, TOP_KEYS);
    let mut machine = Machine {
        tick_ns: TICK_NS,
        ..Machine::default()
    };
    if let Some((line, value)) = top.entries.remove("name") {
        machine.name = reader.string(line, "name", value);
    }
    if let Some((line, value)) = top.entries.remove("tick_ns") {
        let tick_ns = reader.number_in(line, "tick_ns", value, 1..=MAX_NS);
        machine.tick_ns = tick_ns.unwrap_or(TICK_NS);
    }
    for (line, value) in reader.tables(&mut top, "node") {
        let node = node(reader, line, value);
        machine.nodes.extend(node);
    }
    machine
}

fn node(reader: &mut Reader, line: Line, value: &Value<'_>) -> Option<Node> {
    let mut table = reader.table(line, value, "[[node]]", NODE_KEYS)?;
    let mut node = Node {
        line,
        ..Node::default()
    };
    match table.entries.remove("name") {
        Some((line, value)) => {
            node.name = reader.string(line, "name", value).unwrap_or_default();
        }
        None => reader.problem(line, "the node has no name; add name = \"n0\""),
    }
    match table.entries.remove("memory_bytes") {
        Some((line, value)) => {
            let range = 1..=MAX_MEMORY_BYTES;
            let memory_bytes = reader.number_in(line, "memory_bytes", value, range);
            node.memory_bytes = memory_bytes.unwrap_or(1);
        }
        None => {
            let message = format!(
                "node {} has no memory; add memory_bytes = 8_000_000_000",
                node.name
            );
            reader.problem(line, message);
        }
    }
    let rate = rate(reader, &mut table);
    let Some((line, cores)) = table.entries.remove("cores") else {
        reader.problem(
            line,
            format!("node {} has no cores; {WRITE_CORES}", node.name),
        );
        return Some(node);
    };
    let DeValue::Array(items) = cores.get_ref() else {
        reader.problem(line, format!("cores is no list; {WRITE_CORES}"));
        return Some(node);
    };
    for item in items.iter() {
        let core = core(reader, item, rate);
        node.cores.extend(core);
    }
    Some(node)
}

fn rate(reader: &mut Reader, table: &mut Table<'_, '_>) -> Option<u64> {
    let (line, value) = table.entries.remove("rate_insns_per_s")?;
    reader.number_in(line, "rate_insns_per_s", value, 1..=MAX_RATE_INSNS_PER_S)
}

/// `rate` is that of the node.
fn core(reader: &mut Reader, value: &Value<'_>, rate_of_node: Option<u64>) -> Option<Core> {
    let line = reader.line_of(value);
    let mut core = Core::default();
    let mut rate_of_core = None;
    match value.get_ref() {
        DeValue::Table(_) => {
            let mut table = reader.table(line, value, "a core", CORE_KEYS)?;
            match table.entries.remove("name") {
                Some((line, value)) => core.name = reader.string(line, "name", value)?,
                None => {
                    reader.problem(line, format!("a core has no name; {WRITE_CORES}"));
                    return None;
                }
            }
            if let Some((line, value)) = table.entries.remove("cpu") {
                core.cpu = reader.number(line, "cpu", value);
            }
            rate_of_core = rate(reader, &mut table);
        }
        _ => core.name = reader.string(line, "a core", value)?,
    }
    match rate_of_core.or(rate_of_node) {
        Some(rate) => core.rate_insns_per_s = rate,
        None => reader.problem(
            line,
            format!(
                "core {} has no rate; add rate_insns_per_s = 1_000_000_000 to it or to its node",
                core.name
            ),
        ),
    }
    Some(core)
}

/// Whether the machine can be planned for.
pub(crate) fn check(machine: &Machine) -> Result<(), Vec<Problem>> {
    let mut problems = Vec::new();
    let mut problem = |line, message: String| problems.push(Problem::at(line, message));
    let tick_ns = machine.tick_ns;
    let mut range = |line, what: String, value: u64, most: u64| {
        if !(1..=most).contains(&value) {
            let (value, range) = (underscored(value), between(1, most));
            problem(line, format!("{what} is {value}; it must be {range}"));
        }
    };
    range(None, "tick_ns".into(), tick_ns, MAX_NS);
    for node in &machine.nodes {
        let name = &node.name;
        let what = format!("memory_bytes of node {name}");
        range(node.line, what, node.memory_bytes, MAX_MEMORY_BYTES);
        for core in &node.cores {
            let what = format!("rate_insns_per_s of core {} of node {name}", core.name);
            range(node.line, what, core.rate_insns_per_s, MAX_RATE_INSNS_PER_S);
        }
    }
    if machine.nodes.is_empty() {
        let message = "the machine has no node; add a [[node]] with name, memory_bytes, \
                       rate_insns_per_s and cores";
        problem(None, message.into());
    }
    let mut nodes = HashMap::new();
    for node in &machine.nodes {
        let name = &node.name;
        if name.is_empty() || nodes.insert(name, ()).is_some() {
            let message = format!("node name {name:?} is empty or taken; choose another");
            problem(node.line, message);
        }
        if node.cores.is_empty() {
            problem(node.line, format!("node {name} has no core; {WRITE_CORES}"));
        }
        let (mut names, mut cpus) = (HashMap::new(), HashMap::new());
        for core in &node.cores {
            let (line, core_name) = (node.line, &core.name);
            if core_name.is_empty() || names.insert(core_name, ()).is_some() {
                let message = format!(
                    "core name {core_name:?} of node {name} is empty or taken; choose another"
                );
                problem(line, message);
            }
            let Some(cpu) = core.cpu else {
                continue;
            };
            if let Some(first) = cpus.insert(cpu, core_name) {
                let message = format!(
                    "cores {first} and {core_name} of node {name} are both CPU {cpu}; correct one"
                );
                problem(line, message);
            }
        }
    }
    if problems.is_empty() {
        return Ok(());
    }
    problems.sort_by_key(|problem| problem.line);
    Err(problems)
}
