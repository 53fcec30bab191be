// SPDX-License-Identifier: GPL-2.0
//! What was tried and what there is, for people and programs.

use pbs_job::Job;
use pbs_planner::{Attempt, Run, Store};
use pbs_report::{bytes, held};
use serde::Serialize;

use crate::output::ms;

/// A time with its unit.
pub(crate) fn nanoseconds(ns: u64) -> String {
    format!("{} ms", ms(ns))
}

/// What jobs are planned for.
#[derive(Serialize)]
pub(crate) struct MachineView {
    name: Option<String>,
    nodes: usize,
    cores: usize,
    memory_bytes: u64,
    balancing: &'static str,
}

impl MachineView {
    pub(crate) fn new(store: &Store) -> Self {
        let machine = store.machine();
        Self {
            name: machine.name.clone(),
            nodes: machine.nodes.len(),
            cores: store.sites().len(),
            memory_bytes: machine.memory_bytes(),
            balancing: store.balancing().name(),
        }
    }
}

/// What a strategy reached.
#[derive(Serialize)]
pub(crate) struct AttemptView {
    strategy: &'static str,
    /// `None`: it found no plan.
    end_ns: Option<u64>,
    why: Option<String>,
}

impl AttemptView {
    pub(crate) fn new(attempt: &Attempt, job: &Job) -> Self {
        Self {
            strategy: attempt.strategy.name(),
            end_ns: attempt.end_ns.ok(),
            why: attempt.end_ns.err().map(|refusal| refusal.describe(job, 0)),
        }
    }

    /// What all of them reached, those alike together; `None` if none was tried.
    pub(crate) fn text(attempts: &[Self]) -> Option<String> {
        let mut reached: Vec<(Option<u64>, Vec<&str>)> = Vec::new();
        for attempt in attempts {
            let same = reached
                .iter_mut()
                .find(|(end_ns, _)| *end_ns == attempt.end_ns);
            match same {
                Some((_, strategies)) => strategies.push(attempt.strategy),
                None => reached.push((attempt.end_ns, vec![attempt.strategy])),
            }
        }
        let texts = reached.into_iter().map(|(end_ns, strategies)| {
            let end = end_ns.map_or_else(|| "no plan".into(), nanoseconds);
            format!("{end} ({})", strategies.join(", "))
        });
        let texts: Vec<_> = texts.collect();
        (!texts.is_empty()).then(|| texts.join(", "))
    }
}

/// The memory that a run has of a node.
#[derive(Serialize)]
pub(crate) struct NodeView {
    node: String,
    /// The most that its processes have at once.
    peak_bytes: u64,
    memory_bytes: u64,
}

impl NodeView {
    /// Of each node on which the run has a process.
    pub(crate) fn all(store: &Store, run: &Run) -> Vec<Self> {
        let nodes = store.machine().nodes.iter().enumerate();
        let views = nodes.filter_map(|(index, node)| {
            let on_node = run.processes.iter().filter(|process| process.node == index);
            let held = held(on_node.map(|p| (p.start_ns, p.end_ns, p.memory_bytes)));
            (!held.is_empty()).then(|| Self {
                node: node.name.clone(),
                peak_bytes: held.iter().map(|&(_, bytes)| bytes).max().unwrap_or(0),
                memory_bytes: node.memory_bytes,
            })
        });
        views.collect()
    }

    pub(crate) fn text(&self) -> String {
        let (peak, memory) = (bytes(self.peak_bytes), bytes(self.memory_bytes));
        format!("{peak} at most of the {memory} of node {}", self.node)
    }
}
