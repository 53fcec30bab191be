// SPDX-License-Identifier: GPL-2.0
//! Baseline: execution without co-scheduling.

use crate::check::fits;
use crate::mapping::Mapping;
use crate::model::{ExecutionTarget, Platform, Workload};
use crate::queues::Queues;

/// Not co-scheduling: each process takes at its arrival what is fastest for each of its tasks
/// by itself, and stands in line behind who was first (§2.5.1).
pub fn not_co_scheduled(workload: &Workload, platform: &Platform, queues: &Queues) -> Mapping {
    let order = workload.topological().into_iter().filter(|&task| queues.waits(task));
    let with_variant = order.filter_map(|task| Some((task, fastest(workload, platform, task)?)));
    Mapping::in_order(workload.tasks.len(), with_variant)
}

/// The fastest variant that fits, of equals the one with fewer threads.
pub(crate) fn fastest(workload: &Workload, platform: &Platform, task: usize) -> Option<usize> {
    let variants = workload.tasks[task].variants.iter().enumerate();
    variants
        .filter(|(_, variant)| fits(platform, variant.place))
        .min_by_key(|(_, variant)| {
            let threads = match variant.place {
                ExecutionTarget::Threads(threads) => threads,
                ExecutionTarget::Device(_) => 0,
            };
            (variant.runtime_ns, threads)
        })
        .map(|(index, _)| index)
}
