// SPDX-License-Identifier: GPL-2.0
//! Execution of an application's tasks.

use std::fmt;

/// Executor of an application's tasks on its nodes.
pub trait Tasks: fmt::Debug {
    /// Begins a task on a node, which is the application's until then; none: until it is taken
    /// away.
    ///
    /// # Errors
    ///
    /// In words, why it can't be. The task counts as one that has ended.
    fn start(&mut self, task: u64, node: u32, until_unix_ns: Option<u64>) -> Result<(), String>;

    /// The nodes of a task are the application's for longer.
    fn extend(&mut self, task: u64, until_unix_ns: u64);

    /// Ends a task before its time: when this returns, nothing of it runs.
    fn kill(&mut self, task: u64);

    /// Returns the events since the last call.
    fn look(&mut self) -> Vec<TaskNews>;
}

/// Event of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskNews {
    /// The expected end of the task has changed.
    Expected {
        /// Number of the task.
        task: u64,
        /// Expected end.
        end_unix_ns: u64,
    },
    /// The task has ended, by itself or not.
    Ended {
        /// Number of the task.
        task: u64,
        /// complete, or what has gone wrong.
        outcome: String,
    },
    /// The state of tasks is unknown for now.
    Trouble {
        /// Reason.
        why: String,
    },
}
