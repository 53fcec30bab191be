// SPDX-License-Identifier: GPL-2.0
//! Demands of jobs beside cores and memory: generic resources, disk space, features of nodes,
//! licences, and the limit of an array. The site file of a partition has the same names.

use std::collections::{BTreeMap, BTreeSet};

use pbs_resources::{is_word, Item, Value, AVOIDED_NODES};

use crate::conf::expand;

/// Name of the disk space for temporary files in the site file.
pub(crate) const TMP_DISK: &str = "tmp-disk";

/// Part of a job to which an amount of a generic resource belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Per {
    /// Each node.
    Node,
    /// Each task.
    Task,
    /// All nodes together.
    Job,
}

/// Amount of a generic resource, such as accelerators.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Gres {
    /// Name of the resource: `gpu`.
    pub name: String,
    /// Type of the resource, such as `a100`; `None`: any.
    pub kind: Option<String>,
    /// Number of units.
    pub count: u64,
}

impl Gres {
    /// Names of the resources in the site file, of which a job takes the amount: the one without a
    /// type, and the one with it.
    pub(crate) fn resources(&self) -> impl Iterator<Item = String> {
        let all = format!("gres-{}", word(&self.name));
        let typed = self.kind.as_ref().map(|kind| format!("{all}-{}", word(kind)));
        [Some(all), typed].into_iter().flatten()
    }
}

/// Demands of a job beside cores and memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Demands {
    /// Generic resources.
    pub gres: Vec<(Per, Gres)>,
    /// Number of cores for each accelerator (`--cpus-per-gpu`); 0: not given.
    pub cpus_per_gpu: u64,
    /// Memory for each accelerator (`--mem-per-gpu`); 0: not given.
    pub bytes_per_gpu: u64,
    /// Disk space for temporary files on each node; 0: not given.
    pub tmp_bytes: u64,
    /// Names of nodes that it does not use, each once and in their order.
    pub excluded: Vec<String>,
    /// Features that each node has.
    pub features: Vec<String>,
    /// Licences with their numbers.
    pub licenses: Vec<(String, u64)>,
    /// Greatest number of tasks on a node; 0: not given.
    pub tasks_per_node: u64,
    /// Greatest number of elements of the job's array that run at the same time; 0: no limit.
    pub throttle: u64,
}

impl Demands {
    /// Units of a generic resource, of all types together, on a node that has so many tasks.
    pub(crate) fn units_each(&self, tasks: u64, name: &str) -> u64 {
        let all = format!("gres-{}", word(name));
        let units = self.gres_of_node(tasks).into_iter().find(|(resource, _)| *resource == all);
        units.map_or(0, |(_, units)| units)
    }

    /// Generic resources of a node that has so many tasks, by their names in the site file.
    ///
    /// Amounts for each node, for each task and for the job are conditions on the same units: the
    /// batch system takes as many as the greatest of them. Of two for the same part, the last is
    /// valid.
    fn gres_of_node(&self, tasks: u64) -> BTreeMap<String, u64> {
        let mut all = BTreeMap::new();
        for part in [Per::Node, Per::Task, Per::Job] {
            let given = self.gres.iter().filter(|(per, _)| *per == part);
            let of_types: BTreeMap<_, _> =
                given.map(|(_, of)| ((&of.name, &of.kind), of)).collect();
            let times = if part == Per::Task { tasks } else { 1 };
            let mut of_part: BTreeMap<String, u64> = BTreeMap::new();
            for of in of_types.into_values() {
                let count = of.count.saturating_mul(times);
                for resource in of.resources() {
                    let sum = of_part.entry(resource).or_default();
                    *sum = sum.saturating_add(count);
                }
            }
            for (resource, count) in of_part {
                let most = all.entry(resource).or_default();
                *most = count.max(*most);
            }
        }
        all
    }

    /// Resources of a chunk on a node that has so many tasks.
    pub(crate) fn of_node(&self, tasks: u64) -> Vec<Item> {
        let gres = self.gres_of_node(tasks).into_iter();
        let gres = gres.map(|(resource, count)| Item { resource, value: Value::Amount(count) });
        let features: BTreeSet<&String> = self.features.iter().collect();
        let features = features.into_iter().map(|feature| Item {
            resource: feature_resource(feature),
            value: Value::Word("yes".into()),
        });
        let tmp = Some(self.tmp_bytes).filter(|&bytes| bytes > 0);
        let tmp = tmp.map(|bytes| Item { resource: TMP_DISK.into(), value: Value::Amount(bytes) });
        gres.chain(tmp).chain(features).collect()
    }

    /// Whether a node has the features and generic resources that a job needs for a task there.
    pub(crate) fn fit(&self, features: &[String], gres: &[Gres]) -> bool {
        let has = |name: &str| {
            let of_name = gres.iter().flat_map(|of| of.resources().map(move |it| (it, of.count)));
            of_name.filter(|(resource, _)| resource == name).map(|(_, count)| count).sum::<u64>()
        };
        self.features.iter().all(|feature| features.contains(feature))
            && self.gres_of_node(1).iter().all(|(resource, &count)| count <= has(resource))
    }

    /// Resources of the job as a whole.
    pub(crate) fn of_job(&self) -> Vec<Item> {
        let licenses = self.licenses.iter().map(|(name, count)| Item {
            resource: license_resource(name),
            value: Value::Amount(*count),
        });
        licenses.collect()
    }
}

/// Reason for which a list of excluded nodes is not planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotExcluded {
    /// The list can't be read.
    Unreadable,
    /// The list has more of the planned nodes than a request can avoid.
    TooMany,
}

/// Reads a list of excluded nodes: `n01,n[04-06]`. Of a long list only those count that are among
/// the planned nodes, whose names are sorted.
///
/// # Errors
///
/// The list can't be read, or is still too long.
pub(crate) fn excluded_of(text: &str, planned: &[String]) -> Result<Vec<String>, NotExcluded> {
    let mut names = match text {
        "" | "(null)" => Vec::new(),
        text => expand(text).map_err(|_| NotExcluded::Unreadable)?,
    };
    names.sort_unstable();
    names.dedup();
    if names.len() > AVOIDED_NODES {
        names.retain(|name| planned.binary_search(name).is_ok());
        names.shrink_to_fit();
    }
    // Requests are stored as text, in which other characters have a meaning.
    if !names.iter().all(|name| is_word(name)) {
        return Err(NotExcluded::Unreadable);
    }
    if names.len() > AVOIDED_NODES {
        return Err(NotExcluded::TooMany);
    }
    Ok(names)
}

/// Name of a feature in the site file.
pub(crate) fn feature_resource(feature: &str) -> String {
    format!("feature-{}", word(feature))
}

/// Name of a licence in the site file.
pub(crate) fn license_resource(license: &str) -> String {
    format!("license-{}", word(license))
}

/// A name as sites have them.
pub(crate) fn word(name: &str) -> String {
    let is_right = |c: char| c.is_ascii_alphanumeric() || "_-./@".contains(c);
    name.chars().map(|c| if is_right(c) { c } else { '-' }).collect()
}

/// Reads generic resources of a node or a job: `gpu:2,fpga:k40:1(S:0)`, or with the prefix
/// `gres:` or `gres/` of newer releases; `None` if they can't be read.
pub(crate) fn gres_of(text: &str) -> Option<Vec<Gres>> {
    if matches!(text, "" | "(null)" | "N/A") {
        return Some(Vec::new());
    }
    let mut all = Vec::new();
    for part in without_places(text).split(',') {
        let part =
            part.strip_prefix("gres").map_or(part, |rest| rest.trim_start_matches([':', '/']));
        let parts: Vec<&str> = part.split([':', '=']).collect();
        let (name, kind, count) = match parts[..] {
            [name] => (name, None, 1),
            [name, last] => match number(last) {
                Some(count) => (name, None, count),
                None => (name, Some(last), 1),
            },
            [name, kind, last] => (name, Some(kind), number(last)?),
            _ => return None,
        };
        let is_name = |of: &str| {
            !of.is_empty() && of.chars().all(|c| c.is_alphanumeric() || "_-.".contains(c))
        };
        if !is_name(name) || !kind.is_none_or(is_name) || kind == Some("no_consume") {
            return None;
        }
        all.push(Gres { name: name.into(), kind: kind.map(Into::into), count });
    }
    Some(all)
}

/// The text without the sockets of each resource, which stand in parentheses.
fn without_places(text: &str) -> String {
    let mut depth = 0_u32;
    let outside = text.chars().filter(|&c| {
        match c {
            '(' => depth += 1,
            ')' => {
                depth = depth.saturating_sub(1);
                return false;
            }
            _ => {}
        }
        depth == 0
    });
    outside.collect()
}

/// Reads `2` or `4K`.
fn number(text: &str) -> Option<u64> {
    let shift = match text.chars().last()? {
        'K' | 'k' => 10,
        'M' | 'm' => 20,
        'G' | 'g' => 30,
        _ => return text.parse().ok(),
    };
    let number: u64 = text.get(..text.len() - 1)?.parse().ok()?;
    number.checked_mul(1 << shift)
}

/// Reads the features of a constraint, all of which a node must have: `ib&big`; `None` for any
/// other constraint.
pub(crate) fn features_of(text: &str) -> Option<Vec<String>> {
    if matches!(text, "" | "(null)") {
        return Some(Vec::new());
    }
    let is_name =
        |of: &&str| !of.is_empty() && of.chars().all(|c| c.is_alphanumeric() || "_-.".contains(c));
    text.split('&').map(|of| Some(of).filter(is_name).map(Into::into)).collect()
}

/// Reads licences: `matlab:2,ansys`; `None` if one of several is enough, or they can't be read.
pub(crate) fn licenses_of(text: &str) -> Option<Vec<(String, u64)>> {
    if matches!(text, "" | "(null)") {
        return Some(Vec::new());
    }
    let is_name =
        |of: &str| !of.is_empty() && of.chars().all(|c| c.is_alphanumeric() || "_-./@".contains(c));
    let mut all: Vec<(String, u64)> = Vec::new();
    for part in text.split(',') {
        let (name, count) = match part.split_once([':', '=']) {
            Some((name, count)) => (name, count.parse().ok()?),
            None => (part, 1),
        };
        if !is_name(name) {
            return None;
        }
        match all.iter_mut().find(|(known, _)| known == name) {
            Some((_, sum)) => *sum = sum.saturating_add(count),
            None => all.push((name.into(), count)),
        }
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gres(name: &str, kind: Option<&str>, count: u64) -> Gres {
        Gres { name: name.into(), kind: kind.map(Into::into), count }
    }

    #[test]
    fn generic_resources_are_read_as_slurm_writes_them() {
        let fpga = gres("fpga", Some("k40"), 1);
        assert_eq!(gres_of("gpu:2,fpga:k40:1").unwrap(), [gres("gpu", None, 2), fpga.clone()]);
        assert_eq!(gres_of("gpu:a100:4(S:0-1),fpga:k40:1(S:0)").unwrap()[1], fpga);
        for one in ["gres:gpu:1", "gres/gpu:1", "gres/gpu=1", "gpu"] {
            assert_eq!(gres_of(one).unwrap(), [gres("gpu", None, 1)], "{one}");
        }
        assert_eq!(gres_of("gres:bandwidth:4K").unwrap(), [gres("bandwidth", None, 4096)]);
        assert_eq!(gres_of("N/A").unwrap(), []);
        for wrong in ["gpu:a:b:1", ":1", "gpu:a100:x", "gpu:no_consume", "lustre:no_consume:4"] {
            assert_eq!(gres_of(wrong), None, "{wrong}");
        }
    }

    /// Amounts that a real Slurm takes: `--gpus=2 --gpus-per-node=2` are two, and of
    /// `--gpus-per-node=2 --gres=gpu:1` the last is valid.
    #[test]
    fn conditions_on_the_same_units_are_not_added() {
        let of = |all: &[(Per, Gres)], tasks| {
            Demands { gres: all.to_vec(), ..Demands::default() }.units_each(tasks, "gpu")
        };
        let gpus = |count| gres("gpu", None, count);
        assert_eq!(of(&[(Per::Job, gpus(2)), (Per::Node, gpus(2))], 1), 2);
        assert_eq!(of(&[(Per::Node, gpus(2)), (Per::Task, gpus(1))], 2), 2);
        assert_eq!(of(&[(Per::Node, gpus(2)), (Per::Task, gpus(1))], 3), 3);
        assert_eq!(of(&[(Per::Node, gpus(2)), (Per::Node, gpus(1))], 1), 1);
        let types = [gres("gpu", Some("a100"), 1), gres("gpu", Some("k80"), 2)];
        let types = types.map(|of| (Per::Node, of));
        assert_eq!(of(&types, 1), 3);
        let demands = Demands { gres: types.to_vec(), ..Demands::default() };
        let names: Vec<String> =
            demands.of_node(1).into_iter().map(|item| item.to_string()).collect();
        assert_eq!(names, ["gres-gpu=3", "gres-gpu-a100=1", "gres-gpu-k80=2"]);
    }

    #[test]
    fn excluded_nodes_are_read_as_slurm_writes_them() {
        let planned: Vec<String> = (1..=80).map(|number| format!("n{number:02}")).collect();
        let read = |text| excluded_of(text, &planned);
        assert_eq!(read("n2,n[01-02],n2").unwrap(), ["n01", "n02", "n2"]);
        assert_eq!(read("(null)").unwrap(), [""; 0]);
        // Of many nodes, those of other partitions do not count.
        assert_eq!(read("m[1-60000],n[79-90]").unwrap(), ["n79", "n80"]);
        assert_eq!(read("n[01-65]"), Err(NotExcluded::TooMany));
        for other in ["n[1", "n1;n2", "n1:n2", "n[1-99999999]"] {
            assert_eq!(read(other), Err(NotExcluded::Unreadable), "{other}");
        }
    }

    #[test]
    fn constraints_are_features_that_all_nodes_have() {
        assert_eq!(features_of("ib&big").unwrap(), ["ib", "big"]);
        assert_eq!(features_of("(null)").unwrap(), [""; 0]);
        for other in ["ib|big", "[ib*2&big*1]", "!ib", "ib&", "(ib&big)"] {
            assert_eq!(features_of(other), None, "{other}");
        }
    }

    #[test]
    fn licences_are_counted() {
        let all = licenses_of("matlab:2,ansys,matlab:1").unwrap();
        assert_eq!(all, [("matlab".into(), 3), ("ansys".into(), 1)]);
        for other in ["matlab|ansys", "matlab:x", ",", "matlab:1;ansys:1"] {
            assert_eq!(licenses_of(other), None, "{other}");
        }
    }
}
