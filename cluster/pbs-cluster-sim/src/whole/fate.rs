// SPDX-License-Identifier: GPL-2.0
//! Fate of a job in a simulation.

use serde::Serialize;

/// Fate of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Fate {
    /// Start time; `None`: the job was declined.
    pub start_s: Option<u64>,
    /// Time at which the cores were given back, in seconds.
    pub end_s: u64,
    /// Whether the job was ended at the end of its time, before it was over.
    pub is_aborted: bool,
    /// Node of the job, if it is known.
    pub node: Option<u32>,
    /// Cores of the job on that node, if they are known.
    pub cores: Vec<u32>,
    /// Number of signals of the node while the job ran: late or early.
    pub signals: u64,
    /// New plans that the node got while it ran.
    pub replans: u64,
    /// Number of extensions.
    pub extensions: u64,
    /// Total time of all extensions, in seconds.
    pub extended_s: u64,
    /// Number of extensions that were refused because other jobs had the cores.
    pub refused_extensions: u64,
}

impl Fate {
    /// Whether the job ran to its end by the deadline.
    pub fn keeps(&self, deadline_s: u64) -> bool {
        self.start_s.is_some() && !self.is_aborted && self.end_s <= deadline_s
    }
}
