// SPDX-License-Identifier: GPL-2.0
//! Runtimes of variants under plans, for the history. The next decisions are based on them
//! (§5.6.4).

use std::collections::BTreeMap;

use pbs_cosched::Mapping;
use pbs_history::{Fingerprint, VariantKey, VariantRun};
use pbs_job::graph::{Graph, Target};

use crate::lanes::{Lowered, Question};

/// Execution of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ran {
    /// Time at which the lane first had its CPU.
    pub start_ns: u64,
    /// Time at which the lane ended.
    pub end_ns: u64,
    /// Number of retired instructions.
    pub insns: u64,
}

/// Returns the key of the history for a variant of a graph's task.
pub fn variant_key(graph: &Graph, task: usize, variant: usize) -> VariantKey {
    let task = &graph.tasks[task];
    let variant = &task.variants[variant];
    let command = match &graph.program[..] {
        [] => &variant.command,
        _ => &graph.program,
    };
    let (threads, device) = match &variant.target {
        Target::Threads(threads) => (*threads, String::new()),
        Target::Device(kind) => (0, kind.clone()),
    };
    VariantKey {
        job: graph.name.clone(),
        task: task.name.clone(),
        fingerprint: Fingerprint::of(command),
        model: variant.model.clone(),
        threads,
        device,
    }
}

/// Returns the runs of all tasks whose lanes have all ended. A run lasts from the time at which the
/// first lane had its CPU until the last lane ended. Its instructions are those of the lane with
/// most. `ran` returns the execution of a job's task, by the index of both.
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
