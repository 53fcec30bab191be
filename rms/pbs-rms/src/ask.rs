// SPDX-License-Identifier: GPL-2.0
//! Messages of applications (Klein and Pérez 2011, 3.1 and A.1).

use std::fmt;

use serde::{Deserialize, Serialize};

/// A session; the order of the numbers is the order of connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct AppId(pub u64);

/// A request, of all sessions; the order of the numbers is the order of submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RequestId(pub u64);

/// The type of a request (3.1.1).
///
/// The firmer ones come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Marks nodes and never has any: closed to others' non-preemptible requests, open to
    /// anyone's preemptible ones.
    PreAllocation,
    /// Runs to completion, inside a pre-allocation or, without one, as if in one of its size.
    NonPreemptible,
    /// Shrinks at any time, if the nodes are needed elsewhere.
    Preemptible,
}

impl Kind {
    /// Returns the name of the type.
    pub fn name(self) -> &'static str {
        match self {
            Self::PreAllocation => "pre-allocation",
            Self::NonPreemptible => "non-preemptible",
            Self::Preemptible => "preemptible",
        }
    }
}

/// The constraint of a request (3.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Relation {
    /// None.
    Free,
    /// Starts with the other; now, if the other has started.
    Coalloc(RequestId),
    /// Starts exactly when the other ends, and keeps its nodes.
    Next(RequestId),
}

impl Relation {
    /// The other one.
    pub fn parent(self) -> Option<RequestId> {
        match self {
            Self::Free => None,
            Self::Coalloc(parent) | Self::Next(parent) => Some(parent),
        }
    }
}

/// request(): the attributes that an application sets (A.1).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ask {
    /// The number of a cluster.
    pub cluster: usize,
    /// Number of nodes, at least one.
    pub nodes: u64,
    /// At least 1; [`FOREVER`](pbs_profile::view::FOREVER): until it is done.
    pub duration_ns: u64,
    /// Type of the request.
    pub kind: Kind,
    /// Constraint of the request.
    pub relation: Relation,
    /// Nodes that it would like to have, as near to each other or to data; it gets those of
    /// them that are free.
    #[serde(default)]
    pub preferred: Vec<u32>,
}

/// An update in one message: both or three of the messages that 3.1.3 has for it. Between
/// those a pass could start or refuse the successor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Update {
    /// Request that gets a successor.
    pub of: RequestId,
    /// Number of nodes of the successor.
    pub nodes: u64,
    /// Duration of the successor.
    pub duration_ns: u64,
    /// Time for which the nodes stay unchanged first; 0 is a spontaneous update.
    pub announce_ns: u64,
    /// The nodes that the successor does not get: exactly as many as it wants fewer, or, of
    /// an announced one, none: then the manager chooses.
    pub released: Vec<u32>,
}

/// Reason for which a message is refused. Nothing has changed then.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Refusal {
    /// No such session, or it has ended.
    UnknownSession,
    /// The session has no such request, or it has ended.
    UnknownRequest(RequestId),
    /// No such cluster.
    UnknownCluster {
        /// Index of the cluster.
        cluster: usize,
        /// Number of clusters.
        clusters: usize,
    },
    /// A request of no nodes, or for no time.
    Empty,
    /// More nodes than the cluster has, or than a limit allows.
    TooMany {
        /// Requested number.
        nodes: u64,
        /// Largest permitted number.
        most: u64,
    },
    /// NEXT keeps nodes, so that both have to be of one cluster, and neither a
    /// pre-allocation if the other is none.
    OtherNodes(RequestId),
    /// A request must depend on one that is at least as firm. Pre-allocations are the firmest, then
    /// non-preemptible requests, then preemptible ones.
    NotFirmer(RequestId),
    /// A request has at most one successor, which gets its nodes.
    HasSuccessor(RequestId),
    /// A request that has not started has no nodes to keep for a while, or to release.
    NotStarted(RequestId),
    /// The nodes are not free for that time.
    NoRoom,
    /// Other nodes have to be given back.
    Released {
        /// Number of named nodes.
        named: usize,
        /// Number of nodes that must be released.
        needed: usize,
    },
    /// A node that the request does not have, or that is named twice.
    NotHeld(u32),
    /// The session may not have more requests.
    TooManyRequests(usize),
    /// The requests of the session may not name more nodes that they prefer.
    TooManyPreferred(usize),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownSession => write!(f, "there is no such session; connect first"),
            Self::UnknownRequest(RequestId(id)) => {
                write!(f, "this session has no request {id}, or it has ended")
            }
            Self::UnknownCluster { cluster, clusters: 0 | 1 } => {
                write!(f, "there is no cluster {cluster}; the only one is cluster 0")
            }
            Self::UnknownCluster { cluster, clusters } => {
                write!(f, "there is no cluster {cluster}; write 0 to {}", clusters - 1)
            }
            Self::Empty => write!(f, "a request needs at least one node and some time"),
            Self::TooMany { nodes, most } => {
                write!(f, "{nodes} nodes are more than the {most} that may be requested")
            }
            Self::OtherNodes(RequestId(id)) => {
                write!(f, "a successor keeps nodes; use the cluster and the type of request {id}")
            }
            Self::NotFirmer(RequestId(id)) => {
                write!(
                    f,
                    "a request can't depend on a less firm one, such as {id}; use another type"
                )
            }
            Self::HasSuccessor(RequestId(id)) => write!(f, "request {id} already has a successor"),
            Self::NotStarted(RequestId(id)) => write!(
                f,
                "request {id} has not started, and has no nodes yet; update it without an \
                 announcement and without released nodes"
            ),
            Self::NoRoom => write!(f, "there are too few free nodes for this time"),
            Self::Released { named, needed } => {
                write!(f, "{named} nodes are released, and {needed} must be")
            }
            Self::NotHeld(node) => {
                write!(f, "node {node} can't be released, since the request does not have it")
            }
            Self::TooManyRequests(most) => {
                write!(f, "a session may have at most {most} requests; end some first")
            }
            Self::TooManyPreferred(most) => {
                write!(f, "the requests of a session may prefer at most {most} nodes together")
            }
        }
    }
}

impl std::error::Error for Refusal {}
