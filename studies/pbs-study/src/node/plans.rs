// SPDX-License-Identifier: GPL-2.0
//! The plans of the studies.

use pbs_gen::{generate, Parameters, Random, Scenario, SlotOrder, Span, Stream};
use pbs_plan::Plan;
use serde::Serialize;

use crate::node::Error;

/// Deviation of the real course from the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Deviation {
    /// Normal, with a standard deviation of 5 %.
    Normal5,
    /// Normal, with a standard deviation of 10 %.
    Normal10,
    /// Normal, with a standard deviation of 20 %.
    Normal20,
    /// Normal, with a standard deviation of 10 %, and one task takes four times as long as planned.
    Rogue,
    /// Normal, with a standard deviation of 10 %, and workers are 20 % early while their
    /// coordinator waits for others.
    ScatterGather,
    /// Normal, with a standard deviation of 10 %, and all tasks take 15 % longer than planned.
    AllLate,
}

impl Deviation {
    pub(crate) const ALL: [Deviation; 4] =
        [Deviation::Normal5, Deviation::Normal10, Deviation::Normal20, Deviation::Rogue];

    /// Deviations in [`Deviation::ALL`], and those that all processes have in common.
    pub(crate) const WITH_COMMON: [Deviation; 6] = [
        Deviation::Normal5,
        Deviation::Normal10,
        Deviation::Normal20,
        Deviation::Rogue,
        Deviation::ScatterGather,
        Deviation::AllLate,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Deviation::Normal5 => "5 %",
            Deviation::Normal10 => "10 %",
            Deviation::Normal20 => "20 %",
            Deviation::Rogue => "rogue",
            Deviation::ScatterGather => "scatter-gather",
            Deviation::AllLate => "all late",
        }
    }
}

/// Planned length of the longest tasks.
pub(crate) const LONGEST_TASK_INSNS: u64 = 500_000_000;

/// The parameters of plan `number`, from 0: 2 to 8 processes of 5 to 20 tasks
/// of 5 to 500 ms, 0 to 20 % idle, and plan buffers up to 10 % of the length of
/// the process.
fn parameters(seed: u64, number: u64) -> Parameters {
    Parameters {
        processes: 2 + number % 7,
        tasks: Span::new(5, 20),
        task_insns: Span::new(5_000_000, LONGEST_TASK_INSNS),
        idle_permille: 50 * (number / 7 % 5),
        idle_insns: Span::new(10_000_000, 200_000_000),
        buffer_permille: Span::new(0, 100),
        order: SlotOrder::Alternate,
        seed: seed.wrapping_add(number),
        plan_id: number + 1,
        ..Parameters::default()
    }
}

/// Plan `number` with what really happens. Only that depends on the deviation,
/// not the plan.
pub(crate) fn plan(seed: u64, number: u64, deviation: Deviation) -> Result<Plan, Error> {
    deviating(parameters(seed, number), deviation)
}

/// Plan with as many processes and tasks, but tasks of 1 to 20 ms and idle slots of 1 to 10.
pub(crate) fn short(seed: u64, number: u64, deviation: Deviation) -> Result<Plan, Error> {
    let parameters = Parameters {
        task_insns: Span::new(1_000_000, 20_000_000),
        idle_insns: Span::new(1_000_000, 10_000_000),
        ..parameters(seed, number)
    };
    deviating(parameters, deviation)
}

fn deviating(parameters: Parameters, deviation: Deviation) -> Result<Plan, Error> {
    let task_sigma_permille = match deviation {
        Deviation::Normal5 => 50,
        Deviation::Normal20 => 200,
        _ => 100,
    };
    let parameters = Parameters {
        task_sigma_permille,
        scenario: match deviation {
            Deviation::Rogue => Scenario::RogueTask,
            Deviation::ScatterGather => Scenario::ScatterGather,
            Deviation::AllLate => Scenario::AllSlightlyLate,
            _ => Scenario::Normal,
        },
        ..parameters
    };
    generate(&parameters).map_err(|error| Error(error.to_string()))
}

/// Adds peaks of memory from 16 to 256 MiB to a plan. The real peaks deviate by a standard
/// deviation of 5 %.
pub(crate) fn with_memory(mut plan: Plan, seed: u64, number: u64) -> Plan {
    let mut random = Random::new(seed.wrapping_add(number), Stream::Memory);
    for process in &mut plan.processes {
        process.memory_bytes = (16 + random.below(241)) << 20;
        let real_bytes = process.memory_bytes as f64 * (1.0 + 0.05 * random.normal());
        process.real_memory_bytes = Some(real_bytes as u64);
    }
    plan
}
