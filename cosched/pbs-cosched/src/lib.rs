// SPDX-License-Identifier: GPL-2.0
//! Co-scheduling: finding an execution sequence for the tasks of several processes (§2.4).
//!
//! Each task has variants: the same function for different targets, each with a profiled
//! runtime.  This crate decides when the waiting tasks are mapped anew, which variant each
//! gets and in which round it is queued, and says when everything would start and end.
//! It has no clock, no files and no threads; a command, a runtime and a simulation run the
//! same lines.
//!
//! "§" are sections of the thesis, "ours" is what it does not have.
//!
//! ```
//! use pbs_cosched::{simulate, DeviceType, ExecutionTarget, Options, Platform};
//! use pbs_cosched::{Process, Task, Variant, Workload};
//!
//! let gpu = DeviceType { name: "gpu".into(), count: 1, ..DeviceType::default() };
//! let platform = Platform { threads: 2, devices: vec![gpu] };
//! let process = |name: &str, arrival_ns| Process {
//!     name: name.into(),
//!     owner: 1000,
//!     arrival_ns,
//!     deadline_ns: None,
//! };
//! let variant = |model: &str, place, runtime_ns| Variant { model: model.into(), place, runtime_ns };
//! let task = |name: &str, process, variants| Task {
//!     name: name.into(),
//!     process,
//!     after: Vec::new(),
//!     variants,
//! };
//! let gpu = ExecutionTarget::Device(0);
//! let either = vec![variant("OCL", gpu, 10), variant("OMP", ExecutionTarget::Threads(2), 15)];
//! let workload = Workload {
//!     processes: vec![process("first", 0), process("second", 1)],
//!     tasks: vec![
//!         task("a", 0, either.clone()),
//!         task("b", 0, either),
//!         task("c", 1, vec![variant("OCL", gpu, 10)]),
//!     ],
//! };
//! // When the second process comes, the first one's waiting task leaves the accelerator to it.
//! let run = simulate(&workload, &platform, &Options::default()).unwrap();
//! assert_eq!(run.variants, [Some(0), Some(1), Some(0)]);
//! ```

mod baseline;
mod check;
mod cost;
mod determination;
mod evolutionary;
mod fluid;
mod greedy;
mod heft;
mod indirect;
mod mapping;
mod model;
mod objective;
mod oracle;
mod pricing;
mod problem;
mod queues;
mod random_mapping;
mod report;
mod resources;
mod schedule;
mod simulate;
mod slowing;
mod state;
mod timing;

pub use baseline::not_co_scheduled;
pub use check::{check, Fault};
pub use cost::Cost;
pub use determination::{necessary, Amortization, Determination, Necessity};
pub use evolutionary::evolutionary;
pub use fluid::slowed;
pub use greedy::{greedy, GreedyOptions, Priority};
pub use heft::{heft, Heft};
pub use indirect::{direct_dependencies, Recorded};
pub use mapping::{Choice, Hold, Mapping, Timeline};
pub use model::{
    DeviceType, Edge, ExecutionTarget, Host, Platform, Process, Task, Variant, Workload,
};
pub use objective::{accept, score, Objective, Reason, Score, Verdict};
pub use oracle::{brute_force, OracleResult, MOST_TASKS};
pub use queues::{Entry, Queues, Slot, State, Where};
pub use random_mapping::{allowed_random, enhanced_random, plain_random, EnhancedOptions};
pub use report::{measure, speed_up, Measures};
pub use resources::Transfer;
pub use schedule::{evaluations, schedule, schedule_slowed, Scheduler};
pub use simulate::{simulate, simulate_slowed, Decision, Options, Run};
pub use slowing::{OnThreads, Slowing, WithStarted};
pub use timing::timing;
