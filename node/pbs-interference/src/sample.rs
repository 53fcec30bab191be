// SPDX-License-Identifier: GPL-2.0
//! Measurements of one run of one task.

use std::collections::BTreeMap;

use crate::{Key, Neighbour};

/// Duration for which a task ran beside the same others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Beside {
    /// Neighbours on the other CPUs, ascending; empty: it ran alone.
    pub neighbours: Vec<Neighbour>,
    /// Duration in execution time of the task.
    pub duration_ns: u64,
}

/// One run of one task, from its first instruction to its last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// Key of the task that ran.
    pub victim: Key,
    /// Instructions that it retired. On the clock tier they only repeat its time.
    pub insns: u64,
    /// Time for which it had a CPU: the sum of `beside`.
    pub ran_ns: u64,
    /// Beside whom, each set of others once, ascending.
    pub beside: Vec<Beside>,
}

impl Sample {
    /// A run that had a CPU beside each of those sets for so many nanoseconds.
    pub fn new(victim: Key, insns: u64, beside: BTreeMap<Vec<Neighbour>, u64>) -> Self {
        Self {
            victim,
            insns,
            ran_ns: beside.values().sum(),
            beside: beside
                .into_iter()
                .map(|(neighbours, duration_ns)| Beside { neighbours, duration_ns })
                .collect(),
        }
    }
}
