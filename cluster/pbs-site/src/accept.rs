// SPDX-License-Identifier: GPL-2.0
//! The first step of a submission (Keller, 5.1): what was not asked for is added, what is
//! forced is put over it, and what the site does not have is refused.

use std::fmt;

use pbs_resources::{Chunk, Item, Rset, Value};
use pbs_text::reader::closest;

use crate::{Consumer, Kind, Node, Resource, Scope, Site};

/// Reason for which this site can never satisfy a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The resource does not exist.
    Unknown {
        /// Name in the request.
        resource: String,
        /// Resource that was probably meant.
        closest: Option<String>,
    },
    /// A chunk asks for what is of no node, or the job for what only nodes have.
    Misplaced {
        /// Requested resource.
        resource: String,
        /// Owner of the resource: nodes, or the job as a whole.
        scope: Scope,
    },
    /// The request has a number where the site has words, or a word where it has numbers.
    Value {
        /// Correction.
        message: String,
    },
    /// All together there is less.
    TooMuch {
        /// Requested resource.
        resource: String,
        /// Requested amount.
        asked: u64,
        /// Total amount: maxAvl.
        most: u64,
    },
    /// No node has what a chunk needs, when it is empty.
    NoNode {
        /// The chunk.
        chunk: String,
    },
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { resource, closest } => {
                write!(f, "the site has no resource {resource}")?;
                match closest {
                    Some(closest) => write!(f, "; did you mean {closest}?"),
                    None => write!(f, "; ask for others"),
                }
            }
            Self::Misplaced { resource, scope } => match scope {
                Scope::Node => write!(
                    f,
                    "{resource} is a resource of nodes; write it into a chunk: ncpus=1:{resource}=1"
                ),
                Scope::Job => write!(
                    f,
                    "{resource} is a resource of no node; write it behind the chunks: \
                     ncpus=1,{resource}=1"
                ),
            },
            Self::Value { message } => f.write_str(message),
            Self::TooMuch { resource, asked, most } => {
                let (asked, most) = (Value::Amount(*asked), Value::Amount(*most));
                write!(f, "{asked} {resource} are asked for, and there are {most}; ask for less")
            }
            Self::NoNode { chunk } => write!(
                f,
                "no node has {chunk}, even if nothing else runs on it; ask for less in a chunk"
            ),
        }
    }
}

impl std::error::Error for Refused {}

impl Site {
    /// The request as it is planned for that user and group: what it leaves out is added
    /// from the default values, and the force values are put over it; those of the site
    /// first, then of the group, then of the user, and the later ones win. Resources of
    /// nodes go to each chunk, the others to the job as a whole. The cores of a chunk are rounded
    /// up to a multiple of [`Site::threads_per_core`]. Items that ask for none of a resource which
    /// the site does not have are left out: they are satisfied ([`Site::unknown_none`]).
    ///
    /// # Errors
    ///
    /// A resource is unknown or more of it is asked for than there is in all, a value is
    /// of the wrong kind, or no node can have one of the chunks.
    ///
    /// ```
    /// use pbs_site::Site;
    ///
    /// let site = Site::from_toml(
    ///     "defaults = { mem = '2g' }\n[[nodes]]\nname = 'n'\nhas = 'ncpus=16:mem=64g'\n",
    /// )
    /// .unwrap();
    /// let rset = "2:ncpus=4".parse().unwrap();
    /// let accepted = site.accept(&rset, "alice", "G1")?;
    /// assert_eq!(accepted.to_string(), "rset=2:ncpus=4:mem=2g");
    /// let rset = "17:ncpus=1".parse().unwrap();
    /// let refused = site.accept(&rset, "alice", "G1").unwrap_err();
    /// assert_eq!(refused.to_string(), "17 ncpus are asked for, and there are 16; ask for less");
    /// # Ok::<(), pbs_site::Refused>(())
    /// ```
    pub fn accept(&self, rset: &Rset, user: &str, group: &str) -> Result<Rset, Refused> {
        let consumers = [self.group(group), self.user(user)];
        let of = |items: fn(&Consumer) -> &[Item], site: &[Item]| {
            let mut all = site.to_vec();
            for consumer in consumers.iter().flatten() {
                put(&mut all, items(consumer));
            }
            all
        };
        let defaults = of(|consumer| &consumer.defaults, &self.defaults);
        let force = of(|consumer| &consumer.force, &self.force);
        let mut rset = rset.clone();
        let is_left_out = |item: &Item| item.value.is_none() && !self.knows(item);
        rset.job_wide.retain(|item| !is_left_out(item));
        for chunk in &mut rset.chunks {
            // A chunk of nothing else is refused for it: there is no empty chunk.
            if !chunk.items.iter().all(is_left_out) {
                chunk.items.retain(|item| !is_left_out(item));
            }
        }
        for chunk in &mut rset.chunks {
            self.complete(&mut chunk.items, Scope::Node, &defaults, &force);
            self.round_up_cores(&mut chunk.items);
        }
        self.complete(&mut rset.job_wide, Scope::Job, &defaults, &force);
        self.check(&rset)?;
        Ok(rset)
    }

    /// Returns items of a request that ask for none of a resource which this site does not have,
    /// such as `smp=f` of a script for another site.
    pub fn unknown_none<'a>(&self, rset: &'a Rset) -> Vec<&'a Item> {
        let of_chunks = rset.chunks.iter().flat_map(|chunk| &chunk.items);
        let items = of_chunks.chain(&rset.job_wide);
        let mut unknown: Vec<&Item> = Vec::new();
        for item in items.filter(|item| item.value.is_none() && !self.knows(item)) {
            if !unknown.contains(&item) {
                unknown.push(item);
            }
        }
        unknown
    }

    fn knows(&self, item: &Item) -> bool {
        self.resource(&item.resource).is_some()
    }

    /// Adds those of the defaults that are missing, and all that are forced.
    fn complete(&self, items: &mut Vec<Item>, scope: Scope, defaults: &[Item], force: &[Item]) {
        let is_in = |item: &&Item| {
            let resource = self.resource(&item.resource);
            resource.is_some_and(|resource| resource.scope == scope)
        };
        for item in defaults.iter().filter(is_in) {
            if !items.iter().any(|other| other.resource == item.resource) {
                items.push(item.clone());
            }
        }
        let force: Vec<_> = force.iter().filter(is_in).cloned().collect();
        put(items, &force);
    }

    /// Rounds the cores of a chunk up to what is allocated together.
    fn round_up_cores(&self, items: &mut [Item]) {
        for item in items.iter_mut().filter(|item| item.resource == "ncpus") {
            if let Value::Amount(cores) = &mut item.value {
                *cores = cores.checked_next_multiple_of(self.threads_per_core).unwrap_or(*cores);
            }
        }
    }

    fn check(&self, rset: &Rset) -> Result<(), Refused> {
        for item in rset.chunks.iter().flat_map(|chunk| &chunk.items) {
            self.check_item(item, Scope::Node)?;
        }
        for item in &rset.job_wide {
            self.check_item(item, Scope::Job)?;
            if let Value::Word(word) = &item.value {
                // By word one is asked for, and there may be none of it.
                if self.most(&item.resource, Some(word)) == 0 {
                    let resource = item.to_string();
                    return Err(Refused::TooMuch { resource, asked: 1, most: 0 });
                }
            }
        }
        for resource in &self.resources {
            let asked = rset.total(&resource.name);
            if resource.kind == Kind::Consumable && !self.reaches(resource, asked) {
                return Err(Refused::TooMuch {
                    resource: resource.name.clone(),
                    asked,
                    most: self.most(&resource.name, None),
                });
            }
        }
        for chunk in &rset.chunks {
            if !self.nodes.iter().any(|node| self.holds(node, chunk)) {
                let chunk = chunk.to_string();
                return Err(Refused::NoNode { chunk });
            }
        }
        Ok(())
    }

    fn check_item(&self, item: &Item, scope: Scope) -> Result<(), Refused> {
        let name = &item.resource;
        let Some(resource) = self.resource(name) else {
            let names = self.resources.iter().map(|resource| resource.name.as_str());
            return Err(Refused::Unknown {
                resource: name.clone(),
                closest: closest(name, names).map(str::to_string),
            });
        };
        if resource.scope != scope {
            return Err(Refused::Misplaced { resource: name.clone(), scope: resource.scope });
        }
        match resource.fault(&item.value) {
            Some(message) => Err(Refused::Value { message }),
            None => Ok(()),
        }
    }

    /// Whether there is so much in all; most requests are small, and few nodes tell.
    fn reaches(&self, resource: &Resource, asked: u64) -> bool {
        let mut missing = asked;
        if resource.scope == Scope::Job {
            missing = missing.saturating_sub(resource.amount);
        } else {
            for node in &self.nodes {
                if missing == 0 {
                    break;
                }
                missing = missing.saturating_sub(node.amount(&resource.name));
            }
        }
        missing == 0
    }

    /// Whether a chunk fits on the node when it is empty. What the gate of the node says
    /// of durations is not known here.
    fn holds(&self, node: &Node, chunk: &Chunk) -> bool {
        chunk.items.iter().all(|item| {
            let name = &item.resource;
            // It is told to the program only.
            if name == "ompthreads" {
                return true;
            }
            match (&item.value, self.resource(name).map(|of| of.kind)) {
                (Value::Amount(amount), Some(Kind::Consumable)) => node.amount(name) >= *amount,
                _ => node.has.contains(item) || item.value.is_none() && !node.names(name),
            }
        })
    }
}

/// Puts items over those of the same resource.
fn put(items: &mut Vec<Item>, over: &[Item]) {
    for item in over {
        match items.iter_mut().find(|other| other.resource == item.resource) {
            Some(other) => other.value = item.value.clone(),
            None => items.push(item.clone()),
        }
    }
}
