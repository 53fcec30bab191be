// SPDX-License-Identifier: GPL-2.0
//! Fate of a job in a simulation.

use serde::Serialize;

/// What became of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Fate {
    /// When it started; `None`: it was declined.
    pub start_s: Option<u64>,
    /// When its cores were given back, in seconds.
    pub end_s: u64,
    /// It was ended before it was over, at the end of its time.
    pub is_aborted: bool,
    /// Its node, if it is known.
    pub node: Option<u32>,
    /// Its cores on that node, if they are known.
    pub cores: Vec<u32>,
    /// What the node signalled while it ran: late or early.
    pub signals: u64,
    /// New plans that the node got while it ran.
    pub replans: u64,
    /// How often it got more time.
    pub extensions: u64,
    /// By how much in all, in seconds.
    pub extended_s: u64,
    /// How often it was to have more time, and others had the cores.
    pub refused_extensions: u64,
}

impl Fate {
    /// It ran to its end, and in time.
    pub fn keeps(&self, deadline_s: u64) -> bool {
        self.start_s.is_some() && !self.is_aborted && self.end_s <= deadline_s
    }
}
