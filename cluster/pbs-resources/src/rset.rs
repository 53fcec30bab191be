// SPDX-License-Identifier: GPL-2.0
//! A request: chunks, what the job as a whole needs, and where chunks go.

/// Resources that a job needs (Keller, 3).
///
/// ```
/// use pbs_resources::{Arrangement, Rset, Sharing};
///
/// let text = "rset=5:ncpus=16:mem=12g:net=IB+ncpus=1:mem=4g,sw=g03,place=scatter:excl";
/// let rset: Rset = text.parse()?;
/// assert_eq!(rset.chunks[0].count, 5);
/// assert_eq!(rset.job_wide[0].resource, "sw");
/// assert_eq!(rset.place.arrangement, Arrangement::Scatter);
/// assert_eq!(rset.place.sharing, Some(Sharing::Exclusive));
/// assert_eq!(rset.total("ncpus"), 81);
/// assert_eq!(rset.to_string(), text);
/// # Ok::<(), pbs_resources::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rset {
    /// In the order of the text; never empty when it was read.
    pub chunks: Vec<Chunk>,
    /// Resources of no node: licences, disk space.
    pub job_wide: Vec<Item>,
    /// Placement of the chunks.
    pub place: Placement,
    /// Names of nodes on which no chunk may be, each once and in their order. A name that is none
    /// of the cluster's excludes nothing.
    pub avoid: Vec<String>,
}

/// Resources that are taken together on one node, and so many times.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Chunk {
    /// Number of such chunks; at least 1.
    pub count: u64,
    /// Each resource once, in the order of the text; never empty when it was read.
    pub items: Vec<Item>,
}

/// A resource with how much of it, or which.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Item {
    /// The name of the resource.
    pub resource: String,
    /// Amount or word.
    pub value: Value,
}

/// Amount of a resource, or a word.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Value {
    /// A number, or bytes: `16`, `10g`. A number may be meant as a word (`rack=8`); that
    /// is known to the site alone.
    Amount(u64),
    /// Required value of an attribute, or name of a job-wide resource's instance: `linux`, `g03`.
    Word(String),
}

/// Placement of chunks on nodes, and whether other requests may be there (Keller, table 1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Placement {
    /// Distribution of the chunks over nodes.
    pub arrangement: Arrangement,
    /// `None`: nothing is said of others.
    pub sharing: Option<Sharing>,
}

/// Distribution of chunks over nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Arrangement {
    /// Anywhere.
    #[default]
    Free,
    /// All on one node.
    Pack,
    /// Each on a node of its own.
    Scatter,
}

/// Whether others may be on the nodes of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sharing {
    /// No other job is there.
    Exclusive,
    /// Others may be there.
    Shared,
}

impl Value {
    /// Whether a request asks for none of the resource: `tesla=0`, `smp=f`. Scripts for other
    /// sites have such items, and a node without the resource satisfies them.
    pub fn is_none(&self) -> bool {
        match self {
            Self::Amount(amount) => *amount == 0,
            Self::Word(word) => ["f", "false", "no"].iter().any(|no| word.eq_ignore_ascii_case(no)),
        }
    }
}

impl Rset {
    /// Returns the total of a resource over all chunks and the job as a whole: one entry of
    /// Keller's jRS (4.1). A larger sum yields [`u64::MAX`]; parsed requests never reach it.
    pub fn total(&self, resource: &str) -> u64 {
        let of = |items: &[Item]| {
            let amounts = items.iter().filter_map(|item| match item.value {
                Value::Amount(amount) if item.resource == resource => Some(amount),
                _ => None,
            });
            amounts.fold(0, u64::saturating_add)
        };
        let chunks = self.chunks.iter();
        let chunks = chunks.map(|chunk| of(&chunk.items).saturating_mul(chunk.count));
        chunks.fold(of(&self.job_wide), u64::saturating_add)
    }
}
