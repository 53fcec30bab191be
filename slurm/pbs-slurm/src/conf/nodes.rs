// SPDX-License-Identifier: GPL-2.0
//! Nodes and partitions.

use std::collections::{BTreeMap, HashSet};

use crate::conf::entry::{Entry, Error, Place};
use crate::conf::host_list::{expand, ListError, MOST_HOSTS};

/// A node, as jobs see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Name of the node.
    pub name: String,
    /// CPUs that jobs get: without those kept for the system.
    pub cpus: u64,
    /// Memory that jobs get, in MiB.
    pub memory_mib: u64,
    /// Weight of the node: Slurm takes nodes with a greater weight later.
    pub weight: u64,
    /// Declared features.
    pub features: Vec<String>,
    /// Place of its description.
    pub place: Place,
}

/// A partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// Name of the partition.
    pub name: String,
    /// Nodes of the partition, each once, in the order of their list.
    pub nodes: Vec<String>,
    /// Other settings of the partition, or of all; keys in lower case.
    pub keys: BTreeMap<String, String>,
    /// Place of its description.
    pub place: Place,
}

impl Partition {
    /// Returns the value of a key.
    pub fn value(&self, key: &str) -> Option<&str> {
        let value = self.keys.get(&key.to_ascii_lowercase());
        value.map(String::as_str)
    }
}

/// A line, with what the lines `...Name=DEFAULT` before it say where it says nothing.
fn with_defaults<'a>(
    kind: &'static str,
    entries: impl Iterator<Item = &'a Entry>,
) -> impl Iterator<Item = (String, BTreeMap<String, String>, &'a Place)> {
    let mut defaults: BTreeMap<String, String> = BTreeMap::new();
    entries.filter_map(move |entry| {
        let mut keys = entry.keys.clone();
        let name = keys.remove(kind).unwrap_or_default();
        if name.eq_ignore_ascii_case("default") {
            defaults.extend(keys);
            return None;
        }
        for (key, value) in &defaults {
            keys.entry(key.clone()).or_insert_with(|| value.clone());
        }
        Some((name, keys, &entry.place))
    })
}

fn hosts(list: &str, place: &Place) -> Result<Vec<String>, Error> {
    expand(list).map_err(|error| Error::at(place, error.to_string()))
}

pub(crate) fn nodes<'a>(entries: impl Iterator<Item = &'a Entry>) -> Result<Vec<Node>, Error> {
    let mut nodes: Vec<Node> = Vec::new();
    for (names, keys, place) in with_defaults("nodename", entries) {
        let number = |key: &str| -> Result<Option<u64>, Error> {
            let Some(value) = keys.get(key) else {
                return Ok(None);
            };
            let message = || format!("{key}={value} is not a number");
            let number = value.parse().ok().filter(|&of| of < 1 << 40);
            number.map(Some).ok_or_else(|| Error::at(place, message()))
        };
        let of = |key, default| Ok::<u64, Error>(number(key)?.unwrap_or(default));
        let boards = of("boards", 1)?;
        let sockets = match number("sockets")? {
            Some(sockets) => sockets,
            None => boards.saturating_mul(of("socketsperboard", 1)?),
        };
        let threads = of("threadspercore", 1)?;
        let cores = sockets.saturating_mul(of("corespersocket", 1)?);
        let cpus = match number("cpus")?.or(number("procs")?) {
            Some(cpus) => cpus,
            None => cores.saturating_mul(threads),
        };
        let kept = of("corespeccount", 0)?.saturating_mul(threads);
        let memory_mib = of("realmemory", 1)?.saturating_sub(of("memspeclimit", 0)?);
        let features = ["features", "feature"].into_iter().find_map(|key| keys.get(key));
        let features = features.map_or("", String::as_str).split(',');
        let node = Node {
            name: String::new(),
            cpus: cpus.saturating_sub(kept),
            memory_mib,
            weight: of("weight", 1)?,
            features: features.filter(|of| !of.is_empty()).map(Into::into).collect(),
            place: place.clone(),
        };
        for name in hosts(&names, place)? {
            let node = node.clone();
            nodes.push(Node { name, ..node });
        }
        if nodes.len() > MOST_HOSTS {
            return Err(Error::at(place, ListError::TooMany.to_string()));
        }
    }
    let mut seen = HashSet::new();
    if let Some(twice) = nodes.iter().find(|of| !seen.insert(&of.name)) {
        let message = format!("node {} is declared twice", twice.name);
        return Err(Error::at(&twice.place, message));
    }
    Ok(nodes)
}

pub(crate) fn partitions<'a>(
    entries: impl Iterator<Item = &'a Entry>,
    sets: impl Iterator<Item = &'a Entry>,
    nodes: &[Node],
) -> Result<Vec<Partition>, Error> {
    let mut by_set: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for set in sets {
        let value = |key: &str| set.keys.get(key).map(String::as_str);
        let mut of = hosts(value("nodes").unwrap_or_default(), &set.place)?;
        if let Some(feature) = value("feature") {
            let with = nodes.iter().filter(|of| of.features.iter().any(|of| of == feature));
            of.extend(with.map(|of| of.name.clone()));
        }
        by_set.insert(value("nodeset").unwrap_or_default().into(), of);
    }
    let known: HashSet<&str> = nodes.iter().map(|of| of.name.as_str()).collect();
    let mut partitions: Vec<Partition> = Vec::new();
    for (names, keys, place) in with_defaults("partitionname", entries) {
        let list = keys.get("nodes").map_or("", String::as_str);
        let mut of = Vec::new();
        let mut seen = HashSet::new();
        for name in hosts(list, place)? {
            let found = if name.eq_ignore_ascii_case("all") {
                nodes.iter().map(|of| of.name.clone()).collect()
            } else if let Some(set) = by_set.get(&name) {
                set.clone()
            } else if known.contains(name.as_str()) {
                vec![name]
            } else {
                return Err(Error::at(place, format!("there is no node {name}")));
            };
            of.extend(found.into_iter().filter(|name| seen.insert(name.clone())));
        }
        // One line may describe several; a later one replaces what was said.
        for name in names.split(',') {
            partitions.retain(|of| of.name != name);
            partitions.push(Partition {
                name: name.into(),
                nodes: of.clone(),
                keys: keys.clone(),
                place: place.clone(),
            });
        }
    }
    Ok(partitions)
}
