// SPDX-License-Identifier: GPL-2.0
//! Resources that can be requested.

use std::collections::BTreeMap;

use pbs_resources::Value;

use crate::Validity;

/// Resource that can be requested (Keller, 3): built in, declared, or deduced from the nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// Unique name of the resource.
    pub name: String,
    /// Whether nodes have it.
    pub scope: Scope,
    /// Whether using it takes it away.
    pub kind: Kind,
    /// Total of a job-wide resource that is requested by number; otherwise 0.
    pub amount: u64,
    /// Totals of a job-wide resource that is requested by word, for each word: `sw=g03` takes one
    /// of `g03`. Otherwise empty.
    pub items: BTreeMap<String, u64>,
    /// Validity of the resource.
    pub validity: Validity,
}

/// Owner of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Nodes do; chunks ask for it.
    Node,
    /// No node does: licences, disk space. The job as a whole asks for it.
    Job,
}

/// Whether using a resource takes it away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The resource is consumed: use by one request leaves less for others.
    Consumable,
    /// The resource is not consumed; it is a property of a node: `arch=linux`.
    Attribute,
}

impl Resource {
    /// Creates a resource of nodes that is always valid.
    pub fn of_nodes(name: impl Into<String>, kind: Kind) -> Self {
        Self {
            name: name.into(),
            scope: Scope::Node,
            kind,
            amount: 0,
            items: BTreeMap::new(),
            validity: Validity::Always,
        }
    }

    /// Returns the resources of every site: `ncpus`, `mem` and `vmem` are consumed, `ompthreads`
    /// only sets the number of threads for the program.
    pub fn built_in() -> Vec<Self> {
        let kind = |name| match name {
            "ompthreads" => Kind::Attribute,
            _ => Kind::Consumable,
        };
        let names = pbs_resources::BUILT_IN.into_iter();
        names.map(|name| Self::of_nodes(name, kind(name))).collect()
    }

    /// Returns the error of requesting that value, with its correction; `None`: there is no error.
    pub fn fault(&self, value: &Value) -> Option<String> {
        let name = &self.name;
        match value {
            // It is a number, though it does not take anything away.
            Value::Amount(_) if self.items.is_empty() => None,
            Value::Word(_) if self.kind == Kind::Attribute => None,
            Value::Word(word) if self.items.contains_key(word) => None,
            _ if self.items.is_empty() => {
                Some(format!("{name} is counted; write a number: {name}=4"))
            }
            _ => {
                let words: Vec<_> =
                    self.items.keys().map(|word| format!("{name}={word}")).collect();
                let words = words.join(", ");
                Some(format!("{name} is asked for by word; write one of {words}"))
            }
        }
    }
}
