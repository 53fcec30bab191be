// SPDX-License-Identifier: GPL-2.0
//! Rows of the ledger.

use pbs_cluster_planner::{Throttle, When};
use pbs_site::User;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// State of a request in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// The request is accepted and has no place now.
    Waiting,
    /// The request has a place in the plan.
    Planned,
    /// The request has its nodes.
    Running,
    /// The request is over; `outcome` says how it ended.
    Ended,
}

impl State {
    /// Returns the name of the state.
    pub fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Planned => "planned",
            Self::Running => "running",
            Self::Ended => "ended",
        }
    }
}

/// Phase of a running request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Nodes are made ready for the request.
    Allocating,
    /// The request is over, and its nodes are being cleaned; `outcome` says how it ended.
    Releasing,
}

impl Phase {
    /// Returns the name of the phase.
    pub fn name(self) -> &'static str {
        match self {
            Self::Allocating => "allocating",
            Self::Releasing => "releasing",
        }
    }
}

/// Required outcome of a request before its follower may start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// The request completed.
    Ok,
    /// The request ended otherwise.
    NotOk,
    /// Either.
    Any,
}

/// Request that must end first, and its required outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct After {
    /// Number of the request that must end.
    pub request: u64,
    /// Required outcome.
    pub outcome: Outcome,
}

/// Chunks of a request on a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// The node's name.
    pub node: String,
    /// Kind of chunk, the most demanding first.
    pub kind: u32,
    /// Number of chunks.
    pub count: u32,
}

/// A request as it stands, or as it ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// Number of the request.
    pub id: u64,
    /// The reservation that it is in.
    pub within: Option<u64>,
    /// Name of the user who owns the request.
    pub user: String,
    /// Number of this user's account; `None`: the user has none here.
    #[serde(default)]
    pub uid: Option<u32>,
    /// Group whose account is charged.
    pub group: String,
    /// Name that the user gave the request.
    pub name: String,
    /// Resources and place, as text.
    pub rset: String,
    /// Desired time, as text.
    pub when: String,
    /// Whether it belongs to an array.
    pub is_of_array: bool,
    /// Index in the array.
    pub array_index: Option<u64>,
    /// Set of requests of which only some run at the same time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set: Option<String>,
    /// Greatest number of requests of the set that run at the same time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set_most: Option<u64>,
    /// Whether it holds its nodes for others.
    pub is_reservation: bool,
    /// Command with its arguments.
    pub command: Vec<String>,
    /// Actual run time of a simulated request.
    pub run_s: Option<u64>,
    /// Run time that the service expects, learned from earlier requests of the user; `None`: it
    /// expects none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_run_s: Option<u64>,
    /// Minimum time between the notification of the user and the request's end.
    pub notify_s: Option<u64>,
    /// Signal by which programs are notified then.
    #[serde(default)]
    pub notify_signal: Option<String>,
    /// Name of the user who submitted the request, who may be an operator; `None`: the ledger is
    /// older.
    #[serde(default)]
    pub submitted_by: Option<String>,
    /// Number of this user's account; `None`: the user has none here.
    #[serde(default)]
    pub submitted_by_uid: Option<u32>,
    /// Whether it may be started again where its node fails.
    pub is_restartable: bool,
    /// Promise to the user: `none`, `start` or `deadline`.
    #[serde(default = "start_promised")]
    pub promise: String,
    /// Greater goes first where several are planned anew.
    pub priority: i64,
    /// Unfinished requests that must end before this one starts.
    #[serde(default)]
    pub after: Vec<After>,
    /// Time of submission.
    pub submit_s: u64,
    /// Maximum time for which the nodes are booked.
    pub duration_s: u64,
    /// Part of the booked time for making nodes ready.
    #[serde(default)]
    pub allocate_s: u64,
    /// Part of the booked time for cleaning nodes.
    #[serde(default)]
    pub release_s: u64,
    /// Booked time before any extension.
    pub first_duration_s: u64,
    /// State of the request.
    pub state: State,
    /// Phase of a running request whose program does not run yet, or not any more.
    #[serde(default)]
    pub phase: Option<Phase>,
    /// Time at which the nodes were ready.
    #[serde(default)]
    pub ready_s: Option<u64>,
    /// Planned or actual start.
    pub start_s: Option<u64>,
    /// Latest end, or actual end.
    pub end_s: Option<u64>,
    /// Outcome of an ended request.
    pub outcome: Option<String>,
    /// Current or former placement of the chunks.
    pub nodes: Vec<Part>,
    /// Number of cores.
    pub cores: u64,
}

/// Returns the promise of requests in ledgers of older versions, which had no other.
fn start_promised() -> String {
    pbs_site::Promise::Start.name().into()
}

impl Row {
    /// Returns the user who owns the request.
    pub fn owner(&self) -> User {
        User { name: self.user.clone(), uid: self.uid }
    }

    /// Returns the user who submitted the request; `None`: the ledger is older.
    pub fn submitter(&self) -> Option<User> {
        let name = self.submitted_by.clone()?;
        Some(User { name, uid: self.submitted_by_uid })
    }

    /// Returns the limit of the request's set; `None`: it is in no set.
    pub fn throttle(&self) -> Option<Throttle> {
        let (set, most) = self.set.clone().zip(self.set_most)?;
        Some(Throttle { set, most })
    }

    /// Returns the booked time without the parts for making nodes ready and cleaning them.
    pub fn limit_s(&self) -> u64 {
        self.duration_s.saturating_sub(self.allocate_s).saturating_sub(self.release_s)
    }

    /// Returns by how many seconds an end is later than agreed; `None`: nothing was agreed, or it
    /// is kept.
    pub fn broken_by_s(&self, end_s: u64) -> Option<u64> {
        match self.when.parse() {
            Ok(When::Agreement { end_s: agreed_s }) => {
                end_s.checked_sub(agreed_s).filter(|&late_s| late_s > 0)
            }
            _ => None,
        }
    }
}

/// State of a node that is not in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NodeState {
    /// Running requests end there, and nothing new starts.
    Offline,
    /// The node has failed.
    Down,
}

impl NodeState {
    /// Returns the name of the state.
    pub fn name(self) -> &'static str {
        match self {
            Self::Offline => "offline",
            Self::Down => "down",
        }
    }
}

/// A node that is not in use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeRow {
    /// Name of the node.
    pub name: String,
    /// State of the node.
    pub state: NodeState,
    /// Reason given by the operator.
    pub why: String,
    /// Time since when the node is in this state.
    pub since_s: u64,
}

/// Prefix of the reason of a late node.
pub(crate) const NOT_FREE: &str = "not free of request ";

impl NodeRow {
    /// Whether the node is out of use only until it is free of a request.
    pub fn is_late(&self) -> bool {
        self.state == NodeState::Offline && self.why.starts_with(NOT_FREE)
    }
}

/// Parts of a node that are out of use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DefectRow {
    /// Name of the node.
    pub name: String,
    /// Defective amounts, as `ncpus=2:mem=16g`. Empty: the node is repaired.
    pub parts: String,
    /// Reason given by the operator.
    pub why: String,
    /// Time since when the node has this defect.
    pub since_s: u64,
}

/// Times in which a node is closed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClosedRow {
    /// Name of the node.
    pub name: String,
    /// Begins and ends of these times, in seconds since 1970. Empty: the node is open.
    pub times: Vec<(u64, u64)>,
    /// Reason, such as the names of reservations of a batch system.
    pub why: String,
}

/// Event in the life of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Time of the event.
    pub time_s: u64,
    /// Request that the event concerns.
    pub request: Option<u64>,
    /// In a word: `submitted`, `started`, `moved` and others.
    pub what: String,
    /// In a sentence; may be empty.
    pub text: String,
}

/// Sum over forgotten requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Total {
    /// Kind of the requests in it: those of a user, of a group and others.
    pub kind: String,
    /// Name of the user or of the group.
    pub name: String,
    /// Value as JSON.
    pub body: String,
}

impl Total {
    /// Makes a total of a value.
    pub fn new(kind: &str, name: &str, value: &impl Serialize) -> Self {
        Self { kind: kind.into(), name: name.into(), body: text(value) }
    }

    /// Returns the value; `None` if it can't be read.
    pub fn value<T: DeserializeOwned>(&self) -> Option<T> {
        serde_json::from_str(&self.body).ok()
    }
}

/// Returns a value as JSON.
pub(super) fn text(of: &impl Serialize) -> String {
    // Structures of numbers and texts always become JSON.
    serde_json::to_string(of).unwrap_or_default()
}
