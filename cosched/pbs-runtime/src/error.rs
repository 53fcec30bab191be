// SPDX-License-Identifier: GPL-2.0
//! Errors of running a graph.

use std::fmt;

use crate::announce::GRAPH_FILE;

/// Reason for which a graph could not be run.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// Tasks that wait for each other, by name, the last for the first.
    Cycle(Vec<String>),
    /// The graph is invalid: description and remedy.
    Graph(String),
    /// The options are invalid.
    Options(String),
    /// A task can run on none of the devices.
    NothingFits(String),
    /// Variants that have not been profiled, where they are refused: task and variant.
    Unprofiled(Vec<String>),
    /// A task's function has failed or panicked.
    Failed {
        /// The task.
        task: String,
        /// Message of the task.
        why: String,
    },
    /// The graph was written to that file instead of being run.
    Announced(String),
    /// The process of a plan can't be what the runtime needs: description and remedy.
    Plan(String),
    /// A device has failed, or has too little memory.
    Device {
        /// Name of the device.
        device: String,
        /// Message of the device.
        why: String,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cycle(tasks) => {
                write!(f, "tasks wait for each other: {}", tasks.join(" after "))
            }
            Self::Graph(why) | Self::Options(why) | Self::Plan(why) => f.write_str(why),
            Self::Announced(file) => write!(
                f,
                "the graph was not run, but written to {file}; unset {GRAPH_FILE} to run it"
            ),
            Self::NothingFits(task) => write!(
                f,
                "task {task} has no variant for a device that is here: add one, or the device"
            ),
            Self::Unprofiled(variants) => write!(
                f,
                "not profiled: {}; run once with calibration, or give runtimes",
                variants.join(", ")
            ),
            Self::Failed { task, why } => write!(f, "task {task}: {why}"),
            Self::Device { device, why } => write!(f, "device {device}: {why}"),
        }
    }
}

impl std::error::Error for Error {}
