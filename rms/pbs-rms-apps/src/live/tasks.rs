// SPDX-License-Identifier: GPL-2.0
//! What runs the tasks of an application.

use std::fmt;

/// What runs the tasks of an application on the nodes that it has.
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

    /// What has happened since it was asked last.
    fn look(&mut self) -> Vec<TaskNews>;
}

/// What has happened to a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskNews {
    /// It is expected to end at another time than before.
    Expected {
        /// Which one.
        task: u64,
        /// When.
        end_unix_ns: u64,
    },
    /// It has ended, by itself or not.
    Ended {
        /// Which one.
        task: u64,
        /// complete, or what has gone wrong.
        outcome: String,
    },
    /// Nobody knows how tasks are, for now.
    Trouble {
        /// Why.
        why: String,
    },
}
