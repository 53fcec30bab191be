// SPDX-License-Identifier: GPL-2.0
//! Nodes and partitions.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use crate::conf::entry::{Entry, Error, Place};
use crate::conf::host_list::{expand, ListError, MOST_HOSTS};

/// A node, as jobs see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Name of the node.
    pub name: String,
    /// CPUs that jobs get: without those kept for the system.
    pub cpus: u64,
    /// CPUs of a core that Slurm schedules: more than one if its CPUs are threads.
    pub cpus_per_core: u64,
    /// `CpuSpecList` with a CPU that the node does not have: Slurm ignores the list.
    pub ignored_spec_list: Option<String>,
    /// Memory that jobs get, in MiB.
    pub memory_mib: u64,
    /// Whether the memory is declared; Slurm takes 1 MiB otherwise.
    pub has_memory: bool,
    /// Disk space for temporary files, in MiB.
    pub tmp_mib: u64,
    /// Declared state in capitals, such as `UNKNOWN`, `FUTURE`, `CLOUD` or `DOWN`.
    pub state: String,
    /// Weight of the node: Slurm takes nodes with a greater weight later.
    pub weight: u64,
    /// Generic resources, such as accelerators: `Gres`, as it is declared.
    pub gres: Option<String>,
    /// Declared features.
    pub features: Vec<String>,
    /// Place of its description.
    pub place: Place,
}

impl Node {
    /// Whether Slurm does not have the node yet.
    pub fn is_future(&self) -> bool {
        self.state == "FUTURE"
    }
}

/// CPUs of a node.
struct Cpus {
    /// Number of all CPUs.
    all: u64,
    /// Number of CPUs that are kept for the system.
    kept: u64,
    /// Number of CPUs of a core.
    of_core: u64,
    /// Whether the list of CPUs for the system names one that is not there.
    is_list_ignored: bool,
}

/// Computes the CPUs as Slurm does: `CPUEfctv` of `scontrol show node` is `all - kept`.
fn cpus(
    number: &dyn Fn(&str) -> Result<Option<u64>, Error>,
    spec_list: Option<&str>,
    place: &Place,
) -> Result<Cpus, Error> {
    let at_least_one = |key| Ok::<u64, Error>(number(key)?.unwrap_or(1).max(1));
    let cores_of_socket = at_least_one("CoresPerSocket")?;
    let threads = at_least_one("ThreadsPerCore")?;
    let boards = at_least_one("Boards")?;
    let declared = number("CPUs")?.or(number("Procs")?).map(|cpus| cpus.max(1));
    let of_socket = cores_of_socket.saturating_mul(threads);
    // slurmd -C prints SocketsPerBoard, which counts where Sockets is declared for all nodes.
    let sockets = match (number("SocketsPerBoard")?, number("Sockets")?, declared) {
        (Some(sockets), _, _) => boards.saturating_mul(sockets.max(1)),
        (None, Some(sockets), _) => sockets.max(1),
        (None, None, Some(cpus)) if cpus % of_socket == 0 => cpus / of_socket,
        (None, None, _) => boards,
    };
    let cores = sockets.saturating_mul(cores_of_socket);
    let all_threads = cores.saturating_mul(threads);
    // Any other number is no number of parts, and Slurm corrects it.
    let is_right = |cpus: &u64| [sockets, cores, all_threads].contains(cpus);
    let all = declared.filter(is_right).unwrap_or(all_threads);
    let of_core = if cores >= all { 1 } else { threads };
    let listed = match spec_list.filter(|list| !list.is_empty()) {
        Some(list) => Some(numbers(list).ok_or_else(|| {
            let message = format!("CpuSpecList={list} is not a list of CPUs such as 0,8-9");
            Error::at(place, message)
        })?),
        None => None,
    };
    // Slurm ignores a list with a CPU that the node does not have.
    let is_list_ignored = listed.iter().flatten().any(|&cpu| cpu >= all);
    let kept_cores = match listed.filter(|_| !is_list_ignored) {
        Some(listed) => {
            let kept: HashSet<u64> = listed.iter().map(|cpu| cpu / of_core).collect();
            kept.len() as u64
        }
        // Slurm keeps one core instead of all.
        None => number("CoreSpecCount")?.map_or(0, |kept| if kept < cores { kept } else { 1 }),
    };
    Ok(Cpus { all, kept: kept_cores.saturating_mul(of_core), of_core, is_list_ignored })
}

/// Reads `0,8-9`.
fn numbers(list: &str) -> Option<BTreeSet<u64>> {
    const MOST: u64 = 1 << 16;
    let mut numbers = BTreeSet::new();
    let mut listed = 0;
    for part in list.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.trim().parse().ok()?, last.trim().parse::<u64>().ok()?);
        listed += last.saturating_sub(first).saturating_add(1);
        if last >= MOST || listed > MOST {
            return None;
        }
        numbers.extend(first..=last);
    }
    Some(numbers)
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

/// Greatest number that is read.
const MOST: u64 = 1 << 40;

/// Reads a number as Slurm does: `64000`, `64K` (times 1024), `0x40`, or `0100` in octal.
fn number_of(text: &str) -> Option<u64> {
    let (digits, unit) = match text.strip_suffix(['k', 'K']) {
        Some(digits) => (digits, 1024),
        None => (text, 1),
    };
    let (digits, radix) = match digits.as_bytes() {
        [b'0', b'x' | b'X', _, ..] => (&digits[2..], 16),
        [b'0', _, ..] => (&digits[1..], 8),
        _ => (digits, 10),
    };
    // A sign is none of a number.
    let is_digit = digits.bytes().all(|digit| digit.is_ascii_alphanumeric());
    let number = u64::from_str_radix(digits, radix).ok().filter(|_| is_digit)?;
    number.checked_mul(unit).filter(|&number| number < MOST)
}

fn is_infinite(text: &str) -> bool {
    ["UNLIMITED", "INFINITE"].iter().any(|word| text.eq_ignore_ascii_case(word))
}

/// Keys with a second name, which counts where both stand in one line.
const ALIASES: [(&str, &str); 1] = [("features", "feature")];

/// A line, with what the lines `...Name=DEFAULT` before it say where it says nothing.
fn with_defaults<'a>(
    kind: &'static str,
    entries: impl Iterator<Item = &'a Entry>,
) -> impl Iterator<Item = (String, BTreeMap<String, String>, &'a Place)> {
    let mut defaults: BTreeMap<String, String> = BTreeMap::new();
    entries.filter_map(move |entry| {
        let mut keys = entry.keys.clone();
        for (alias, key) in ALIASES {
            if let Some(value) = keys.remove(alias) {
                keys.entry(key.into()).or_insert(value);
            }
        }
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
            let Some(value) = keys.get(&key.to_ascii_lowercase()) else {
                return Ok(None);
            };
            let unit = match key {
                "RealMemory" | "MemSpecLimit" => "; it is the memory in MiB, such as 64000",
                "TmpDisk" => "; it is the disk space in MiB, such as 200000",
                _ => "; write a number from 0 on",
            };
            let message = || format!("{key}={value} is not a number{unit}");
            number_of(value).map(Some).ok_or_else(|| Error::at(place, message()))
        };
        let of = |key, default| Ok::<u64, Error>(number(key)?.unwrap_or(default));
        let cpus = cpus(&number, keys.get("cpuspeclist").map(String::as_str), place)?;
        let memory_mib = of("RealMemory", 1)?;
        // Slurm ignores a limit that leaves nothing.
        let kept_mib = of("MemSpecLimit", 0)?;
        let kept_mib = if kept_mib < memory_mib { kept_mib } else { 0 };
        let state = keys.get("state").map_or("UNKNOWN", String::as_str);
        let features = keys.get("feature").map_or("", String::as_str).split(',');
        // The last nodes of all have such a weight.
        let is_last = keys.get("weight").is_some_and(|weight| is_infinite(weight));
        let weight = if is_last { u64::from(u32::MAX) } else { of("Weight", 1)? };
        let node = Node {
            name: String::new(),
            cpus: cpus.all.saturating_sub(cpus.kept),
            cpus_per_core: cpus.of_core,
            ignored_spec_list: keys.get("cpuspeclist").filter(|_| cpus.is_list_ignored).cloned(),
            memory_mib: memory_mib - kept_mib,
            has_memory: keys.contains_key("realmemory"),
            tmp_mib: of("TmpDisk", 0)?,
            state: state.to_ascii_uppercase(),
            weight,
            gres: keys.get("gres").filter(|gres| !gres.is_empty()).cloned(),
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

/// Sets the states of lines `DownNodes=`.
pub(crate) fn down<'a>(
    entries: impl Iterator<Item = &'a Entry>,
    nodes: &mut [Node],
) -> Result<(), Error> {
    for (names, keys, place) in with_defaults("downnodes", entries) {
        let state = keys.get("state").map_or("DOWN", String::as_str).to_ascii_uppercase();
        let names: HashSet<String> = hosts(&names, place)?.into_iter().collect();
        let is_all = names.iter().any(|name| name.eq_ignore_ascii_case("all"));
        for node in nodes.iter_mut().filter(|of| is_all || names.contains(&of.name)) {
            node.state = state.clone();
        }
    }
    Ok(())
}

pub(crate) fn partitions<'a>(
    entries: impl Iterator<Item = &'a Entry>,
    sets: impl Iterator<Item = &'a Entry>,
    nodes: &[Node],
) -> Result<Vec<Partition>, Error> {
    let known: HashSet<&str> = nodes.iter().map(|of| of.name.as_str()).collect();
    let mut by_set: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for set in sets {
        let value = |key: &str| set.keys.get(key).map(String::as_str);
        let mut of = hosts(value("nodes").unwrap_or_default(), &set.place)?;
        if let Some(name) = of.iter().find(|name| !known.contains(name.as_str())) {
            let message =
                format!("there is no node {name}; a NodeSet lists nodes, and no other NodeSet");
            return Err(Error::at(&set.place, message));
        }
        if let Some(feature) = value("feature") {
            let with = nodes.iter().filter(|of| of.features.iter().any(|of| of == feature));
            of.extend(with.map(|of| of.name.clone()));
        }
        by_set.insert(value("nodeset").unwrap_or_default().into(), of);
    }
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
                let message = format!(
                    "there is no node and no NodeSet {name}; declare it by NodeName or NodeSet, or \
                     include the file that does"
                );
                return Err(Error::at(place, message));
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
