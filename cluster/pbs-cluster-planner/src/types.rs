// SPDX-License-Identifier: GPL-2.0
//! Types that all parts of the planner have in common.

use std::cmp::Reverse;
use std::hash::{Hash, Hasher};

use pbs_site::{User, Whom};

use crate::machine::{Machine, ResourceId};
use crate::request::Request;

/// The number of a request; later ones are greater.
pub type RequestId = u64;

/// A request's turn to be planned anew.
pub(crate) type Turn = (Reverse<i64>, u64, RequestId);

/// Amounts of resources.
pub(crate) type Sums = [(ResourceId, u64)];

/// Profiles hold what is free, and this more: what is free may be less than nothing where
/// a limit or the cluster became smaller than what is used already.
pub(crate) const NOTHING: u64 = 1 << 62;

/// Limit on how many requests of a set hold their nodes at the same time, as an array may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Throttle {
    /// Name of the set, which no other set has.
    pub set: String,
    /// Greatest number of its requests at any time; at least 1.
    pub most: u64,
}

/// Holder of an account: a user or a group whose use is counted.
///
/// Rules are found by the name, and use is counted by the user: another user to whom the name was
/// given has an account of their own under the same rules.
#[derive(Clone, Debug)]
pub(crate) struct Holder {
    /// Name by which rules know the holder.
    pub(crate) whom: Whom,
    /// The user; `None`: the holder is a group.
    user: Option<User>,
}

impl Holder {
    fn of_user(user: &User) -> Self {
        Self { whom: Whom::User(user.name.clone()), user: Some(user.clone()) }
    }

    fn of_group(group: &str) -> Self {
        Self { whom: Whom::Group(group.into()), user: None }
    }

    /// Name of a group; `None`: the user decides.
    fn group(&self) -> Option<&Whom> {
        self.user.is_none().then_some(&self.whom)
    }
}

impl PartialEq for Holder {
    fn eq(&self, other: &Self) -> bool {
        self.user == other.user && self.group() == other.group()
    }
}

impl Eq for Holder {}

impl Hash for Holder {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.user.hash(state);
        self.group().hash(state);
    }
}

/// Submitter of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Who {
    pub(crate) user: User,
    pub(crate) group: String,
    holders: [Holder; 2],
    /// Set to which the request belongs, with its limit.
    pub(crate) throttle: Option<Throttle>,
}

impl Who {
    pub(crate) fn of(request: &Request) -> Self {
        let (user, group) = (&request.user, &request.group);
        Self {
            user: user.clone(),
            group: group.clone(),
            holders: [Holder::of_user(user), Holder::of_group(group)],
            throttle: request.throttle.clone(),
        }
    }

    /// Holders of the accounts that a request counts in: its user, and its group.
    pub(crate) fn holders(&self) -> &[Holder; 2] {
        &self.holders
    }
}

/// Nodes that a cause names.
const MOST_NAMED: usize = 8;

/// Names of the first of some nodes, and the number of the others.
fn names(machine: &Machine, nodes: &[usize]) -> String {
    let names = nodes.iter().take(MOST_NAMED).map(|&node| machine.node_name(node));
    let names = names.collect::<Vec<_>>().join(" ");
    match nodes.len().saturating_sub(MOST_NAMED) {
        0 => names,
        more => format!("{names} and {more} others"),
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
    /// The validity of a user or a group.
    Locked(Whom),
    /// As many requests of its set as may run at the same time.
    Throttle(u64),
    /// No nodes have room for the chunks together.
    Nodes,
    /// The search for nodes ended before it had looked at all times: its budget was spent.
    Unsought,
    /// Nodes that are out of use, and would have room for a chunk.
    Out(Vec<usize>),
    /// Nodes with defective parts, and without them with room for another chunk.
    Defective(Vec<usize>),
    /// The request follows that request.
    After(RequestId),
    /// A node of the request is planned for that request.
    Planned(RequestId),
}

impl Cause {
    /// Describes the cause, with the names of the machine's resources.
    pub fn describe(&self, machine: &Machine) -> String {
        let name = |resource: usize| {
            let resource = machine.resources().get(resource);
            resource.map_or("cores that are reserved for others", |of| &of.name)
        };
        match self {
            Self::Used(resource) => format!("{} in use", name(*resource)),
            Self::Pool(pool) => format!("pool {pool}"),
            Self::Items(whom, resource) => format!("limit of {whom} on {}", name(*resource)),
            Self::Duration(whom, resource) => {
                format!("limit of {whom} on the duration for {}", name(*resource))
            }
            Self::Area(whom, resource) => {
                format!("limit of {whom} on the area of {}", name(*resource))
            }
            Self::Locked(whom) => format!("validity of {whom}"),
            Self::Throttle(most) => format!("its array, of which at most {most} run at once"),
            Self::Nodes => "no nodes with room for its chunks".into(),
            Self::Unsought => "times with too many changes to look at all of them".into(),
            Self::Out(nodes) => {
                let names = names(machine, nodes);
                match nodes[..] {
                    [_] => format!("node {names}, which is out of use"),
                    _ => format!("nodes {names}, which are out of use"),
                }
            }
            Self::Defective(nodes) => {
                let names = names(machine, nodes);
                match nodes[..] {
                    [_] => format!("node {names}, which has a defect"),
                    _ => format!("nodes {names}, which have defects"),
                }
            }
            Self::After(request) => format!("request {request}, which must end first"),
            Self::Planned(request) => {
                format!("request {request}, which is planned on its nodes")
            }
        }
    }
}
