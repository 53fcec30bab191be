// SPDX-License-Identifier: GPL-2.0
//! What can be asked for.

use std::collections::BTreeMap;

use pbs_resources::Value;

use crate::Validity;

/// Something that can be asked for (Keller, 3): built in, declared, or deduced from what
/// nodes have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// Its name, unlike that of any other.
    pub name: String,
    /// Whether nodes have it.
    pub scope: Scope,
    /// Whether using it takes it away.
    pub kind: Kind,
    /// How much there is of a job-wide one that is asked for by number; else 0.
    pub amount: u64,
    /// How much there is of a job-wide one that is asked for by word, by that word:
    /// `sw=g03` takes one of `g03`. Else empty.
    pub items: BTreeMap<String, u64>,
    /// When it is there.
    pub validity: Validity,
}

/// Who has a resource.
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
    /// It does: who uses some leaves less to others.
    Consumable,
    /// It does not; it says what a node is: `arch=linux`.
    Attribute,
}

impl Resource {
    /// One that is always there, of nodes.
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

    /// Those that every site has: `ncpus`, `mem` and `vmem` are consumed, `ompthreads`
    /// only tells the program how many threads to start.
    pub fn built_in() -> Vec<Self> {
        let kind = |name| match name {
            "ompthreads" => Kind::Attribute,
            _ => Kind::Consumable,
        };
        let names = pbs_resources::BUILT_IN.into_iter();
        names.map(|name| Self::of_nodes(name, kind(name))).collect()
    }

    /// What is wrong with asking so for it, and what to write instead; `None`: nothing is.
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
