// SPDX-License-Identifier: GPL-2.0
//! What a run was like.

use crate::model::Model;

/// How a graph ran.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The tasks, in the order in which they were added.
    pub tasks: Vec<TaskReport>,
    /// So often the graph was built anew (listing 5.4).
    pub rebuilds: u32,
    /// So often this process was master.
    pub co_schedulings: u32,
    /// Bytes of device memory that were given back on early exits.
    pub freed_on_exit_bytes: u64,
    /// The graph was run to measure variants.
    pub is_calibration: bool,
    /// Why it ran without the others, from some time on.
    pub alone_because: Option<String>,
}

/// How a task ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskReport {
    /// Its name.
    pub name: String,
    /// Which of its variants ran.
    pub variant: usize,
    /// Its programming model.
    pub model: Model,
    /// The type of device.
    pub device: String,
    /// Which of the type; of the CPU, the first of its threads. Nothing: no certain ones.
    pub instance: Option<u32>,
    /// When it started, on `CLOCK_MONOTONIC`, in ns.
    pub started_ns: u64,
    /// When it ended.
    pub ended_ns: u64,
    /// So often it was skipped by an early exit, to run later.
    pub reruns: u32,
    /// Its variant was chosen by a co-scheduling of several processes' tasks.
    pub is_co_scheduled: bool,
}
