// SPDX-License-Identifier: GPL-2.0
//! Task graphs whose tasks are co-scheduled with those of other processes (§5.6).
//!
//! A [`Graph`] has tasks with variants, and regions of data that they read and write. A
//! [`Runtime`] has devices: threads of the CPU, and accelerators. [`Runtime::run`]
//! executes a graph:
//!
//! 1. The tasks' CSIs go to shared memory, whether or not a co-scheduling is wanted (§4.3).
//! 2. If one is necessary, this process becomes master, and computes it for all.
//! 3. Each task is checked before it starts: one load (§5.6.2). If a result has come, what
//!    has not started is marked for rerun, data go home to host memory, and the graph is
//!    built anew with one candidate per task, the one that was chosen. And so on, until all
//!    tasks have run (listing 5.4).
//!
//! What runs keeps its variant: there is no preemption (§1.2). Each iteration of a loop is a
//! task of its own, with its own mapping (§5.6.5). With co-scheduling off no shared memory
//! is touched; if shared memory can't be used, the graph runs all the same, and
//! [`Report::alone_because`] says why.
//!
//! A task that panics fails; where panics abort, as in this workspace's release profile, it
//! ends the process, and the others find its tasks gone.

mod accelerator;
mod announce;
mod behind;
mod body;
mod calibrate;
mod context;
mod cosched;
mod cpus;
mod error;
mod execute;
mod graph;
#[cfg(feature = "history")]
pub mod history;
mod local;
mod mapping;
mod memory;
mod model;
#[cfg(feature = "opencl")]
pub mod opencl;
mod pass;
mod planned;
mod pool;
mod profile;
mod region;
mod report;
mod run;
mod running;
mod runtime;

pub use accelerator::{Accelerator, Argument, Buffer, Simulated};
pub use announce::GRAPH_FILE;
pub use body::{Body, Function, Kernel};
pub use context::{Access, Context};
pub use cosched::{CoScheduling, Scheduler};
pub use cpus::allowed as allowed_cpus;
pub use error::Error;
pub use graph::{Graph, Task, TaskId, Variant};
pub use model::Model;
pub use pool::Nesting;
pub use profile::{InMemory, Key, Profiles};
pub use region::Region;
pub use report::{Report, TaskReport};
pub use runtime::{DeviceSpec, Options, Runtime, Unprofiled, MOST_UNITS};
