// SPDX-License-Identifier: GPL-2.0

//! The policy of plan-based scheduling.
//!
//! A plan gives a CPU an ordered list of slots, each a number of retired
//! instructions for one process, or idle.  [`wire`] reads and writes plans,
//! [`Plan`] is one CPU's part of a plan, [`Node`] is the run state of a CPU
//! that executes it: it is told what happened, decides who may run until when,
//! and emits events.
//!
//! Nothing here knows a clock, a counter, a lock or the kernel: times and
//! counts come in as arguments.  There is no unsafe code, no allocation after
//! construction, no floating point, and no loop over a plan in a decision.
//! These files are a module of the kernel's scheduling class and a crate for
//! user space; so they only use paths relative to each other.
//!
//! The terms are those of Leppert, "Design and Implementation of a Prediction
//! Failure Handling Component for a Plan-Based Scheduler" (2021), cited by
//! section.

mod config;
mod contradiction;
mod decide;
mod event;
mod grants;
mod idle;
mod info;
#[cfg(test)]
mod invariants;
mod join;
mod lease;
mod memory;
mod memory_signals;
mod node;
mod order;
mod plan;
mod policy;
mod predict;
mod queue;
mod rate;
mod record;
mod refusal;
mod run;
mod signals;
mod take_over;
mod thresholds;
mod turns;
mod windows;
pub mod wire;

pub use config::{Config, IdlePolicy, PreemptionWay, Threshold};
pub use decide::Decision;
pub use event::{Cause, Counts, Event, EventKind, Grant, PresentSlot, Sink, Wait};
pub use info::ProcessInfo;
pub use join::{join, Circle};
pub use lease::Lease;
pub use memory::{Interrupted, Memory, NoMemory};
pub use node::Node;
pub use order::Ended;
pub use plan::{Edge, Plan, Predecessor, Process, Slot};
pub use policy::Policy;
pub use predict::{Origin, Predictor};
pub use rate::Rate;
pub use record::{Input, InputKind, Tap};
pub use refusal::{Errno, Fault, Part, Refusal};
pub use run::Presence;
pub use signals::NodeThresholds;
pub use take_over::TakeOver;
pub use thresholds::Progress;
