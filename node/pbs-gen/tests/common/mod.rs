// SPDX-License-Identifier: GPL-2.0
//! Helpers of the tests for the inspection of plans.

use pbs_gen::{generate, Parameters, Span};
use pbs_plan::{Plan, Process, Slot, Task};

/// A small plan, of the size that a virtual machine runs in a moment.
pub(crate) fn small() -> Parameters {
    Parameters {
        processes: 4,
        tasks: Span::new(3, 8),
        task_insns: Span::new(200_000, 5_000_000),
        idle_permille: 100,
        idle_insns: Span::new(100_000, 1_000_000),
        ..Parameters::default()
    }
}

/// The plan, which must be one.
pub(crate) fn plan(parameters: &Parameters) -> Plan {
    generate(parameters).unwrap_or_else(|error| panic!("{error}: {parameters:?}"))
}

pub(crate) fn tasks(plan: &Plan) -> impl Iterator<Item = (&Process, &Task)> {
    let processes = plan.processes.iter();
    processes.flat_map(|process| process.tasks.iter().map(move |task| (process, task)))
}

/// The processes of the slots that are not idle, in order.
pub(crate) fn order(plan: &Plan) -> Vec<usize> {
    let slots = plan.cpus[0].slots.iter();
    slots
        .filter_map(|slot| match *slot {
            Slot::Process { process } => Some(process),
            Slot::Idle { .. } => None,
        })
        .collect()
}

/// Planned and real length of each idle slot.
pub(crate) fn idle(plan: &Plan) -> Vec<(u64, u64)> {
    let slots = plan.cpus[0].slots.iter();
    slots
        .filter_map(|slot| match *slot {
            Slot::Process { .. } => None,
            Slot::Idle { length_insns, real_insns } => Some((length_insns, real_insns.unwrap())),
        })
        .collect()
}

pub(crate) fn real(task: &Task) -> u64 {
    task.real_insns.unwrap()
}
