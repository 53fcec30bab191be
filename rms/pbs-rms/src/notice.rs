// SPDX-License-Identifier: GPL-2.0
//! Notices of the manager to applications (3.1.4).

use serde::{Deserialize, Serialize};

use crate::{AppId, RequestId};

/// Notice to a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    /// The session.
    pub app: AppId,
    /// Event of the notice.
    pub event: Event,
}

/// Event that concerns a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Event {
    /// A view of a cluster has changed: [`Rms::views`](crate::Rms::views) has it.
    Views {
        /// Cluster of the view.
        cluster: usize,
    },
    /// startNotify(): the request has started and its nodes are free.
    Started {
        /// Started request.
        request: RequestId,
        /// All of its nodes; none for a pre-allocation.
        nodes: Vec<u32>,
    },
    /// The duration of a request is over. Processes on its nodes are killed, except on nodes that a
    /// successor keeps.
    Ended {
        /// Ended request.
        request: RequestId,
        /// The nodes that it no longer has.
        killed: Vec<u32>,
    },
    /// A request that had been taken can't be: it is gone.
    Refused {
        /// Refused request.
        request: RequestId,
    },
    /// The session has ended: more was kept of a cluster than allowed, for longer than the
    /// grace.
    Violation {
        /// Cluster whose nodes were kept.
        cluster: usize,
        /// Number of preemptible nodes that were kept.
        held: u64,
        /// Number of preemptible nodes that were allowed.
        allowed: u64,
        /// Nodes of the session in each cluster; processes on any of them are killed.
        killed: Vec<Vec<u32>>,
    },
}
