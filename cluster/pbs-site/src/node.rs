// SPDX-License-Identifier: GPL-2.0
//! Nodes with what they have.

use pbs_resources::{Condition, Item, Value};

/// A computer of the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its name, unlike that of any other.
    pub name: String,
    /// Its resources: amounts, each once, and words, of which an attribute can have
    /// several.
    pub has: Vec<Item>,
    /// Makes it dearer, so that it is taken later: as many times all cores of the cluster
    /// are added to its weight (Keller, 5.2).
    pub prio: i64,
    /// Which chunks it takes (Keller, 5.4); `None`: all.
    pub only_if: Option<Condition>,
    /// Cores that not everybody may have.
    pub kept: Option<ReservedCores>,
    /// What it is connected to: nodes with the same switch are near each other.
    pub switch: Option<String>,
}

/// Cores of a node that are kept for requests of one of its resources (Keller, 5.4).
/// Others may have the rest, and never have the node to themselves.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReservedCores {
    /// How many; no more than the node has.
    pub cores: u64,
    /// For requests of this; the node has some of it.
    pub resource: String,
}

impl Node {
    /// How much it has of a resource that is counted.
    pub fn amount(&self, resource: &str) -> u64 {
        let mut of = self.has.iter().filter(|item| item.resource == resource);
        match of.next().map(|item| &item.value) {
            Some(&Value::Amount(amount)) => amount,
            _ => 0,
        }
    }
}
