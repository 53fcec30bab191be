// SPDX-License-Identifier: GPL-2.0
//! Decisions of the operator.

use serde::{Deserialize, Serialize};

use crate::Kind;

/// Policy of a manager where the report leaves a choice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Policy {
    /// The least time from one pass to the next (3.2): messages in between are answered by
    /// one pass.
    pub interval_ns: u64,
    /// Maximum time for which preemptible nodes may be kept after a view has asked for them. The
    /// report has none; its prototype never killed (A.6).
    pub release_grace_ns: u64,
    /// The baseline of section 5.4: nobody gets what another does not use.
    pub is_strict: bool,
    /// Order in which requests are placed.
    pub order: PlacementOrder,
    /// Choice among free nodes.
    pub choice: NodeChoice,
    /// Limits of a session.
    pub limits: Limits,
    /// Prices of nodes.
    pub prices: Prices,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            interval_ns: 1_000_000_000,
            release_grace_ns: 5_000_000_000,
            is_strict: false,
            order: PlacementOrder::default(),
            choice: NodeChoice::default(),
            limits: Limits::default(),
            prices: Prices::default(),
        }
    }
}

/// Order in which requests are placed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlacementOrder {
    /// Connection of the sessions, the earliest first (A.4): a session that has been idle overtakes
    /// requests that others have queued since.
    #[default]
    Connection,
    /// Submission of the requests, the earliest first.
    Request,
}

/// Choice among free nodes, after those that the request prefers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NodeChoice {
    /// The lowest numbers.
    #[default]
    Lowest,
    /// Neighbours: the shortest run of free nodes that holds all, else the longest runs.
    Contiguous,
}

/// Limits of one session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Limits {
    /// Nodes of a cluster that it may have pre-allocated at a time, which is what its view is
    /// clipped to (3.2).
    pub nodes: u64,
    /// Requests at a time.
    pub requests: usize,
    /// Nodes that all of them together may name as preferred.
    pub preferred: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { nodes: u64::MAX, requests: 256, preferred: 4096 }
    }
}

/// Price of a node for an hour, in millionths of the operator's unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Prices {
    /// Pre-allocated, and not used without being preempted.
    pub pre_allocation: u64,
    /// Used to completion.
    pub non_preemptible: u64,
    /// Used until the manager wants it back.
    pub preemptible: u64,
}

impl Prices {
    /// The price of a type.
    pub fn of(&self, kind: Kind) -> u64 {
        match kind {
            Kind::PreAllocation => self.pre_allocation,
            Kind::NonPreemptible => self.non_preemptible,
            Kind::Preemptible => self.preemptible,
        }
    }
}
