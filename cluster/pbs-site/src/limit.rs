// SPDX-License-Identifier: GPL-2.0
//! Limits of consumers.

use std::fmt;

use crate::{Share, Validity};

/// The resource name that means all, unless another limit names the resource.
pub(crate) const ALL: &str = "*";

/// Names that stand for requests and not for a resource: all, and those of job arrays.
pub(crate) const REQUESTS: [&str; 2] = ["jobs", "arrayjobs"];

/// Upper limit of a consumer's use of a resource (Keller, 3, example 1). A consumer without a limit
/// may have everything at any time.
///
/// The limit binds requests that overlap its validity. A limit of `*` holds for a resource at the
/// times at which the consumer has no valid limit of that resource by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Consumer to whom the limit applies.
    pub whom: Whom,
    /// Limited subject: the name of a resource; `*` for all; `jobs` and `arrayjobs` for the number
    /// of unfinished requests, and of those that belong to arrays.
    pub resource: String,
    /// Largest number of items at once; `None`: no limit.
    pub items: Option<Share>,
    /// Total use of the resource, in thousandths, up to which a consumer may exceed `items`;
    /// `None`: the limit never gives way. Keller's dynamic soft limits (8).
    pub soft_permille: Option<u64>,
    /// A request may take so long, in seconds; `None`: no limit.
    pub duration_s: Option<u64>,
    /// Items times seconds, summed over the requests that have not ended; `None`: no
    /// limit.
    pub area_s: Option<u64>,
    /// Validity of the limit.
    pub validity: Validity,
}

/// Consumer to whom a limit applies.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Whom {
    /// Each user has one like it.
    Everyone,
    /// One user.
    User(String),
    /// A group; all requests on its account share the limit.
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
