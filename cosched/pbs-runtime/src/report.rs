// SPDX-License-Identifier: GPL-2.0
//! Report of a run.

use crate::model::Model;

/// Report of a graph's run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The tasks, in the order in which they were added.
    pub tasks: Vec<TaskReport>,
    /// Number of times that the graph was built anew (listing 5.4).
    pub rebuilds: u32,
    /// Number of times that this process was master.
    pub co_schedulings: u32,
    /// Bytes of device memory that were given back on early exits.
    pub freed_on_exit_bytes: u64,
    /// The graph was run to measure variants.
    pub is_calibration: bool,
    /// Reason for which it ran without the others, from some time on.
    pub alone_because: Option<String>,
}

/// Report of a task's run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskReport {
    /// Name of the task.
    pub name: String,
    /// Index of the variant that ran.
    pub variant: usize,
    /// Programming model of the variant.
    pub model: Model,
    /// The type of device.
    pub device: String,
    /// Number within the type; for the CPU, the first of its threads. `None`: no certain ones.
    pub instance: Option<u32>,
    /// Time of the start, on `CLOCK_MONOTONIC`, in ns.
    pub started_ns: u64,
    /// Time of the end.
    pub ended_ns: u64,
    /// Number of times that the task was skipped by an early exit, to run later.
    pub reruns: u32,
    /// Whether a co-scheduling of several processes' tasks chose the variant.
    pub is_co_scheduled: bool,
}
