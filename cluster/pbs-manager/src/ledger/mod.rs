// SPDX-License-Identifier: GPL-2.0
//! Persistent state of a cluster's planner, in a file.
//!
//! One SQLite file holds the site, the clock, the nodes that are out of use and the state of each
//! request. The changes of one operation are one transaction, which is on the disk when it returns.
//! SQLite's write-ahead log is the journal, and its tables are the snapshot. Therefore a planner
//! that is killed at any point is restored to the state after the last answered operation, or after
//! the unanswered one.
//!
//! The ledger stores rows without interpreting them; the planner does that.

mod database;
mod error;
mod files;
mod owners;
mod page;
mod row;
mod served;

pub use database::{Access, Changes, Ledger};
pub use error::Error;
pub use owners::{account_user, Attributed, CONTROLLER};
pub use page::{Page, Paged};
pub(crate) use row::NOT_FREE;
pub use row::{
    After, ClosedRow, DefectRow, Event, NodeRow, NodeState, Outcome, Part, Phase, Row, State, Total,
};
pub use served::Served;
