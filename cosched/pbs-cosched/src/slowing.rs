// SPDX-License-Identifier: GPL-2.0
//! Slow-downs of tasks that run side by side on threads of the CPU (ours).

use std::fmt::Debug;

/// A task in execution on threads of the CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OnThreads<'a> {
    /// Index of the task in the workload.
    pub task: usize,
    /// Index of its variant; `None`: it had started before the decision.
    pub variant: Option<usize>,
    /// Threads of the CPU, by number.
    pub threads: &'a [u32],
}

/// Knowledge of which tasks slow which.  Tasks on accelerators neither slow nor are slowed.
pub trait Slowing: Debug {
    /// Returns the time of a task beside these others, divided by its time alone.
    fn slowdown(&self, task: OnThreads<'_>, beside: &[OnThreads<'_>]) -> f64;

    /// Returns whether no task is faster beside others than alone.  A search then leaves out
    /// mappings that are no better even without slow-downs.
    fn only_slows(&self) -> bool;

    /// Returns the time since which tasks are followed; by default all of it. Tasks that end by then
    /// keep their times. Tasks that have started keep their starts, and have the rest until their
    /// ends still to do.
    fn since_ns(&self) -> u64 {
        0
    }
}
