// SPDX-License-Identifier: GPL-2.0

//! The policy of plan-based scheduling.
//!
//! A plan gives a CPU an ordered list of slots, each a number of retired instructions for one
//! process, or idle.  [`wire`] reads and writes plans, [`Plan`] is one CPU's part of a plan,
//! [`Node`] is the run state of a CPU that executes it: it receives reports of what happened,
//! decides which process may run until when, and emits events.
//!
//! This code has no access to a clock, a counter, a lock or the kernel: times and counts are
//! arguments.  There is no unsafe code, no allocation after construction, no floating point, and no
//! loop over a plan in a decision.  These files are a module of the kernel's scheduling class and a
//! crate for user space; therefore they only use paths relative to each other.
//!
//! The terms are those of Leppert, "Design and Implementation of a Prediction Failure Handling
//! Component for a Plan-Based Scheduler" (2021), cited by section.

#[macro_use]
mod saved;

mod approach;
mod budget;
mod calls;
mod changed;
mod choices;
mod circle;
mod config;
mod configure;
mod contradiction;
mod decide;
mod division;
mod event;
mod float;
mod fraction;
mod grant;
mod heap;
mod idle;
mod idle_time;
mod info;
mod input;
#[cfg(test)]
mod invariants;
mod join;
mod kernel_time;
mod lease;
mod lengths;
mod level;
mod memory;
mod memory_signals;
mod messages;
mod next_check;
mod node;
mod node_signals;
mod order;
mod plan;
mod plan_status;
mod policies;
mod policy;
mod predict;
mod processes;
mod queue;
mod ranges;
mod rate;
mod rates;
mod record;
mod refusal;
mod report;
mod responses;
#[cfg(any(test, feature = "std"))]
mod restore;
#[cfg(any(test, feature = "std"))]
mod restored;
mod run;
mod signals;
mod slot;
mod slots;
mod snapshot;
mod sort;
mod standing;
mod sums;
mod take_over;
mod thresholds;
mod timeliness;
mod turns;
mod wait_lists;
mod windows;
pub mod wire;
mod words;

pub use circle::Circle;
pub use config::{Config, Dispatch, IdlePolicy, PreemptionWay, StressCause, T1State, Threshold};
pub use decide::Decision;
pub use event::{Cause, Counts, Ended, Event, EventKind, Grant, PresentSlot, Sink, Wait};
pub use info::ProcessInfo;
pub use input::{Input, InputKind, Tap};
pub use join::join;
pub use lease::Lease;
pub use memory::{Interrupted, Memory, NoMemory};
pub use node::Node;
pub use plan::{Edge, Plan, Predecessor, Process, Slot};
pub use policy::Policy;
pub use predict::{Origin, Predictor};
pub use rate::Rate;
pub use refusal::{Errno, Fault, Part, Refusal};
#[cfg(any(test, feature = "std"))]
pub use restored::SnapshotError;
pub use run::Presence;
pub use signals::NodeThresholds;
pub use sort::sort;
pub use take_over::TakeOver;
pub use thresholds::Progress;
