// SPDX-License-Identifier: GPL-2.0
//! The deadlines of a plan: those that it declares, and those that it implies.

use pbs_core::Config;
use pbs_plan::{Cpu, Plan};

use crate::clock::{saturate, Clock};

/// The deadline of each process with a slot on `cpu`, by its index in
/// [`Plan::processes`], in nanoseconds from the beginning of the plan. The rate is that of the CPU
/// where the plan says none.
///
/// A deadline that the plan declares for the process counts as it is.
///
/// Otherwise it is the planned end of the last slot of the process, which is the sum of all
/// slots up to it, plus its plan buffer (Leppert 2021, 3.3.3), both in
/// instructions, which take as long as at the rate of the process that they are
/// for. The planner plans with a node that is slower than the real
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
    let clock = Clock::of_cpu(cpu, rate_insns_per_ms);
    let (ends, _) = ends(plan, cpu, clock);
    let ends = ends.into_iter().zip(&plan.processes).enumerate();
    ends.filter_map(|(index, (end_insns, process))| {
        let buffer_insns = clock.insns_for(process.buffer_insns, clock.of_process(process));
        let insns = end_insns?.saturating_add(buffer_insns);
        Some((index, process.deadline_ns.unwrap_or_else(|| planned_ns(insns, config, clock))))
    })
    .collect()
}

/// The time that a planner allows for the whole plan of a CPU.
pub(crate) fn plan_ns(plan: &Plan, cpu: &Cpu, config: &Config, clock: Clock) -> u64 {
    let (_, end_insns) = ends(plan, cpu, clock);
    planned_ns(end_insns, config, clock)
}

/// The planned end of the last slot of each process that has one, and that of
/// the plan, as what the CPU retires until then at its own rate, `clock`.
fn ends(plan: &Plan, cpu: &Cpu, clock: Clock) -> (Vec<Option<u64>>, u64) {
    let mut ends: Vec<Option<u64>> = vec![None; plan.processes.len()];
    let mut end_insns: u64 = 0;
    for slot in plan.place(cpu) {
        let process = slot.task.map(|(process, _)| process);
        let own = process.map_or(clock, |index| clock.of_process(&plan.processes[index]));
        end_insns = end_insns.saturating_add(clock.insns_for(slot.length_insns, own));
        if let Some(process) = process {
            ends[process] = Some(end_insns);
        }
    }
    (ends, end_insns)
}

/// The time that a planner allows for `insns` of the CPU.
fn planned_ns(insns: u64, config: &Config, clock: Clock) -> u64 {
    let execution_ns = u128::from(clock.ns_for(insns));
    let slower_ns = execution_ns * u128::from(config.capacity_buffer_permille) / 1000;
    let period_ns = u128::from(config.window_period_ns);
    let share_ns = period_ns.saturating_sub(config.window_unallocated_ns.into());
    saturate(slower_ns * period_ns / share_ns.max(1))
}
