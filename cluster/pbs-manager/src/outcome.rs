// SPDX-License-Identifier: GPL-2.0
//! Outcomes of requests that the manager writes into the ledger, and reads there again.

use crate::ledger::Row;

/// Outcome of a request whose time is over.
pub(crate) const ABORTED: &str = "aborted at its end";
/// Beginning of the outcome of a request that a caller ended.
pub(crate) const KILLED: &str = "killed by ";

impl Row {
    /// Whether a caller ended the request.
    pub fn is_killed(&self) -> bool {
        self.outcome.as_ref().is_some_and(|outcome| outcome.starts_with(KILLED))
    }

    /// Whether the request ended because its time was over.
    pub fn is_aborted(&self) -> bool {
        self.outcome.as_deref() == Some(ABORTED)
    }
}
