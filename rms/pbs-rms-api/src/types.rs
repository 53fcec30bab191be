// SPDX-License-Identifier: GPL-2.0
//! What goes over the socket.

use serde::{Deserialize, Serialize};
use zlink::introspect::{CustomType, ReplyError, Type};

/// A cluster of nodes that are all the same.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, CustomType)]
pub struct Cluster {
    /// Its name
    pub name: String,
    /// How many nodes it has, numbered from 0
    pub nodes: u64,
    /// Which CPU of this machine each node is; none: they are no CPUs of it
    pub cpus: Option<Vec<u32>>,
}

/// A session that has begun, or that goes on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Type)]
pub struct Connected {
    /// Its number
    pub session: u64,
    /// The clusters; requests and views name them by their place, from 0
    pub clusters: Vec<Cluster>,
}

/// What an application asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, CustomType)]
pub struct Asked {
    /// Of which cluster
    pub cluster: u64,
    /// How many nodes
    pub nodes: u64,
    /// For how long; none: until it is done
    pub duration_ns: Option<u64>,
    /// pre-allocation, non-preemptible or preemptible
    pub kind: String,
    /// A request that it starts with
    pub coalloc: Option<u64>,
    /// A request that it starts after, and keeps the nodes of
    pub next: Option<u64>,
    /// Nodes that it would like to have
    pub preferred: Option<Vec<u32>>,
}

/// Other nodes for a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, CustomType)]
pub struct Change {
    /// Which request
    pub request: u64,
    /// How many nodes it is to have
    pub nodes: u64,
    /// For how long; none: until it is done
    pub duration_ns: Option<u64>,
    /// How long it keeps those that it has first; none: it does not
    pub announce_ns: Option<u64>,
    /// The nodes that it gives back, as many as it is to have fewer
    pub released: Option<Vec<u32>>,
}

/// A request that has been taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Type)]
pub struct Made {
    /// Its number
    pub request: u64,
    /// Of an announced update the one that has the nodes until then
    pub until: Option<u64>,
}

/// So many nodes for so long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, CustomType)]
pub struct Step {
    /// None: for ever
    pub duration_ns: Option<u64>,
    /// How many nodes there could be
    pub nodes: u64,
}

/// Steps one after the other; nothing before and after.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, CustomType)]
pub struct Cap {
    /// When the first begins
    pub from_unix_ns: u64,
    /// The steps
    pub steps: Vec<Step>,
}

/// What an application sees of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, CustomType)]
pub struct View {
    /// Which one
    pub cluster: u64,
    /// What pre-allocations and non-preemptible requests could get
    pub non_preemptible: Cap,
    /// What preemptible requests could get; what they have more than that now has to be
    /// given back
    pub preemptible: Cap,
}

/// What a session sees of all clusters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Type)]
pub struct Seen {
    /// By cluster
    pub views: Vec<View>,
}

/// What happens to a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Type)]
pub struct Notice {
    /// When
    pub unix_ns: u64,
    /// views: what there could be has changed; started: a request has its nodes; ended: its
    /// time is over; refused: it can't be and is gone; violation: nodes were kept for too
    /// long, and the session is over; closed: the session is over
    pub kind: String,
    /// The views
    pub views: Option<View>,
    /// The request
    pub request: Option<u64>,
    /// Its nodes; or those that are no longer the session's, and what ran there is killed
    pub nodes: Option<Vec<u32>>,
    /// Of what was refused, ended or violated: why
    pub why: Option<String>,
}

/// A request as it stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, CustomType)]
pub struct Held {
    /// Its number
    pub request: u64,
    /// Of which cluster
    pub cluster: u64,
    /// pre-allocation, non-preemptible or preemptible
    pub kind: String,
    /// How many nodes it wants
    pub nodes: u64,
    /// For how long; none: until it is done
    pub duration_ns: Option<u64>,
    /// When it started
    pub started_unix_ns: Option<u64>,
    /// When it will, as things are
    pub scheduled_unix_ns: Option<u64>,
    /// Those that it has
    pub held: Vec<u32>,
}

/// The nodes of a cluster as they stand.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, CustomType)]
pub struct ClusterNodes {
    /// Its name
    pub name: String,
    /// How many it has
    pub nodes: u64,
    /// Those that nobody has or waits for: they may be switched off
    pub idle: Vec<u32>,
}

/// The nodes of all clusters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Type)]
pub struct AllNodes {
    /// In the order in which requests name them
    pub clusters: Vec<ClusterNodes>,
}

/// A session as it stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, CustomType)]
pub struct Session {
    /// Its number
    pub session: u64,
    /// What it calls itself
    pub name: String,
    /// Whose it is
    pub uid: u32,
    /// Somebody monitors it
    pub is_monitored: bool,
    /// Its requests, in the order of submission
    pub requests: Vec<Held>,
}

/// All sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Type)]
pub struct Sessions {
    /// In the order of connection
    pub sessions: Vec<Session>,
}

/// What a session has had.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, CustomType)]
pub struct Account {
    /// Its number
    pub session: u64,
    /// What it calls itself
    pub name: String,
    /// Whose it is
    pub uid: u32,
    /// It is over
    pub is_over: bool,
    /// Node seconds pre-allocated
    pub pre_allocated_node_s: u64,
    /// ... of which nothing non-preemptible used
    pub idle_node_s: u64,
    /// Node seconds of non-preemptible requests
    pub non_preemptible_node_s: u64,
    /// Node seconds of preemptible ones
    pub preemptible_node_s: u64,
    /// ... of which were kept although a view had asked for them
    pub overstayed_node_s: u64,
    /// What it says it has lost by killing
    pub wasted_node_s: u64,
    /// What it costs, in millionths of the operator's unit
    pub cost_micro: u64,
}

/// What sessions have had.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Type)]
pub struct Accounts {
    /// In the order of connection; those that are over last
    pub accounts: Vec<Account>,
}

/// Why something was not done.
#[derive(Clone, Debug, PartialEq, Eq, zlink::ReplyError, ReplyError)]
#[zlink(interface = "org.sched-pbs.Rms")]
pub enum Refusal {
    /// There is no such session; one that is not monitored ends after a while
    NoSuchSession {
        /// Its number
        session: u64,
    },
    /// Only its user, or an operator, may do that
    NotPermitted {
        /// What
        what: String,
    },
    /// What was asked for can't be; nothing has changed
    Refused {
        /// Why
        why: String,
    },
    /// There are too many sessions; end some first
    TooManySessions {
        /// So many may be
        most: u64,
    },
    /// Notices came faster than they were read, and some are lost: monitor again
    Lagged,
}
