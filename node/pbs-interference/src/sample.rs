// SPDX-License-Identifier: GPL-2.0
//! What is known of one run of one task.

use std::collections::BTreeMap;

use crate::{Key, Neighbour};

/// How long a task ran beside the same others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Beside {
    /// Who ran on the other CPUs, ascending; nobody: it ran alone.
    pub neighbours: Vec<Neighbour>,
    /// How long, in execution time of the task.
    pub duration_ns: u64,
}

/// One run of one task, from its first instruction to its last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// Who ran.
    pub victim: Key,
    /// What it retired. On the clock tier that is its time over again.
    pub insns: u64,
    /// How long it had a CPU: the sum of `beside`.
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
