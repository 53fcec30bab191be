// SPDX-License-Identifier: GPL-2.0
//! The interface of the service of a cluster, over varlink: what can be asked of it, and what it
//! answers.
//!
//! Times are seconds. Those that end in `_s` and name a moment (`clock_s`, `start_s`, `end_s`)
//! count from 1970. A request and an event have the keys that the command prints as JSON.

mod client;
mod convert;
mod types;

pub use client::{Client, Failure, SOCKET};
pub use types::{
    Alteration, Cause, Changed, Filter, Listed, NodesChanged, Notice, Object, Optimiser, PlanCost,
    PlanSearch, Reasons, Refusal, RunTimeErrors, Shown, Status, Submission,
};
