// SPDX-License-Identifier: GPL-2.0
//! A simulation as it is kept.

use pbs_plan::Plan;
use pbs_report::{config_by_name, is_push, EventView, Outcome, RecordedPlan, Recording, Source};
use pbs_sim::{
    Counts, CpuOutcome, HeldNode, MemoryOutcome, Options, ProcessOutcome, Resolution, Simulation,
    TaskOutcome,
};
use pbs_uapi::EventKind;
use serde::Serialize;

/// A recording with what only a simulation knows.
#[derive(Serialize)]
pub(super) struct Recorded<'a> {
    #[serde(flatten)]
    recording: Recording,
    counts: Counts,
    tasks: &'a [TaskOutcome],
    processes: &'a [ProcessOutcome],
    cpus: &'a [CpuOutcome],
    memory: MemoryOutcome,
    replans: Vec<RecordedReplan<'a>>,
    /// State of each node, where the simulation was to be stopped.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    held: &'a [HeldNode],
}

#[derive(Serialize)]
struct RecordedReplan<'a> {
    cpu: u32,
    plan_id: u64,
    dealt_seq: u64,
    asked_ns: u64,
    came_ns: u64,
    refused: Option<&'a str>,
}

impl<'a> Recorded<'a> {
    /// With the state of each node at the end.
    pub(super) fn with_held(self, simulation: &'a Simulation) -> Self {
        Self { held: &simulation.held, ..self }
    }

    pub(super) fn new(plan: &Plan, options: &Options, simulation: &'a Simulation) -> Self {
        let taken = simulation.replans.iter();
        let taken = taken.filter(|replan| replan.refused.is_none());
        let plans = std::iter::once(plan).chain(taken.map(|replan| &replan.plan));
        Self {
            recording: Recording {
                version: Recording::VERSION,
                source: Source::Simulation,
                kernel: format!("pbs-sim {}", env!("CARGO_PKG_VERSION")),
                tier: match options.resolution {
                    Resolution::Event => "event".into(),
                    Resolution::Tick => "tick".into(),
                },
                rate_insns_per_ms: options.rate_insns_per_ms,
                outcome: if simulation.ended() { Outcome::Ended } else { Outcome::Interrupted },
                config: config_by_name(&plan.config.unwrap_or(options.config)),
                plans: plans.map(RecordedPlan::from).collect(),
                events: simulation.events.iter().map(EventView::from).collect(),
            },
            counts: counts(simulation),
            tasks: &simulation.tasks,
            processes: &simulation.processes,
            cpus: &simulation.cpus,
            memory: simulation.memory,
            held: &[],
            replans: simulation
                .replans
                .iter()
                .map(|replan| RecordedReplan {
                    cpu: replan.cpu,
                    plan_id: replan.plan.plan_id,
                    dealt_seq: replan.plan.dealt_seq,
                    asked_ns: replan.asked_ns,
                    came_ns: replan.came_ns,
                    refused: replan.refused.as_deref(),
                })
                .collect(),
        }
    }
}

/// Numbers of events. As in the report of a run, slots that reached t1 with a task that was not
/// over its plan are counted apart, as `pushed`.
pub(super) fn counts(simulation: &Simulation) -> Counts {
    let mut counts = simulation.counts();
    let pushed = simulation.events.iter().filter(|event| is_push(event));
    let pushed = pushed.count() as u64;
    if pushed == 0 {
        return counts;
    }
    let preempted = EventKind::Preempted.name();
    let reached = counts.kinds.remove(preempted).unwrap_or(0);
    if reached > pushed {
        counts.kinds.insert(preempted, reached - pushed);
    }
    counts.kinds.insert("pushed", pushed);
    counts
}
