// SPDX-License-Identifier: GPL-2.0
//! Slow-downs of tests, and the schedulers that regard slow-downs.

use pbs_cosched::{GreedyOptions, OnThreads, Priority, Scheduler, Slot, Slowing, Where};

/// Slow-downs of each task by each other, which add up.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) by: Vec<Vec<f64>>,
    pub(crate) only_slows: bool,
}

impl Table {
    /// Every task slows every other by so much.
    pub(crate) fn all(tasks: usize, slowdown: f64) -> Self {
        Self { by: vec![vec![slowdown; tasks]; tasks], only_slows: true }
    }

    pub(crate) fn sum(&self, task: usize, beside: impl Iterator<Item = usize>) -> f64 {
        1.0 + beside.map(|other| self.by[task][other] - 1.0).sum::<f64>()
    }
}

impl Slowing for Table {
    fn slowdown(&self, task: OnThreads<'_>, beside: &[OnThreads<'_>]) -> f64 {
        assert!(!beside.is_empty() && !task.threads.is_empty());
        assert!(task.variant.is_some() && beside.iter().all(|of| of.variant.is_some()));
        self.sum(task.task, beside.iter().map(|other| other.task))
    }

    fn only_slows(&self) -> bool {
        self.only_slows
    }
}

/// Panics where two tasks share a thread or an accelerator at the same time.
pub(crate) fn assert_apart(one: &Slot, other: &Slot) {
    let shares = match (&one.place, &other.place) {
        (Where::Threads(one), Where::Threads(other)) => {
            one.iter().any(|thread| other.contains(thread))
        }
        (one, other) => one == other,
    };
    let apart = one.end_ns <= other.start_ns || other.end_ns <= one.start_ns;
    assert!(apart || !shares, "two tasks at once on {:?}", one.place);
}

/// Schedulers that regard slow-downs.
pub(crate) const SCHEDULERS: [Scheduler; 4] = [
    Scheduler::Greedy(GreedyOptions {
        contention: Priority::Age,
        leftovers: Priority::Age,
        stickiness: true,
    }),
    Scheduler::Heft,
    Scheduler::Evolutionary(1),
    Scheduler::BruteForce,
];
