// SPDX-License-Identifier: GPL-2.0
//! Messages on the socket.

use serde::{Deserialize, Serialize};
use zlink::introspect::{CustomType, ReplyError, Type};

/// Cluster of identical nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, CustomType)]
pub struct Cluster {
    /// Name of the cluster
    pub name: String,
    /// Number of nodes, numbered from 0
    pub nodes: u64,
    /// CPU of this machine for each node; none: the nodes are not CPUs of this machine
    pub cpus: Option<Vec<u32>>,
}

/// Session that has begun, or continues.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Type)]
pub struct Connected {
    /// Number of the session
    pub session: u64,
    /// Clusters; requests and views refer to them by index, from 0
    pub clusters: Vec<Cluster>,
}

/// Request of an application.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, CustomType)]
pub struct Asked {
    /// Index of the cluster
    pub cluster: u64,
    /// Number of nodes
    pub nodes: u64,
    /// Duration; none: until the request is done
    pub duration_ns: Option<u64>,
    /// pre-allocation, non-preemptible or preemptible
    pub kind: String,
    /// Request with which it starts
    pub coalloc: Option<u64>,
    /// Request after which it starts, and whose nodes it keeps
    pub next: Option<u64>,
    /// Preferred nodes
    pub preferred: Option<Vec<u32>>,
}

/// Change of a request's nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, CustomType)]
pub struct Change {
    /// Number of the request
    pub request: u64,
    /// New number of nodes
    pub nodes: u64,
    /// Duration; none: until the request is done
    pub duration_ns: Option<u64>,
    /// Time for which the request keeps its old nodes first; none: no time
    pub announce_ns: Option<u64>,
    /// Nodes to release: exactly as many as the request loses
    pub released: Option<Vec<u32>>,
}

/// Accepted request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Type)]
pub struct Made {
    /// Number of the request
    pub request: u64,
    /// Number of the request that has the nodes until an announced update
    pub until: Option<u64>,
}

/// Number of nodes for a duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, CustomType)]
pub struct Step {
    /// Duration; none: for ever
    pub duration_ns: Option<u64>,
    /// Number of nodes that could be available
    pub nodes: u64,
}

/// Consecutive steps, without nodes before and after them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, CustomType)]
pub struct Cap {
    /// Begin of the first step
    pub from_unix_ns: u64,
    /// Steps
    pub steps: Vec<Step>,
}

/// Views of an application on a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, CustomType)]
pub struct View {
    /// Index of the cluster
    pub cluster: u64,
    /// Nodes that pre-allocations and non-preemptible requests could get
    pub non_preemptible: Cap,
    /// Nodes that preemptible requests could get; the application must give back any that they have
    /// beyond these
    pub preemptible: Cap,
}

/// Views of a session on all clusters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Type)]
pub struct Seen {
    /// Views of each cluster
    pub views: Vec<View>,
}

/// Notice to a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Type)]
pub struct Notice {
    /// Time of the notice
    pub unix_ns: u64,
    /// views: a view has changed; started: a request has its nodes; ended: the time of a request is
    /// over; refused: a request is impossible and was removed; violation: nodes were kept for too
    /// long, and the session has ended; closed: the session has ended
    pub kind: String,
    /// The views
    pub views: Option<View>,
    /// The request
    pub request: Option<u64>,
    /// Nodes of the request; or nodes that the session has lost, on which all processes are killed
    pub nodes: Option<Vec<u32>>,
    /// Reason, if a request was refused or ended, or nodes were kept for too long
    pub why: Option<String>,
}

/// State of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, CustomType)]
pub struct Held {
    /// Number of the request
    pub request: u64,
    /// Index of the cluster
    pub cluster: u64,
    /// pre-allocation, non-preemptible or preemptible
    pub kind: String,
    /// Number of requested nodes
    pub nodes: u64,
    /// Duration; none: until the request is done
    pub duration_ns: Option<u64>,
    /// Time of the start
    pub started_unix_ns: Option<u64>,
    /// Expected time of the start
    pub scheduled_unix_ns: Option<u64>,
    /// Nodes that the request has
    pub held: Vec<u32>,
}

/// State of a cluster's nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, CustomType)]
pub struct ClusterNodes {
    /// Name of the cluster
    pub name: String,
    /// Number of nodes
    pub nodes: u64,
    /// Nodes that no session has or waits for: they may be switched off
    pub idle: Vec<u32>,
}

/// The nodes of all clusters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Type)]
pub struct AllNodes {
    /// Clusters, in the order of their indices
    pub clusters: Vec<ClusterNodes>,
}

/// State of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, CustomType)]
pub struct Session {
    /// Number of the session
    pub session: u64,
    /// Name of the application
    pub name: String,
    /// User who owns the session
    pub uid: u32,
    /// Whether a connection monitors the session
    pub is_monitored: bool,
    /// Requests, in the order of submission
    pub requests: Vec<Held>,
}

/// All sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Type)]
pub struct Sessions {
    /// Sessions, in the order of connection
    pub sessions: Vec<Session>,
}

/// Account of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, CustomType)]
pub struct Account {
    /// Number of the session
    pub session: u64,
    /// Name of the application
    pub name: String,
    /// User who owned the session
    pub uid: u32,
    /// Whether the session has ended
    pub is_over: bool,
    /// Node seconds pre-allocated
    pub pre_allocated_node_s: u64,
    /// ... of which no non-preemptible request used
    pub idle_node_s: u64,
    /// Node seconds of non-preemptible requests
    pub non_preemptible_node_s: u64,
    /// Node seconds of preemptible requests
    pub preemptible_node_s: u64,
    /// ... of which the session kept although a view had asked for them
    pub overstayed_node_s: u64,
    /// Node seconds lost by killing, as reported by the application
    pub wasted_node_s: u64,
    /// Cost, in millionths of the operator's unit
    pub cost_micro: u64,
}

/// Accounts of sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Type)]
pub struct Accounts {
    /// Accounts in the order of connection; those of ended sessions come last
    pub accounts: Vec<Account>,
}

/// Reason for which a call was refused.
#[derive(Clone, Debug, PartialEq, Eq, zlink::ReplyError, ReplyError)]
#[zlink(interface = "org.sched-pbs.Rms")]
pub enum Refusal {
    /// The session does not exist; a session that is not monitored ends after a while
    NoSuchSession {
        /// Number of the session
        session: u64,
    },
    /// The operation is reserved for the session's user and for operators
    NotPermitted {
        /// Refused operation
        what: String,
    },
    /// The request is impossible; nothing has changed
    Refused {
        /// Reason
        why: String,
    },
    /// The user has too many sessions; end some first
    TooManySessions {
        /// Largest permitted number
        most: u64,
    },
    /// Notices arrived faster than they were read, and some are lost: monitor again
    Lagged,
}
