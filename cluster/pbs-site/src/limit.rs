// SPDX-License-Identifier: GPL-2.0
//! What consumers may have at most.

use std::fmt;

use crate::{Share, Validity};

/// The resource name that means all, unless another limit names the resource.
pub(crate) const ALL: &str = "*";

/// Names that stand for requests and not for a resource: all, and those of job arrays.
pub(crate) const REQUESTS: [&str; 2] = ["jobs", "arrayjobs"];

/// What a consumer may have of a resource at most (Keller, 3, example 1). Who has no limit
/// may have everything at any time.
///
/// It binds requests that overlap its validity. A limit of `*` holds for a resource at the
/// times at which the consumer has no valid one of that resource by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Whose it is.
    pub whom: Whom,
    /// Of what: the name of a resource; `*` for all; `jobs` and `arrayjobs` for the number
    /// of requests that have not ended, and of those that belong to arrays.
    pub resource: String,
    /// So many at once; `None`: no limit.
    pub items: Option<Share>,
    /// As long as no more than so many thousandths of the resource are in use by all, one
    /// may have more than `items`; `None`: never. Keller's dynamic soft limits (8).
    pub soft_permille: Option<u64>,
    /// A request may take so long, in seconds; `None`: no limit.
    pub duration_s: Option<u64>,
    /// Items times seconds, summed over the requests that have not ended; `None`: no
    /// limit.
    pub area_s: Option<u64>,
    /// When it holds.
    pub validity: Validity,
}

/// Whose a limit is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Whom {
    /// Each user has one like it.
    Everyone,
    /// One user's.
    User(String),
    /// That of a group, which all on its account share.
    Group(String),
}

impl fmt::Display for Whom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Everyone => f.write_str("everyone"),
            Self::User(name) => write!(f, "user:{name}"),
            Self::Group(name) => write!(f, "group:{name}"),
        }
    }
}
