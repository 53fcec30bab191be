// SPDX-License-Identifier: GPL-2.0
//! A cluster: its planner, its ledger, and the engine that carries allocations out.
//!
//! The planner knows no clock, no file and no machine; here they come together. What is
//! asked is checked (whose request is it, what may its user do), planned, and written down
//! before it is answered. Time goes from event to event: a request starts, ends, is over
//! its time, is dropped unconfirmed.
//!
//! Keller's planning, mapping and management modules (3) talk over sockets; here they are
//! calls. An [`Engine`] is what he calls the node side.

mod better_plan;
mod closed;
mod deadlines;
mod defects;
mod deferred;
mod engine;
mod error;
mod followers;
mod forget;
mod journal;
pub mod ledger;
mod manager;
mod nodes;
mod operations;
mod outcome;
mod phases;
mod picture;
mod real_time;
mod record;
mod records;
mod rows;
mod run_times;
mod time;
mod usage;
mod watchdog;
mod wish;
mod words;

pub use better_plan::{LastSearch, SearchReport};
pub use engine::{Allocation, Engine, Happened, Simulated};
pub use error::Error;
pub use manager::{Manager, Recovered};
pub use operations::Planned;
pub use outcome::without_reason;
pub use pbs_cluster_planner::optimise::Cost;
pub use pbs_cluster_planner::Replanned;
pub use real_time::only_mine;
pub use records::Held;
pub use run_times::UserErrors;
pub use time::MOST_BACKFILLS;
pub use usage::{Usage, Usages};
pub use wish::{Caller, Change, Wish};
