// SPDX-License-Identifier: GPL-2.0
//! Types that all parts of the planner have in common.

use std::cmp::Reverse;

use pbs_site::Whom;

use crate::machine::ResourceId;

/// The number of a request; later ones are greater.
pub type RequestId = u64;

/// A request's turn to be planned anew.
pub(crate) type Turn = (Reverse<i64>, u64, RequestId);

/// Amounts of resources.
pub(crate) type Sums = [(ResourceId, u64)];

/// Profiles hold what is free, and this more: what is free may be less than nothing where
/// a limit or the cluster became smaller than what is used already.
pub(crate) const NOTHING: u64 = 1 << 62;

/// Submitter of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Who {
    pub(crate) user: String,
    pub(crate) group: String,
    consumers: [Whom; 2],
}

impl Who {
    pub(crate) fn new(user: &str, group: &str) -> Self {
        Self {
            user: user.into(),
            group: group.into(),
            consumers: [Whom::User(user.into()), Whom::Group(group.into())],
        }
    }

    /// The consumers of a request: its user, and its group.
    pub(crate) fn consumers(&self) -> &[Whom; 2] {
        &self.consumers
    }
}

/// Reason for which a request can't be somewhere, or can't start earlier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Others use the resource.
    Used(ResourceId),
    /// A pool keeps it free for others.
    Pool(String),
    /// A limit on the items of a resource.
    Items(Whom, ResourceId),
    /// The request is longer than a limit permits.
    Duration(Whom, ResourceId),
    /// The items times the time of all requests exceed a limit.
    Area(Whom, ResourceId),
    /// No nodes have room for the chunks together.
    Nodes,
    /// The request follows that request.
    After(RequestId),
}
