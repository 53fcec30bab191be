// SPDX-License-Identifier: GPL-2.0
//! Slow-downs of tasks that run side by side on threads of the CPU (ours).

use std::borrow::Cow;
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

/// Slow-downs in which tasks that had started before a decision have the variants that they started
/// as.
#[derive(Debug)]
pub struct WithStarted<'a> {
    /// Slow-downs of tasks whose variants are known.
    pub slowing: &'a dyn Slowing,
    /// Variant of each task that has started.
    pub variants: Cow<'a, [Option<usize>]>,
    /// Time since which tasks are followed.
    pub since_ns: u64,
}

impl WithStarted<'_> {
    fn with_variant<'t>(&self, of: OnThreads<'t>) -> OnThreads<'t> {
        let own = || self.variants.get(of.task).copied().flatten();
        OnThreads { variant: of.variant.or_else(own), ..of }
    }
}

impl Slowing for WithStarted<'_> {
    fn slowdown(&self, task: OnThreads<'_>, beside: &[OnThreads<'_>]) -> f64 {
        let beside: Vec<OnThreads<'_>> =
            beside.iter().map(|other| self.with_variant(*other)).collect();
        self.slowing.slowdown(self.with_variant(task), &beside)
    }

    fn only_slows(&self) -> bool {
        self.slowing.only_slows()
    }

    fn since_ns(&self) -> u64 {
        self.since_ns
    }
}
