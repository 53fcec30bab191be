// SPDX-License-Identifier: GPL-2.0
//! Nodes with what they have.

use pbs_resources::{Condition, Item, Value};

/// A computer of the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Unique name of the node.
    pub name: String,
    /// Resources of the node: amounts, each once, and words. An attribute can have several words.
    pub has: Vec<Item>,
    /// Makes it dearer, so that it is taken later: as many times all cores of the cluster
    /// are added to its weight (Keller, 5.2).
    pub prio: i64,
    /// Condition on the chunks that the node accepts (Keller, 5.4); `None`: all.
    pub only_if: Option<Condition>,
    /// Cores that not everybody may have.
    pub kept: Option<ReservedCores>,
    /// Switch that connects the node: nodes with the same switch are near each other.
    pub switch: Option<String>,
}

/// Cores of a node that are kept for requests of one of its resources (Keller, 5.4).
/// Others may have the rest, and never have the node to themselves.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReservedCores {
    /// Number of cores; at most those of the node.
    pub cores: u64,
    /// For requests of this; the node has some of it.
    pub resource: String,
}

impl Node {
    /// Returns the amount of a countable resource on the node.
    pub fn amount(&self, resource: &str) -> u64 {
        let mut of = self.has.iter().filter(|item| item.resource == resource);
        match of.next().map(|item| &item.value) {
            Some(&Value::Amount(amount)) => amount,
            _ => 0,
        }
    }

    /// Whether the node has the resource, in any amount or with any word.
    pub(crate) fn names(&self, resource: &str) -> bool {
        self.has.iter().any(|item| item.resource == resource)
    }
}
