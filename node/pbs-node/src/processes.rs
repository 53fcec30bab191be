// SPDX-License-Identifier: GPL-2.0
//! Processes of the node's own plans, by their numbers there.

use std::collections::BTreeMap;

use pbs_plan::Plan;

/// Labels of processes, and which were cancelled.
#[derive(Debug, Default)]
pub(crate) struct Processes {
    labels: BTreeMap<u32, String>,
    /// Processes that wait for one that will never end, each with that one.
    cancelled: BTreeMap<u32, u32>,
}

impl Processes {
    /// Notes the labels of all processes of a plan.
    pub(crate) fn note(&mut self, plan: &Plan) {
        for process in &plan.processes {
            let label = || process.label();
            self.labels.entry(process.id).or_insert_with(label);
        }
    }

    /// The label of a process.
    pub(crate) fn label(&self, process: u32) -> String {
        let known = self.labels.get(&process);
        known.map_or_else(|| process.to_string(), String::clone)
    }

    /// Notes that a process waits for `cut`, which has ended before its tasks did. Whether
    /// that is new.
    pub(crate) fn cancel(&mut self, process: u32, cut: u32) -> bool {
        self.cancelled.insert(process, cut).is_none()
    }

    /// Forgets a process whose run is over.
    pub(crate) fn forget(&mut self, process: u32) {
        self.labels.remove(&process);
        self.cancelled.remove(&process);
    }
}
