// SPDX-License-Identifier: GPL-2.0
//! The deadlines that a plan implies.

use pbs_core::Config;
use pbs_plan::{Cpu, Plan};

use crate::clock::{saturate, Clock};

/// The deadline of each process with a slot on `cpu`, by its index in
/// [`Plan::processes`], in nanoseconds from the beginning of the plan.
///
/// The planned end of the last slot of the process, which is the sum of all
/// slots up to it, plus its plan buffer (Leppert 2021, 3.3.3), both in
/// instructions. The planner plans with a node that is slower than the real
/// one by CAPACITY_BUFFER (3.3.6): so they take that much longer. And they
/// pass in execution time alone: so they are stretched by period /
/// (period − unallocated) (2.4.3), which is never less than what the windows
/// really add.
pub fn deadlines(
    plan: &Plan,
    cpu: &Cpu,
    config: &Config,
    rate_insns_per_ms: u64,
) -> Vec<(usize, u64)> {
    let mut ends: Vec<Option<u64>> = vec![None; plan.processes.len()];
    let mut end_insns: u64 = 0;
    for slot in plan.place(cpu) {
        end_insns = end_insns.saturating_add(slot.length_insns);
        if let Some((process, _)) = slot.task {
            ends[process] = Some(end_insns);
        }
    }
    let ends = ends.into_iter().enumerate();
    ends.filter_map(|(process, end_insns)| {
        let insns = end_insns?.saturating_add(plan.processes[process].buffer_insns);
        Some((process, planned_ns(insns, config, rate_insns_per_ms)))
    })
    .collect()
}

/// The time that a planner allows for `insns`.
pub(crate) fn planned_ns(insns: u64, config: &Config, rate_insns_per_ms: u64) -> u64 {
    let execution_ns = u128::from(Clock::new(rate_insns_per_ms).ns_for(insns));
    let slower_ns = execution_ns * u128::from(config.capacity_buffer_permille) / 1000;
    let period_ns = u128::from(config.window_period_ns);
    let share_ns = period_ns.saturating_sub(config.window_unallocated_ns.into());
    saturate(slower_ns * period_ns / share_ns.max(1))
}
