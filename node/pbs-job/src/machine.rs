// SPDX-License-Identifier: GPL-2.0
//! Machines, from TOML and to it.

mod devices;
mod resources;

use std::collections::HashMap;

use pbs_text::reader::{read, Reader, Table, Value};
use pbs_text::{
    append, append_line, between, quoted, underscored, write_list, Line, Problem, Problems,
};
use toml::de::{DeTable, DeValue};

use crate::{
    Core, Link, Machine, Node, DEMAND_PERMILLE, MAX_BANDWIDTH_BYTES_PER_S, MAX_MEMORY_BYTES,
    MAX_NS, MAX_RATE_INSNS_PER_S, TICK_NS,
};

const TOP_KEYS: &[&str] =
    &["name", "tick_ns", "demand_permille", "node", "link", "resource", "device", "sharing"];
const NODE_KEYS: &[&str] = &["name", "memory_bytes", "rate_insns_per_s", "cores"];
const CORE_KEYS: &[&str] = &["name", "cpu", "rate_insns_per_s"];
const LINK_KEYS: &[&str] = &["nodes", "latency_ns", "bandwidth_bytes_per_s"];
const WRITE_NODES: &str = "write the names of two nodes: nodes = [\"n0\", \"n1\"]";
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
        append_line!(out, "name = {}", quoted(name));
    }
    if machine.tick_ns != TICK_NS {
        append_line!(out, "tick_ns = {}", underscored(machine.tick_ns));
    }
    if let Some(permille) = machine.demand_permille {
        append_line!(out, "demand_permille = {permille}");
    }
    for node in &machine.nodes {
        append!(
            out,
            "\n[[node]]\nname = {}\nmemory_bytes = {}\n",
            quoted(&node.name),
            underscored(node.memory_bytes)
        );
        let mut rates = node.cores.iter().map(|core| core.rate_insns_per_s);
        let first = rates.next();
        let shared = first.filter(|&first| rates.all(|rate| rate == first));
        if let Some(rate) = shared {
            append_line!(out, "rate_insns_per_s = {}", underscored(rate));
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
    for link in &machine.links {
        let names = link.nodes.map(|node| quoted(&machine.nodes[node].name));
        append!(
            out,
            "\n[[link]]\nnodes = [{}]\nlatency_ns = {}\nbandwidth_bytes_per_s = {}\n",
            names.join(", "),
            underscored(link.latency_ns),
            underscored(link.bandwidth_bytes_per_s)
        );
    }
    resources::write(&mut out, machine);
    devices::write(&mut out, machine);
    out
}

fn machine(reader: &mut Reader, document: &DeTable<'_>) -> Machine {
    let mut top = reader.open(document, "the machine", None, TOP_KEYS);
    let mut machine = Machine { tick_ns: TICK_NS, ..Machine::default() };
    if let Some((line, value)) = top.entries.remove("name") {
        machine.name = reader.string(line, "name", value);
    }
    if let Some((line, value)) = top.entries.remove("tick_ns") {
        let tick_ns = reader.number_in(line, "tick_ns", value, 1..=MAX_NS);
        machine.tick_ns = tick_ns.unwrap_or(TICK_NS);
    }
    if let Some((line, value)) = top.entries.remove("demand_permille") {
        machine.demand_permille = reader.number_in(line, "demand_permille", value, DEMAND_PERMILLE);
    }
    for (line, value) in reader.tables(&mut top, "node") {
        let node = node(reader, line, value);
        machine.nodes.extend(node);
    }
    for (line, value) in reader.tables(&mut top, "link") {
        let link = link(reader, line, value, &machine.nodes);
        machine.links.extend(link);
    }
    for (line, value) in reader.tables(&mut top, "resource") {
        let resource = resources::resource(reader, line, value, &machine.nodes);
        machine.resources.extend(resource);
    }
    for (line, value) in reader.tables(&mut top, "device") {
        let device = devices::device(reader, line, value);
        machine.devices.extend(device);
    }
    for (line, value) in reader.tables(&mut top, "sharing") {
        let sharing = devices::sharing(reader, line, value);
        machine.sharing.extend(sharing);
    }
    machine
}

fn link(reader: &mut Reader, line: Line, value: &Value<'_>, nodes: &[Node]) -> Option<Link> {
    let mut table = reader.table(line, value, "[[link]]", LINK_KEYS)?;
    let mut link = Link { line, ..Link::default() };
    if let Some((line, value)) = table.entries.remove("latency_ns") {
        link.latency_ns = reader.number_in(line, "latency_ns", value, 0..=MAX_NS)?;
    }
    match table.entries.remove("bandwidth_bytes_per_s") {
        Some((line, value)) => {
            let range = 1..=MAX_BANDWIDTH_BYTES_PER_S;
            let bandwidth = reader.number_in(line, "bandwidth_bytes_per_s", value, range);
            link.bandwidth_bytes_per_s = bandwidth?;
        }
        None => {
            let message = "the link has no bandwidth; add bandwidth_bytes_per_s = 125_000_000";
            reader.problem(line, message);
            return None;
        }
    }
    let Some((line, value)) = table.entries.remove("nodes") else {
        reader.problem(line, format!("the link has no nodes; {WRITE_NODES}"));
        return None;
    };
    let DeValue::Array(items) = value.get_ref() else {
        reader.problem(line, format!("nodes is no list; {WRITE_NODES}"));
        return None;
    };
    let mut found = Vec::new();
    for item in items.iter() {
        found.push(node_named(reader, line, item, nodes, WRITE_NODES)?);
    }
    found.sort_unstable();
    match found[..] {
        [one, other] if one != other => link.nodes = [one, other],
        _ => {
            let message = format!("a link connects two different nodes; {WRITE_NODES}");
            reader.problem(line, message);
            return None;
        }
    }
    Some(link)
}

/// Index of the node whose name stands there.
fn node_named(
    reader: &mut Reader,
    line: Line,
    value: &Value<'_>,
    nodes: &[Node],
    write: &str,
) -> Option<usize> {
    let name = reader.string(line, "a node", value)?;
    let found = nodes.iter().position(|node| node.name == name);
    if found.is_none() {
        reader.problem(line, format!("there is no node {name}; {write}"));
    }
    found
}

fn node(reader: &mut Reader, line: Line, value: &Value<'_>) -> Option<Node> {
    let mut table = reader.table(line, value, "[[node]]", NODE_KEYS)?;
    let mut node = Node { line, ..Node::default() };
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
            let message =
                format!("node {} has no memory; add memory_bytes = 8_000_000_000", node.name);
            reader.problem(line, message);
        }
    }
    let rate = rate(reader, &mut table);
    let Some((line, cores)) = table.entries.remove("cores") else {
        reader.problem(line, format!("node {} has no cores; {WRITE_CORES}", node.name));
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
    let mut problems = Problems::default();
    let mut twice = Problems::default();
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
    for (index, link) in machine.links.iter().enumerate() {
        let names = link.nodes.map(|node| machine.nodes[node].name.as_str());
        let [one, other] = names;
        let what = format!("bandwidth_bytes_per_s of the link of {one} and {other}");
        let bandwidth = link.bandwidth_bytes_per_s;
        range(link.line, what, bandwidth, MAX_BANDWIDTH_BYTES_PER_S);
        if link.latency_ns > MAX_NS {
            let what = format!("latency_ns of the link of {one} and {other}");
            range(link.line, what, link.latency_ns, MAX_NS);
        }
        if machine.links[..index].iter().any(|before| before.nodes == link.nodes) {
            let message = format!("nodes {one} and {other} have a link already; remove one");
            twice.push(Problem::at(link.line, message));
        }
    }
    resources::check(machine, &mut twice);
    devices::check(machine, &mut twice);
    if machine.nodes.is_empty() {
        let message = "the machine has no node; add a [[node]] with name, memory_bytes, \
                       rate_insns_per_s and cores";
        problem(None, message.into());
    }
    if let Some(permille) = machine.demand_permille.filter(|it| !DEMAND_PERMILLE.contains(it)) {
        let (permille, range) = (underscored(permille), between(0, *DEMAND_PERMILLE.end()));
        problem(None, format!("demand_permille is {permille}; it must be {range}"));
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
    problems.append(twice);
    problems.none()
}
