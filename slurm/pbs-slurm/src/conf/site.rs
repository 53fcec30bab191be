// SPDX-License-Identifier: GPL-2.0
//! The site's file of a partition.

use std::collections::BTreeMap;

use pbs_text::{append, append_line};

use crate::conf::check::needed_release_timeout_s;
use crate::conf::nodes::Node;
use crate::conf::read::Conf;
use crate::conf::times::seconds;
use crate::demands::{feature_resource, gres_of, license_resource, licenses_of, word, TMP_DISK};

/// Numbers of nodes with more digits are part of the name.
const MOST_DIGITS: usize = 9;

/// Time for the release of nodes of a site that names none.
const USUAL_RELEASE_TIMEOUT_S: u64 = 60;

/// Site file for `pbsctl cluster new --site`: nodes of a partition with their CPUs, memory, disk
/// space, generic resources and features, licences of the cluster, the nodes the dearer the later
/// Slurm would take them, the longest time of a job, and the time for the release of nodes where
/// Slurm's is longer than the usual one.
///
/// Nodes that follow each other and are alike are described once.
pub fn site_of(conf: &Conf, partition: &str) -> String {
    let nodes = conf.nodes(partition);
    let name = conf.value("ClusterName").unwrap_or("cluster");
    let mut text = format!(
        "# SPDX-License-Identifier: GPL-2.0\n\
         # Partition {} of {}.\n\nname = \"{}\"\n",
        partition.escape_debug(),
        conf.path.to_string_lossy().escape_debug(),
        word(name)
    );
    let of = conf.partition(partition);
    let time = |key| of.and_then(|of| of.value(key)).and_then(seconds);
    if let Some(default_s) = time("DefaultTime").filter(|&of| of > 0) {
        append_line!(text, "default_duration = \"{default_s}s\"");
    }
    let release_timeout_s = needed_release_timeout_s(conf);
    if release_timeout_s > USUAL_RELEASE_TIMEOUT_S {
        text += "# A job that ignores SIGTERM keeps its nodes for KillWait.\n";
        append_line!(text, "release_timeout = \"{release_timeout_s}s\"");
    }
    if !conf.switches.is_empty() {
        text += "# The switches of topology.conf.\nmapping = \"switches\"\n";
    }
    if let Some(cpus) = conf.cpus_per_core(partition) {
        text += "# Slurm gives jobs whole cores of that many CPUs.\n";
        append_line!(text, "threads_per_core = {cpus}");
    }
    for (name, count) in conf.value("Licenses").and_then(licenses_of).unwrap_or_default() {
        append_line!(text, "\n[resource.{}]\nscope = \"job\"", key(&license_resource(&name)));
        append_line!(text, "amount = {count}");
    }
    let mut weights: Vec<u64> = nodes.iter().map(|of| of.weight).collect();
    weights.sort_unstable();
    weights.dedup();
    let ranks: BTreeMap<u64, usize> = weights.into_iter().zip(0..).collect();
    let mut rest = nodes.as_slice();
    while let Some(first) = rest.first() {
        let switch = conf.switches.get(&first.name);
        let at_switch = rest.iter().take_while(|of| conf.switches.get(&of.name) == switch);
        let alike = alike(&rest[..at_switch.count()]);
        append!(text, "\n[[nodes]]\n{}", names(&first.name, alike));
        let more = more(first);
        append_line!(text, "has = \"ncpus={}:mem={}m{more}\"", first.cpus, first.memory_mib);
        if ranks[&first.weight] > 0 {
            append_line!(text, "prio = {}", ranks[&first.weight]);
        }
        if let Some(switch) = switch {
            // A name with % is a pattern.
            append_line!(text, "switch = \"{}\"", word(switch));
        }
        rest = &rest[alike..];
    }
    if let Some(most_s) = time("MaxTime").filter(|&of| of > 0) {
        text += "\n# MaxTime of the partition.\n[[limit]]\nfor = \"everyone\"\nresource = \"*\"\n";
        append_line!(text, "duration = \"{most_s}s\"");
    }
    text
}

/// A key of the file, quoted where that is needed.
fn key(name: &str) -> String {
    let is_bare = name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c));
    if is_bare {
        name.into()
    } else {
        format!("\"{name}\"")
    }
}

/// Disk space, generic resources and features of a node.
fn more(node: &Node) -> String {
    let mut text = String::new();
    if node.tmp_mib > 0 {
        append!(text, ":{TMP_DISK}={}m", node.tmp_mib);
    }
    let mut amounts: BTreeMap<String, u64> = BTreeMap::new();
    for of in node.gres.as_deref().and_then(gres_of).unwrap_or_default() {
        for resource in of.resources() {
            let amount = amounts.entry(resource).or_default();
            *amount = amount.saturating_add(of.count);
        }
    }
    for (resource, amount) in amounts.into_iter().filter(|&(_, amount)| amount > 0) {
        append!(text, ":{resource}={amount}");
    }
    for feature in &node.features {
        append!(text, ":{}=yes", feature_resource(feature));
    }
    text
}

/// Number of first nodes with the same description and consecutive numbers.
fn alike(nodes: &[Node]) -> usize {
    let first = &nodes[0];
    let Some((_, number, _)) = numbered(&first.name) else {
        return 1;
    };
    let pattern = pattern(&first.name);
    let are_alike = |(node, expected): &(&Node, u64)| {
        pattern == self::pattern_as(&node.name, &first.name)
            && numbered(&node.name).is_some_and(|(_, number, _)| number == *expected)
            && (node.cpus, node.memory_mib, node.tmp_mib, node.weight)
                == (first.cpus, first.memory_mib, first.tmp_mib, first.weight)
            && (&node.gres, &node.features) == (&first.gres, &first.features)
    };
    nodes.iter().zip(number..).take_while(are_alike).count()
}

/// Part of a name before the last digits, their number, and their count.
fn numbered(name: &str) -> Option<(&str, u64, usize)> {
    let digits = name.bytes().rev().take_while(u8::is_ascii_digit).count();
    let (before, number) = name.split_at(name.len() - digits);
    let number = number.parse().ok().filter(|_| digits <= MOST_DIGITS)?;
    Some((before, number, digits))
}

/// `n%02d` of `n01`, `n%d` of `n1`.
fn pattern(name: &str) -> Option<String> {
    let (before, _, digits) = numbered(name)?;
    Some(match digits {
        1 => format!("{before}%d"),
        _ => format!("{before}%0{digits}d"),
    })
}

/// The pattern of `first`, if that makes `name` of its number.
fn pattern_as(name: &str, first: &str) -> Option<String> {
    let (before, _, digits) = numbered(first)?;
    let (of, number, _) = numbered(name)?;
    let is_made = of == before && format!("{before}{number:0digits$}") == name;
    pattern(first).filter(|_| is_made)
}

fn names(first: &str, count: usize) -> String {
    match (pattern(first), numbered(first)) {
        (Some(pattern), Some((_, number, _))) if count > 1 => {
            let pattern = pattern.escape_debug().to_string();
            format!("name = \"{pattern}\"\nfirst = {number}\ncount = {count}\n")
        }
        _ => format!("name = \"{}\"\n", first.escape_debug()),
    }
}
