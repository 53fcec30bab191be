// SPDX-License-Identifier: GPL-2.0
//! What the manager tells applications (3.1.4).

use serde::{Deserialize, Serialize};

use crate::{AppId, RequestId};

/// To whom, and what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    /// The session.
    pub app: AppId,
    /// What happened.
    pub event: Event,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Event {
    /// A view of a cluster has changed: [`Rms::views`](crate::Rms::views) has it.
    Views {
        /// Of which cluster.
        cluster: usize,
    },
    /// startNotify(): the request has started and its nodes are free.
    Started {
        /// Which one.
        request: RequestId,
        /// All of its nodes; none for a pre-allocation.
        nodes: Vec<u32>,
    },
    /// Its duration is over. What ran on its nodes is killed, but for those that a successor
    /// keeps.
    Ended {
        /// Which one.
        request: RequestId,
        /// The nodes that it no longer has.
        killed: Vec<u32>,
    },
    /// A request that had been taken can't be: it is gone.
    Refused {
        /// Which one.
        request: RequestId,
    },
    /// The session has ended: more was kept of a cluster than allowed, for longer than the
    /// grace.
    Violation {
        /// Of which cluster.
        cluster: usize,
        /// So many preemptible nodes were kept.
        held: u64,
        /// So many were allowed.
        allowed: u64,
        /// What ran on any of its nodes is killed, of each cluster.
        killed: Vec<Vec<u32>>,
    },
}
