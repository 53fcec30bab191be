// SPDX-License-Identifier: GPL-2.0
//! What variants took under plans, for the history, by which the next are decided (§5.6.4).

use std::collections::BTreeMap;

use pbs_cosched::Mapping;
use pbs_history::{Fingerprint, VariantKey, VariantRun};
use pbs_job::graph::{Graph, Target};

use crate::lanes::{Lowered, Question};

/// What became of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ran {
    /// When it had its CPU for the first time.
    pub start_ns: u64,
    /// When it ended.
    pub end_ns: u64,
    /// What it retired.
    pub insns: u64,
}

/// By what the history knows a variant of a task of a graph.
pub fn variant_key(graph: &Graph, task: usize, variant: usize) -> VariantKey {
    let task = &graph.tasks[task];
    let variant = &task.variants[variant];
    let (threads, device) = match &variant.target {
        Target::Threads(threads) => (*threads, String::new()),
        Target::Device(kind) => (0, kind.clone()),
    };
    VariantKey {
        job: graph.name.clone(),
        task: task.name.clone(),
        fingerprint: Fingerprint::of(&variant.command),
        model: variant.model.clone(),
        threads,
        device,
    }
}

/// What the tasks took whose lanes have all ended: from when the first had its CPU until
/// the last ended, and the instructions of the one with most. `ran`: what became of a task of
/// a job, by the index of both.
pub fn variant_runs(
    question: &Question,
    graphs: &[Graph],
    mapping: &Mapping,
    jobs: &[Lowered],
    mut ran: impl FnMut(usize, usize) -> Option<Ran>,
) -> Vec<VariantRun> {
    // Of each task of the workload, its lanes.
    let mut lanes: BTreeMap<usize, Vec<Option<Ran>>> = BTreeMap::new();
    for (job, lowered) in jobs.iter().enumerate() {
        for (task, lane) in lowered.lanes.iter().enumerate() {
            if let Some(lane) = lane {
                lanes.entry(lane.task).or_default().push(ran(job, task));
            }
        }
    }
    let runs = lanes.into_iter().filter_map(|(task, lanes)| {
        let lanes: Vec<Ran> = lanes.into_iter().collect::<Option<_>>()?;
        let start_ns = lanes.iter().map(|lane| lane.start_ns).min()?;
        let end_ns = lanes.iter().map(|lane| lane.end_ns).max()?;
        let of = &question.tasks[task];
        let choice = mapping.choices.get(task).copied().flatten()?;
        let variant = of.variants[choice.variant];
        Some(VariantRun {
            variant: variant_key(&graphs[of.graph], of.task, variant),
            ran_ns: end_ns.checked_sub(start_ns).filter(|&ns| ns > 0)?,
            insns: lanes.iter().map(|lane| lane.insns).max()?,
        })
    });
    runs.collect()
}
