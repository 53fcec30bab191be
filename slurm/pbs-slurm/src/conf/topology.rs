// SPDX-License-Identifier: GPL-2.0
//! Switches of topology.conf.

use std::collections::{BTreeMap, HashSet};

use crate::conf::entry::{Entry, Error};
use crate::conf::host_list::expand;
use crate::conf::nodes::Node;

/// Leaf switch of each node, by the node's name.
pub type Switches = BTreeMap<String, String>;

/// Whether a value of TopologyPlugin makes Slurm read the switches.
pub(crate) fn is_tree(plugin: &str) -> bool {
    plugin.eq_ignore_ascii_case("topology/tree")
}

/// Returns the leaf switch of each node. Switches of switches have no nodes of their own. Names that
/// are no nodes are noted and left out, as by Slurm.
pub(crate) fn switches(
    entries: &[Entry],
    nodes: &[Node],
    unread: &mut Vec<Error>,
) -> Result<Switches, Error> {
    let known: HashSet<&str> = nodes.iter().map(|of| of.name.as_str()).collect();
    let mut switches = Switches::new();
    for entry in entries {
        let value = |key: &str| entry.keys.get(key).map(String::as_str);
        let (Some(switch), Some(list)) = (value("switchname"), value("nodes")) else {
            continue;
        };
        let hosts = expand(list).map_err(|error| Error::at(&entry.place, error.to_string()))?;
        for host in hosts {
            if host.eq_ignore_ascii_case("all") {
                let all = nodes.iter().map(|of| (of.name.clone(), switch.to_string()));
                switches.extend(all);
            } else if !known.contains(host.as_str()) {
                unread.push(Error::at(&entry.place, format!("there is no node {host}")));
            } else if let Some(other) = switches.insert(host.clone(), switch.into()) {
                let message = format!("node {host} is at switch {other} too; name it once");
                return Err(Error::at(&entry.place, message));
            }
        }
    }
    Ok(switches)
}
