// SPDX-License-Identifier: GPL-2.0
//! Switches of topology.conf.

use std::collections::{BTreeMap, HashSet};

use crate::conf::entry::{Entry, Error, Place};
use crate::conf::host_list::{compress, expand, MOST_HOSTS};
use crate::conf::nodes::Node;

/// Leaf switch of each node, by the node's name.
pub type Switches = BTreeMap<String, String>;

/// A part of topology.conf that the site does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unplanned {
    /// Slurm does not read the file.
    Unused(Place),
    /// These names of a switch are no nodes.
    NoNodes(Place, String),
    /// These nodes are at other switches, too, and stay there.
    Elsewhere(Place, String),
}

/// Hosts that all switches together name at most. Each is one string in memory.
const MOST_NAMED: usize = 4 * MOST_HOSTS;

/// Whether a value of TopologyPlugin makes Slurm read the switches.
pub(crate) fn is_tree(plugin: &str) -> bool {
    plugin.eq_ignore_ascii_case("topology/tree")
}

/// Returns the leaf switch of each node. Switches of switches have no nodes of their own. Names
/// that are no nodes are noted and left out, as by Slurm. A node at several switches is noted, and
/// belongs to the first.
pub(crate) fn switches(
    entries: &[Entry],
    nodes: &[Node],
    unplanned: &mut Vec<Unplanned>,
) -> Result<Switches, Error> {
    let known: HashSet<&str> = nodes.iter().map(|of| of.name.as_str()).collect();
    let mut switches = Switches::new();
    let mut left = MOST_NAMED;
    for entry in entries {
        let value = |key: &str| entry.keys.get(key).map(String::as_str);
        let (Some(switch), Some(list)) = (value("switchname"), value("nodes")) else {
            continue;
        };
        let mut hosts = expand(list).map_err(|error| Error::at(&entry.place, error.to_string()))?;
        left = left.checked_sub(hosts.len()).ok_or_else(|| {
            let message = format!(
                "the switches together name more than {MOST_NAMED} hosts; name each node once, at \
                 its leaf switch"
            );
            Error::at(&entry.place, message)
        })?;
        if hosts.iter().any(|host| host.eq_ignore_ascii_case("all")) {
            hosts = nodes.iter().map(|of| of.name.clone()).collect();
        }
        let (mut no_nodes, mut elsewhere) = (Vec::new(), Vec::new());
        for host in &hosts {
            if !known.contains(host.as_str()) {
                no_nodes.push(host.as_str());
            } else if switches.get(host).is_some_and(|other| other != switch) {
                elsewhere.push(host.as_str());
            } else {
                switches.insert(host.clone(), switch.into());
            }
        }
        let place = || entry.place.clone();
        if !no_nodes.is_empty() {
            unplanned.push(Unplanned::NoNodes(place(), compress(&no_nodes)));
        }
        if !elsewhere.is_empty() {
            unplanned.push(Unplanned::Elsewhere(place(), compress(&elsewhere)));
        }
    }
    Ok(switches)
}
