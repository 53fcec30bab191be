// SPDX-License-Identifier: GPL-2.0
//! The cluster as the planner sees it: what can be consumed is a number, and nodes that
//! are alike are a class.

use std::collections::HashMap;
use std::ops::Range;

use pbs_resources::Condition;

/// A resource that can be consumed, by its place in [`Machine::resources`].
pub type ResourceId = usize;

/// The place of `ncpus`; every machine has it.
pub const NCPUS: ResourceId = 0;

/// Resource that can be consumed, of nodes or of the cluster as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// Name for users.
    pub name: String,
    /// Licences and the like are on no node; the amount that there is of them.
    pub job_wide: Option<u64>,
}

/// A node as its operator describes it.
#[derive(Clone, Debug)]
pub struct NodeSpec {
    /// Name for operators.
    pub name: String,
    /// Amount of each resource on the node; missing entries at the end are zero.
    pub has: Vec<u64>,
    /// Attributes with their value: `arch=linux`.
    pub words: Vec<(String, String)>,
    /// Makes it expensive: so many times the cores of the cluster are added to its weight.
    pub prio: i64,
    /// Only chunks for which this holds may use it (Keller, 5.4).
    pub only_if: Option<Condition>,
    /// Number of cores that are reserved for requests of that resource. Only such requests may use
    /// the node exclusively (Keller, 5.4).
    pub kept: Option<(ResourceId, u64)>,
    /// Nodes at one switch are near each other; those of which none is told are at one, too.
    pub switch: Option<String>,
}

impl NodeSpec {
    /// A node of that name with those amounts, and without attributes or rules of its own.
    pub fn new(name: impl Into<String>, has: Vec<u64>) -> Self {
        Self {
            name: name.into(),
            has,
            words: Vec::new(),
            prio: 0,
            only_if: None,
            kept: None,
            switch: None,
        }
    }
}

/// Nodes that are alike in all but their names.
#[derive(Clone, Debug)]
pub(crate) struct Class {
    /// Amount of each resource on a node.
    pub(crate) has: Vec<u64>,
    pub(crate) words: Vec<(String, String)>,
    pub(crate) only_if: Option<Condition>,
    pub(crate) kept: Option<(ResourceId, u64)>,
    /// Scaled by [`WEIGHT_UNIT`].
    pub(crate) weight: i128,
    /// Nodes of the class, as a contiguous range.
    pub(crate) nodes: Range<usize>,
}

/// All nodes and what else there is. Nodes are in the order of their weight: cheap ones
/// first (Keller's N_cand, 5.2).
#[derive(Clone, Debug)]
pub struct Machine {
    pub(crate) resources: Vec<Resource>,
    pub(crate) classes: Vec<Class>,
    pub(crate) names: Vec<String>,
    /// Place of each node by its name; of nodes with the same name, the first.
    by_name: HashMap<String, usize>,
    pub(crate) class_of: Vec<usize>,
    /// Number of each node's switch; nodes at one switch are near each other.
    pub(crate) switch_of: Vec<u32>,
    /// Total of each resource: the sum over all nodes, or the job-wide amount.
    pub(crate) totals: Vec<u64>,
    /// The resource that stands for the cores which are not kept for others.
    pub(crate) common: Option<ResourceId>,
}

/// Weights are fractions; they are kept as multiples of this part of a core.
pub(crate) const WEIGHT_UNIT: i128 = 1 << 20;

impl Machine {
    /// Sorts the nodes into classes and by weight. The first resource is `ncpus`.
    pub fn new(resources: Vec<Resource>, nodes: &[NodeSpec]) -> Self {
        let mut resources = resources;
        let common = nodes.iter().any(|node| node.kept.is_some()).then(|| {
            resources
                .push(Resource { name: "ncpus that are kept for nobody".into(), job_wide: None });
            resources.len() - 1
        });
        let shown = resources.len() - usize::from(common.is_some());
        let mut totals: Vec<u64> =
            resources.iter().map(|resource| resource.job_wide.unwrap_or(0)).collect();
        let mut specs: Vec<NodeSpec> = nodes.to_vec();
        for node in &mut specs {
            node.has.resize(resources.len(), 0);
            if let Some(common) = common {
                let kept = node.kept.map_or(0, |(_, cores)| cores);
                node.has[common] = node.has[NCPUS].saturating_sub(kept);
            }
            for (resource, has) in node.has.iter().enumerate() {
                totals[resource] += has;
            }
        }
        let weight = |node: &NodeSpec| {
            let cores = i128::from(totals[NCPUS]);
            let part = (0..shown)
                .filter(|&of| totals[of] > 0)
                .map(|of| i128::from(node.has[of]) * cores * WEIGHT_UNIT / i128::from(totals[of]));
            part.max().unwrap_or(0) + i128::from(node.prio) * cores * WEIGHT_UNIT
        };
        let mut order: Vec<(i128, usize, usize)> = Vec::with_capacity(specs.len());
        let mut kinds: Vec<usize> = Vec::new();
        for (index, node) in specs.iter().enumerate() {
            let alike = |&kind: &usize| is_alike(&specs[kind], node);
            let kind = kinds.iter().position(alike).unwrap_or_else(|| {
                kinds.push(index);
                kinds.len() - 1
            });
            order.push((weight(node), kind, index));
        }
        order.sort_unstable();
        let mut switches: Vec<&Option<String>> = specs.iter().map(|node| &node.switch).collect();
        switches.sort_unstable();
        switches.dedup();
        let switch = |node: &NodeSpec| {
            let place = switches.binary_search(&&node.switch);
            // All switches of the nodes are in the list.
            place.unwrap_or_default() as u32
        };
        let switch_of = order.iter().map(|&(_, _, index)| switch(&specs[index]));
        let switch_of = switch_of.collect();
        let mut classes: Vec<Class> = Vec::new();
        let mut class_of = Vec::with_capacity(order.len());
        let mut last = None;
        for (place, &(weight, kind, index)) in order.iter().enumerate() {
            if last != Some(kind) {
                let node = &specs[index];
                classes.push(Class {
                    has: node.has.clone(),
                    words: node.words.clone(),
                    only_if: node.only_if.clone(),
                    kept: node.kept,
                    weight,
                    nodes: place..place,
                });
                last = Some(kind);
            }
            let class = classes.len() - 1;
            classes[class].nodes.end = place + 1;
            class_of.push(class);
        }
        let names: Vec<String> =
            order.iter().map(|&(_, _, index)| specs[index].name.clone()).collect();
        let places = names.iter().cloned().enumerate().rev();
        Self {
            resources,
            classes,
            by_name: places.map(|(place, name)| (name, place)).collect(),
            names,
            class_of,
            switch_of,
            totals,
            common,
        }
    }

    /// Returns the number of nodes.
    pub fn node_count(&self) -> usize {
        self.names.len()
    }

    /// The name of a node.
    pub fn node_name(&self, node: usize) -> &str {
        &self.names[node]
    }

    /// The node of that name.
    pub fn node_by_name(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// The resource of that name.
    pub fn resource(&self, name: &str) -> Option<ResourceId> {
        let known = self.resources.iter().take(self.shown());
        known.into_iter().position(|known| known.name == name)
    }

    /// Returns the resources that can be consumed.
    pub fn resources(&self) -> &[Resource] {
        &self.resources[..self.shown()]
    }

    /// Returns the total of a resource if nothing is defective: maxAvl (Keller, 4).
    pub fn total(&self, resource: ResourceId) -> u64 {
        self.totals[resource]
    }

    /// Returns the amount of a resource on a node.
    pub fn has(&self, node: usize, resource: ResourceId) -> u64 {
        self.class(node).has[resource]
    }

    /// Returns the weight (cost) of a node, in cores (Keller, 5.2), rounded down.
    pub fn weight(&self, node: usize) -> i64 {
        (self.class(node).weight / WEIGHT_UNIT) as i64
    }

    pub(crate) fn class(&self, node: usize) -> &Class {
        &self.classes[self.class_of[node]]
    }

    /// Number of resources that are visible to users.
    fn shown(&self) -> usize {
        self.resources.len() - usize::from(self.common.is_some())
    }
}

fn is_alike(one: &NodeSpec, other: &NodeSpec) -> bool {
    (&one.has, &one.words, one.prio, &one.only_if, one.kept)
        == (&other.has, &other.words, other.prio, &other.only_if, other.kept)
}
