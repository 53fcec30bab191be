// SPDX-License-Identifier: GPL-2.0
//! Needs of a request, in the machine's terms: Keller's reqRS and jRS (4.1).

use std::fmt;

use pbs_resources::{Arrangement, Condition, Facts, Rset, Sharing, Value};

use crate::machine::{Class, Machine, ResourceId, NCPUS};
use crate::placed::Placed;

/// Number of chunks that a request may have on any machine, however few cores it has.
pub const SMALL_CHUNKS: u64 = 1024;

/// A request that no plan could ever satisfy, and why (Keller, 5.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Impossible {
    /// The cluster has no such resource.
    Unknown {
        /// Name of the requested resource.
        resource: String,
    },
    /// More than there is where all nodes are in order.
    TooMuch {
        /// Name of the resource.
        resource: String,
        /// Requested amount.
        wanted: u64,
        /// Total of the cluster.
        total: u64,
    },
    /// No node could ever host the chunk.
    NoNode {
        /// The chunk, counted from 1, the most demanding first.
        chunk: usize,
    },
    /// The chunk neither takes something of its node nor asks for an attribute.
    Nothing {
        /// The chunk, counted from 1, the most demanding first.
        chunk: usize,
    },
    /// More chunks than there are cores, and than [`SMALL_CHUNKS`].
    TooManyChunks {
        /// Number of chunks.
        wanted: u64,
        /// Greatest number of chunks.
        most: u64,
    },
    /// The chunks do not fit together on the nodes that there are.
    NoMapping,
    /// More time or items than can be counted.
    TooLarge,
}

impl fmt::Display for Impossible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { resource } => write!(f, "the cluster has no {resource}"),
            Self::TooMuch { resource, wanted, total } => {
                write!(f, "{wanted} {resource} are wanted, of {total} that there are")
            }
            Self::NoNode { chunk } => write!(f, "no node can host chunk {chunk}"),
            Self::Nothing { chunk } => {
                write!(f, "chunk {chunk} takes nothing of its node; write its cores: ncpus=1")
            }
            Self::TooManyChunks { wanted, most } => write!(
                f,
                "{wanted} chunks are wanted, and a request may have {most} here; ask for fewer \
                 chunks that are larger"
            ),
            Self::NoMapping => f.write_str("the nodes have no room for all chunks together"),
            Self::TooLarge => {
                f.write_str("the request is larger than can be counted; ask for less")
            }
        }
    }
}

impl std::error::Error for Impossible {}

/// Fit of a kind of chunk on the nodes of a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fit {
    /// Amounts that one chunk takes.
    pub(crate) amounts: Vec<(ResourceId, u64)>,
    /// Number of chunks that an empty node can host under the requested placement.
    pub(crate) most: u64,
}

/// Chunks that are alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    pub(crate) count: u64,
    pub(crate) cores: u64,
    /// Amounts that one chunk requests.
    pub(crate) amounts: Vec<(ResourceId, u64)>,
    /// Fit for each class; `None` if the class can't host the chunk.
    pub(crate) fits: Vec<Option<Fit>>,
}

impl Kind {
    /// The class of the cheapest nodes that it could be on.
    pub(crate) fn cheapest(&self) -> Option<usize> {
        self.fits.iter().position(Option::is_some)
    }
}

/// Needs of a request, and their duration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Need {
    /// The most demanding first.
    pub(crate) kinds: Vec<Kind>,
    /// jRS: the sum of each resource, those of no node too. Where nodes are taken whole,
    /// the least that it can be.
    pub(crate) sums: Vec<(ResourceId, u64)>,
    /// Part of `sums` that is on no node.
    pub(crate) job_wide: Vec<(ResourceId, u64)>,
    /// Whether each chunk is on a node of its own.
    pub(crate) scatter: bool,
    /// Nodes are taken whole.
    pub(crate) exclusive: bool,
    /// Nodes on which no chunk may be, in their order.
    pub(crate) avoided: Vec<usize>,
    /// Time for which the nodes are booked: the requested time and the margin.
    pub(crate) duration_s: u64,
    /// Part of the duration for preparing and cleaning the nodes.
    pub(crate) margin_s: u64,
}

/// Facts about a chunk for the condition of a node.
struct OfChunk<'a> {
    machine: &'a Machine,
    amounts: &'a [(ResourceId, u64)],
    duration_s: u64,
}

impl Facts for OfChunk<'_> {
    fn amount(&self, name: &str) -> Option<u64> {
        if name == "duration" {
            return Some(self.duration_s);
        }
        let resource = self.machine.resource(name)?;
        let found = self.amounts.iter().find(|&&(of, _)| of == resource);
        Some(found.map_or(0, |&(_, amount)| amount))
    }

    fn is_user(&self, _: &str) -> bool {
        false
    }

    fn is_group(&self, _: &str) -> bool {
        false
    }
}

/// Attribute that a node must have, or lack.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Attribute {
    has: (String, String),
    /// Whether a node without any word for the attribute is meant, too: `smp=f`.
    may_lack: bool,
}

impl Attribute {
    fn is_of(&self, class: &Class) -> bool {
        let lacks = || class.words.iter().all(|(name, _)| *name != self.has.0);
        class.words.contains(&self.has) || self.may_lack && lacks()
    }
}

/// Demands of a chunk: amounts, and attributes of the node.
type Wanted = (Vec<(ResourceId, u64)>, Vec<Attribute>);

impl Need {
    /// Translates a request from its user's terms.
    pub(crate) fn new(machine: &Machine, rset: &Rset, duration_s: u64) -> Result<Self, Impossible> {
        let mut chunks: Vec<(u64, Wanted)> = Vec::new();
        for chunk in &rset.chunks {
            let mut wanted: Wanted = (Vec::new(), Vec::new());
            for item in &chunk.items {
                want(machine, &item.resource, &item.value, &mut wanted)?;
            }
            match chunks.iter_mut().find(|(_, known)| *known == wanted) {
                Some((count, _)) => *count += chunk.count,
                None => chunks.push((chunk.count, wanted)),
            }
        }
        if rset.place.arrangement == Arrangement::Pack {
            chunks = vec![(1, packed(&chunks)?)];
        }
        let mut job_wide = Vec::new();
        for item in &rset.job_wide {
            let (name, amount) = match &item.value {
                Value::Amount(amount) => (item.resource.clone(), *amount),
                Value::Word(word) => (format!("{}={word}", item.resource), 1),
            };
            let resource = machine.resource(&name);
            let resource = resource.filter(|&of| machine.resources[of].job_wide.is_some());
            let resource = resource.ok_or(Impossible::Unknown { resource: name })?;
            add(&mut job_wide, resource, amount, 1)?;
        }
        let mut sums = job_wide.clone();
        for (count, (amounts, _)) in &chunks {
            for &(resource, amount) in amounts {
                add(&mut sums, resource, amount, *count)?;
            }
        }
        for &(resource, wanted) in &sums {
            let total = machine.totals[resource];
            if wanted > total {
                let resource = machine.resources[resource].name.clone();
                return Err(Impossible::TooMuch { resource, wanted, total });
            }
        }
        let weight = |amounts: &[(ResourceId, u64)]| {
            let parts = amounts.iter().map(|&(resource, amount)| {
                u128::from(amount) * (1 << 40) / u128::from(machine.totals[resource].max(1))
            });
            parts.max().unwrap_or(0)
        };
        chunks.sort_by_key(|(_, (amounts, _))| std::cmp::Reverse(weight(amounts)));
        let scatter = rset.place.arrangement == Arrangement::Scatter;
        let exclusive = rset.place.sharing == Some(Sharing::Exclusive);
        check_chunks(machine, &chunks, exclusive)?;
        let kinds = chunks.iter().map(|(count, (amounts, attributes))| {
            let fit = |class| fit(machine, class, amounts, attributes, duration_s, exclusive);
            let one =
                |fit: Fit| Fit { most: if scatter { fit.most.min(1) } else { fit.most }, ..fit };
            Kind {
                count: *count,
                cores: amount_of(amounts, NCPUS),
                amounts: amounts.clone(),
                fits: machine.classes.iter().map(|class| fit(class).map(one)).collect(),
            }
        });
        let avoided = rset.avoid.iter().filter_map(|name| machine.node_by_name(name));
        let mut avoided: Vec<usize> = avoided.collect();
        avoided.sort_unstable();
        avoided.dedup();
        let need = Self {
            kinds: kinds.collect(),
            sums,
            job_wide,
            scatter,
            exclusive,
            avoided,
            duration_s,
            margin_s: 0,
        };
        need.check(machine)?;
        Ok(need)
    }

    /// Adds time before and after the requested time (Keller, 5.4: timeouts).
    pub(crate) fn with_margin(mut self, margin_s: u64) -> Self {
        self.duration_s += margin_s;
        self.margin_s = margin_s;
        self
    }

    /// Returns the requested duration, to which limits and conditions apply.
    pub(crate) fn asked_s(&self) -> u64 {
        self.duration_s - self.margin_s
    }

    /// Whether chunks may be on a node, as far as the user says.
    pub(crate) fn may_be_on(&self, node: usize) -> bool {
        self.avoided.binary_search(&node).is_err()
    }

    /// Returns the same need, which may have no other nodes than those of some chunks.
    pub(crate) fn only_on(&self, machine: &Machine, placed: &[Placed]) -> Self {
        let mut is_own = vec![false; machine.node_count()];
        placed.iter().for_each(|placed| is_own[placed.node as usize] = true);
        let avoided = (0..is_own.len()).filter(|&node| !is_own[node]).collect();
        Self { avoided, ..self.clone() }
    }

    /// Each kind of chunk has nodes enough, taken by itself.
    fn check(&self, machine: &Machine) -> Result<(), Impossible> {
        for (index, kind) in self.kinds.iter().enumerate() {
            let places = kind.fits.iter().zip(&machine.classes).map(|(fit, class)| {
                let avoided = self.avoided.iter().filter(|node| class.nodes.contains(*node));
                let nodes = (class.nodes.len() - avoided.count()) as u64;
                fit.as_ref().map_or(0, |fit| fit.most.saturating_mul(nodes))
            });
            let places = places.fold(0u64, u64::saturating_add);
            if places == 0 {
                return Err(Impossible::NoNode { chunk: index + 1 });
            }
            if places < kind.count {
                return Err(Impossible::NoMapping);
            }
        }
        Ok(())
    }
}

/// Adds the demand for one resource to `wanted`, as an amount or as a word.
fn want(
    machine: &Machine,
    name: &str,
    value: &Value,
    wanted: &mut Wanted,
) -> Result<(), Impossible> {
    let resource = machine.resource(name);
    let resource = resource.filter(|&of| machine.resources[of].job_wide.is_none());
    match (resource, value) {
        (Some(resource), &Value::Amount(amount)) => add(&mut wanted.0, resource, amount, 1),
        // It tells the program how many threads to start, and consumes nothing.
        _ if name == "ompthreads" => Ok(()),
        _ => {
            let word = match value {
                Value::Amount(amount) => amount.to_string(),
                Value::Word(word) => word.clone(),
            };
            let mut known = machine.classes.iter().flat_map(|class| &class.words);
            let may_lack = value.is_none();
            if !may_lack && !known.any(|(key, _)| key == name) {
                let resource = name.to_string();
                return Err(Impossible::Unknown { resource });
            }
            wanted.1.push(Attribute { has: (name.to_string(), word), may_lack });
            Ok(())
        }
    }
}

/// Checks that chunks are not more than a plan may hold. Where nodes are taken whole, even a chunk
/// without amounts takes one.
fn check_chunks(
    machine: &Machine,
    chunks: &[(u64, Wanted)],
    exclusive: bool,
) -> Result<(), Impossible> {
    // A chunk may ask for no more than an attribute of its node.
    let takes_nothing =
        |(_, (amounts, attributes)): &(u64, Wanted)| amounts.is_empty() && attributes.is_empty();
    if let Some(place) = chunks.iter().position(takes_nothing).filter(|_| !exclusive) {
        return Err(Impossible::Nothing { chunk: place + 1 });
    }
    let counts = chunks.iter().map(|(count, _)| *count);
    let wanted = counts.fold(0, u64::saturating_add);
    let most = machine.totals[NCPUS].max(SMALL_CHUNKS);
    if wanted > most {
        return Err(Impossible::TooManyChunks { wanted, most });
    }
    Ok(())
}

/// All chunks as one.
fn packed(chunks: &[(u64, Wanted)]) -> Result<Wanted, Impossible> {
    let mut one: Wanted = (Vec::new(), Vec::new());
    for (count, (amounts, attributes)) in chunks {
        for &(resource, amount) in amounts {
            add(&mut one.0, resource, amount, *count)?;
        }
        one.1.extend(attributes.iter().cloned());
    }
    Ok(one)
}

fn add(
    to: &mut Vec<(ResourceId, u64)>,
    resource: ResourceId,
    amount: u64,
    count: u64,
) -> Result<(), Impossible> {
    let more = amount.checked_mul(count).ok_or(Impossible::TooLarge)?;
    if more == 0 {
        return Ok(());
    }
    match to.iter_mut().find(|(of, _)| *of == resource) {
        Some((_, sum)) => *sum = sum.checked_add(more).ok_or(Impossible::TooLarge)?,
        None => to.push((resource, more)),
    }
    Ok(())
}

pub(crate) fn amount_of(amounts: &[(ResourceId, u64)], resource: ResourceId) -> u64 {
    let found = amounts.iter().find(|&&(of, _)| of == resource);
    found.map_or(0, |&(_, amount)| amount)
}

/// Returns the fit of a chunk on an empty node of the class, if the class can host it.
fn fit(
    machine: &Machine,
    class: &Class,
    amounts: &[(ResourceId, u64)],
    attributes: &[Attribute],
    duration_s: u64,
    exclusive: bool,
) -> Option<Fit> {
    let facts = OfChunk { machine, amounts, duration_s };
    let has_all = attributes.iter().all(|attribute| attribute.is_of(class));
    let may = |only_if: &Condition| only_if.holds(&facts);
    if !has_all || !class.only_if.as_ref().is_none_or(may) {
        return None;
    }
    let mut amounts = amounts.to_vec();
    if let (Some((owner, _)), Some(common)) = (class.kept, machine.common) {
        if amount_of(&amounts, owner) == 0 {
            // Others have to leave cores for those whose the node is.
            if exclusive {
                return None;
            }
            let cores = amount_of(&amounts, NCPUS);
            if cores > 0 {
                amounts.push((common, cores));
            }
        }
    }
    let most = amounts
        .iter()
        .map(|&(resource, amount)| class.has[resource] / amount)
        .min()
        .unwrap_or(u64::from(u32::MAX));
    (most > 0).then_some(Fit { amounts, most })
}
