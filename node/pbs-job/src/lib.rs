// SPDX-License-Identifier: GPL-2.0
//! Input of the planner: a [`Machine`], and [`Job`]s to run on it (Glaß 2024, 4.1, 4.2 and 5.1.2).
//!
//! Both are read from TOML ([`machine_from_toml`], [`job_from_toml`]) or from the four files of
//! Glaß's prototype ([`glass`]), and written as TOML. Every job is a [`Draft`] first. Its task net
//! and figures are checked completely before anything else is done with it ([`Draft::check`]).
//! [`with_values`] replaces values in a file, for callers that forward the file of another user.
//!
//! A job whose tasks have several implementations is a [`graph`]: it leaves open which
//! implementation runs, and where. This is decided before the job is planned.

mod amounts;
mod check;
mod checkpoint;
mod draft;
mod edit;
mod export;
pub mod glass;
pub mod graph;
mod held;
mod json;
mod machine;
mod model;
mod moment;
mod parse;

pub use draft::{Draft, DraftProcess, DraftTask, Kind};
pub use edit::with_values;
pub use export::job_to_toml;
pub use json::{graph_to_json, job_to_json, machine_to_json};
pub use machine::{machine_from_toml, machine_to_toml};
pub use model::{
    cpu_list, cpus_of_list, Action, Amount, Checkpoint, Core, Device, Job, Link, Machine, Node,
    Process, Resource, Sharing, Task, Worth, DEMAND_PERMILLE, MAX_AMOUNT,
    MAX_BANDWIDTH_BYTES_PER_S, MAX_HOLDERS, MAX_MEMORY_BYTES, MAX_MESSAGE_BYTES, MAX_NAME_BYTES,
    MAX_NS, MAX_RATE_INSNS_PER_S, MAX_RESOURCES, MAX_TASKS, MAX_WORTH, NOTICE_SIGNALS, TICK_NS,
};
pub use moment::{is_moment, moment_unix_ns, now_unix_ns, with_spans};
pub use parse::job_from_toml;
pub use pbs_plan::{Command, Start};
pub use pbs_text::{Line, Problem};
