// SPDX-License-Identifier: GPL-2.0
//! What stands in the ledger.

use serde::{Deserialize, Serialize};

/// Where a request is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It is accepted and has no place now.
    Waiting,
    /// It has a place in the plan.
    Planned,
    /// It has its nodes.
    Running,
    /// It is over; `outcome` says how.
    Ended,
}

impl State {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Planned => "planned",
            Self::Running => "running",
            Self::Ended => "ended",
        }
    }
}

/// Where a running request is on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Its nodes are made ready for it.
    Allocating,
    /// It is over, and its nodes are being cleaned; `outcome` says how it ended.
    Releasing,
}

impl Phase {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Allocating => "allocating",
            Self::Releasing => "releasing",
        }
    }
}

/// How another request has to end before one may start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It completed.
    Ok,
    /// It ended otherwise.
    NotOk,
    /// Either.
    Any,
}

/// Another request that has to be over first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct After {
    /// Which.
    pub request: u64,
    /// How it has to end.
    pub outcome: Outcome,
}

/// Chunks of a request on a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// The node's name.
    pub node: String,
    /// Which kind of chunk, the most demanding first.
    pub kind: u32,
    /// How many.
    pub count: u32,
}

/// A request as it stands, or as it ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// Its number.
    pub id: u64,
    /// The reservation that it is in.
    pub within: Option<u64>,
    /// Whose it is.
    pub user: String,
    /// On whose account.
    pub group: String,
    /// What its user calls it.
    pub name: String,
    /// Resources and place, as text.
    pub rset: String,
    /// When it wants to run, as text.
    pub when: String,
    /// Whether it belongs to an array.
    pub is_of_array: bool,
    /// Which of the array.
    pub array_index: Option<u64>,
    /// Whether it holds its nodes for others.
    pub is_reservation: bool,
    /// What is started, with its arguments.
    pub command: Vec<String>,
    /// How long it really runs, where that is simulated.
    pub run_s: Option<u64>,
    /// So long before its end at the latest its user is told.
    pub notify_s: Option<u64>,
    /// Whether it may be started again where its node fails.
    pub is_restartable: bool,
    /// Greater goes first where several are planned anew.
    pub priority: i64,
    /// What has to be over before it starts, of that which is not.
    #[serde(default)]
    pub after: Vec<After>,
    /// When it was submitted.
    pub submit_s: u64,
    /// How long at most its nodes are booked.
    pub duration_s: u64,
    /// What of that is for making them ready.
    #[serde(default)]
    pub allocate_s: u64,
    /// What of that is for cleaning them.
    #[serde(default)]
    pub release_s: u64,
    /// The same before it was extended.
    pub first_duration_s: u64,
    /// Where it is in its life.
    pub state: State,
    /// Where it is while it runs, if that is not running.
    #[serde(default)]
    pub phase: Option<Phase>,
    /// When its nodes were ready.
    #[serde(default)]
    pub ready_s: Option<u64>,
    /// When it starts or started.
    pub start_s: Option<u64>,
    /// When it is over at the latest, or was.
    pub end_s: Option<u64>,
    /// How it ended.
    pub outcome: Option<String>,
    /// Where its chunks are or were.
    pub nodes: Vec<Part>,
    /// How many cores it has.
    pub cores: u64,
}

/// Why a node is not in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NodeState {
    /// What runs on it ends there, and nothing new starts.
    Offline,
    /// It has failed.
    Down,
}

impl NodeState {
    /// Its name.
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
    /// Its name.
    pub name: String,
    /// How.
    pub state: NodeState,
    /// What the operator says.
    pub why: String,
    /// Since when.
    pub since_s: u64,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// When.
    pub time_s: u64,
    /// To which request.
    pub request: Option<u64>,
    /// In a word: `submitted`, `started`, `moved` and others.
    pub what: String,
    /// In a sentence; may be empty.
    pub text: String,
}
