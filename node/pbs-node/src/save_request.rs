// SPDX-License-Identifier: GPL-2.0
//! Request to a run to save its work before it is ended.

use std::fmt;
use std::time::Duration;

use pbs_text::span;

/// Request to the programs of a run to save their work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SaveRequest {
    /// Signal by which they were notified.
    pub signal: String,
    /// Number of processes that got it.
    pub processes: usize,
    /// Time after which they are told to end.
    pub within: Duration,
}

impl fmt::Display for SaveRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { signal, processes, within } = self;
        let within = span(u64::try_from(within.as_nanos()).unwrap_or(u64::MAX));
        write!(f, "was asked to save itself ({signal} to {processes} processes, within {within})")
    }
}
