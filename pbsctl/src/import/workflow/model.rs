// SPDX-License-Identifier: GPL-2.0
//! A workflow, whatever it was read from.

use std::collections::{BTreeMap, BTreeSet};

use pbs_job::MAX_NS;

pub(super) const SECOND_NS: u64 = 1_000_000_000;

/// A workflow, whatever it was read from.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Workflow {
    pub(super) name: Option<String>,
    pub(super) tasks: Vec<Step>,
    /// Parts of it that the result has not.
    pub(super) left_out: BTreeSet<String>,
}

impl Workflow {
    /// Notes a part that the result has not.
    pub(super) fn leave_out(&mut self, what: impl Into<String>) {
        self.left_out.insert(what.into());
    }
}

/// A task of a workflow.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Step {
    /// Name of the task, unique in the workflow.
    pub(super) name: String,
    /// Tasks that it waits for, each once, with the bytes that come from there.
    pub(super) after: BTreeMap<usize, u64>,
    pub(super) runtime_ns: Option<u64>,
    pub(super) threads: Option<u64>,
    pub(super) memory_bytes: Option<u64>,
}

/// Seconds of a file as nanoseconds; `None`: that is no time of a task.
pub(super) fn seconds_ns(seconds: f64) -> Option<u64> {
    let ns = seconds * SECOND_NS as f64;
    (seconds >= 0.0 && ns < MAX_NS as f64).then_some(ns.round() as u64)
}
