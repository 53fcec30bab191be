// SPDX-License-Identifier: GPL-2.0
//! What a cluster's planner knows, in a file that survives.
//!
//! One SQLite file holds the site, the clock, the nodes that are out of use and each
//! request as it stands. What one operation changes is one transaction, which is on the
//! disk when it returns; SQLite's write-ahead log is the journal, and its tables are the
//! snapshot. So a planner that is killed at any point is found as it was after the last
//! operation that was answered, or after the one that was not.
//!
//! The ledger knows rows and not what they mean: who plans does.

mod database;
mod error;
mod row;

pub use database::{Access, Changes, Ledger};
pub use error::Error;
pub use row::{After, Event, NodeRow, NodeState, Outcome, Part, Phase, Row, State};
