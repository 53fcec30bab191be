// SPDX-License-Identifier: GPL-2.0
//! Outcome of a simulated plan.

use std::collections::{BTreeMap, HashMap};

use pbs_core::{Config, Input};
use pbs_plan::Plan;
use pbs_uapi::{Cause, Event, EventKind};
use serde::Serialize;

use crate::held::HeldNode;

/// Outcome of a simulated plan.
#[derive(Clone, Debug, Default)]
pub struct Simulation {
    /// All events, by time and then by CPU, numbered through from 0; without
    /// those that tell who may run, if they were not to be recorded.
    pub events: Vec<Event>,
    /// In the order of the slots, CPU by CPU; then those of later plans.
    pub tasks: Vec<TaskOutcome>,
    /// In the order of the plan.
    pub processes: Vec<ProcessOutcome>,
    /// Ascending.
    pub cpus: Vec<CpuOutcome>,
    /// The answers of the job scheduler, in the order of their coming.
    pub replans: Vec<Replan>,
    /// Outcome for the memory of the node.
    pub memory: MemoryOutcome,
    /// State of each node at the end of its simulation.
    pub held: Vec<HeldNode>,
    /// State of each node at each tick, CPU by CPU, if that was requested.
    pub ticks: Vec<HeldNode>,
    /// Recorded inputs by CPU, if recording was requested.
    pub recorded: Vec<RecordedInputs>,
}

/// All that the policy of a CPU was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedInputs {
    /// The CPU.
    pub cpu: u32,
    /// In their order.
    pub inputs: Vec<Input>,
    /// The plans that came into force, which
    /// [`InputKind::Begin`](pbs_core::InputKind::Begin) numbers from 0.
    pub plans: Vec<BegunPlan>,
    /// The node before the first input, if the record begins under a plan.
    pub snapshot: Option<Snapshot>,
}

/// A node under a plan, as it was at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Number of the plan.
    pub plan: u64,
    /// Time of the moment.
    pub time_ns: u64,
    /// Time at which the first plan of the run came into force.
    pub begun_ns: u64,
    /// Configuration at that moment.
    pub config: Config,
    /// The words of [`Node::save`](pbs_core::Node::save).
    pub words: Vec<u64>,
}

/// A plan as it came into force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BegunPlan {
    /// Configuration under which the policy decides.
    pub config: Config,
    /// Rate of the CPU.
    pub rate_insns_per_ms: u64,
    /// In the wire format, with all that it is joined with.
    pub message: Vec<u8>,
}

/// Outcome for the memory of the node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MemoryOutcome {
    /// Memory that the plan may use; 0: the plan does not declare it.
    pub limit_bytes: u64,
    /// Greatest amount of memory that was really in use.
    pub peak_bytes: u64,
    /// Number of processes that were killed for lack of memory.
    pub killed: u64,
}

/// Outcome of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TaskOutcome {
    /// CPU of the task.
    pub cpu: u32,
    /// The number of its process.
    pub process: u32,
    /// Number of the task.
    pub task: u32,
    /// Planned length, from the first plan that contains the task.
    pub planned_insns: u64,
    /// Real length.
    pub real_insns: u64,
    /// Instructions that the task retired.
    pub retired_insns: u64,
    /// Number of preemptions.
    pub preemptions: u32,
    /// End of the task.
    pub ended_ns: Option<u64>,
}

/// Outcome of a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProcessOutcome {
    /// Number of the process.
    pub id: u32,
    /// Name of the process.
    pub name: Option<String>,
    /// CPU of the process.
    pub cpu: u32,
    /// End of the last task.
    pub ended_ns: Option<u64>,
    /// Time at which the process was killed for lack of memory.
    pub killed_ns: Option<u64>,
    /// Planned peak of memory.
    pub planned_memory_bytes: u64,
    /// Real peak of memory.
    pub real_memory_bytes: u64,
    /// See [`deadlines`](crate::deadlines).
    pub deadline_ns: u64,
    /// Whether it ended before its deadline.
    pub kept: bool,
}

/// Outcome of a CPU. Every nanosecond up to `ended_ns` is part of one of the sums.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CpuOutcome {
    /// Number of the CPU.
    pub cpu: u32,
    /// Whether all processes ended; if not, the limit was reached, or what is
    /// left can never run.
    pub ended: bool,
    /// End of the CPU's simulation.
    pub ended_ns: u64,
    /// Execution time in which a process ran, and unallocated time if processes of the plan
    /// use it.
    pub running_ns: u64,
    /// Part of `running_ns` that is unallocated time: the rest of the system would go first there,
    /// and has nothing to run.
    pub running_unallocated_ns: u64,
    /// Longest time in which processes of the plan kept the CPU without a gap for the rest of
    /// the system: neither unallocated time nor time in which no process ran.
    pub longest_run_ns: u64,
    /// Execution time that the node itself took: switches and looks.
    pub lost_ns: u64,
    /// Execution time in which no process ran.
    pub idle_ns: u64,
    /// Unallocated time in which no process ran.
    pub unallocated_ns: u64,
    /// Retired by all processes.
    pub retired_insns: u64,
    /// Number of times that the CPU switched to another process.
    pub switches: u64,
    /// Answers of the job scheduler.
    pub answers: u64,
    /// Prediction failures that it was not asked about any more, as it had
    /// given all answers that it may.
    pub unanswered: u64,
    /// Prediction failures that it was not asked about again, as the node had refused several plans
    /// in succession.
    pub given_up: u64,
}

/// An answer of the job scheduler.
#[derive(Clone, Debug)]
pub struct Replan {
    /// The CPU.
    pub cpu: u32,
    /// Time at which the first failure of the question was signalled.
    pub failed_ns: u64,
    /// Time at which the job scheduler was asked.
    pub asked_ns: u64,
    /// Time at which the answer arrived.
    pub came_ns: u64,
    /// The plan.
    pub plan: Plan,
    /// Reason for which the node refused the plan; `None`: it accepted the plan.
    pub refused: Option<String>,
}

/// Numbers of occurrences.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Events of each kind, by its name.
    pub kinds: BTreeMap<&'static str, u64>,
    /// Signals of each kind that has causes, by the name of their cause.
    pub signals: BTreeMap<&'static str, BTreeMap<&'static str, u64>>,
}

impl Simulation {
    /// Whether all processes ended.
    pub fn ended(&self) -> bool {
        self.cpus.iter().all(|cpu| cpu.ended)
    }

    /// Returns the time at which the last CPU ended.
    pub fn ended_ns(&self) -> u64 {
        let ends = self.cpus.iter().map(|cpu| cpu.ended_ns);
        ends.max().unwrap_or(0)
    }

    /// Counts the recorded occurrences.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for event in &self.events {
            let Some(kind) = EventKind::from_raw(event.kind) else {
                continue;
            };
            *counts.kinds.entry(kind.name()).or_default() += 1;
            if !matches!(kind, EventKind::Late | EventKind::Early | EventKind::Info) {
                continue;
            }
            if let Some(cause) = Cause::from_raw(event.reason) {
                let signals = counts.signals.entry(kind.name()).or_default();
                *signals.entry(cause.name()).or_default() += 1;
            }
        }
        counts
    }
}

/// Puts the outcomes of single CPUs together. The numbers of events, and what
/// refers to them, are changed accordingly.
pub(crate) fn merge(mut parts: Vec<Simulation>, plan: &Plan) -> Simulation {
    if parts.len() > 1 {
        renumber(&mut parts);
    }
    parts.sort_by_key(|part| part.cpus.first().map(|cpu| cpu.cpu));
    let mut parts = parts.into_iter();
    let mut whole = parts.next().unwrap_or_default();
    for part in parts {
        whole.events.extend(part.events);
        whole.tasks.extend(part.tasks);
        whole.processes.extend(part.processes);
        whole.cpus.extend(part.cpus);
        whole.replans.extend(part.replans);
        whole.recorded.extend(part.recorded);
        whole.held.extend(part.held);
        whole.ticks.extend(part.ticks);
    }
    whole.events.sort_by_key(|event| event.seq);
    whole.replans.sort_by_key(|replan| replan.came_ns);
    let places = plan.processes.iter().map(|process| process.id).zip(0usize..);
    let places: HashMap<u32, usize> = places.collect();
    whole.processes.sort_by_key(|process| places.get(&process.id).copied());
    whole
}

fn renumber(parts: &mut [Simulation]) {
    // (time, CPU, place there) of every event, in the order of the whole.
    let mut order: Vec<_> = parts
        .iter()
        .enumerate()
        .flat_map(|(part, simulation)| {
            let events = simulation.events.iter().enumerate();
            let cpu = simulation.cpus.first().map_or(0, |cpu| cpu.cpu);
            events.map(move |(index, event)| (event.time_ns, cpu, index, part))
        })
        .collect();
    order.sort_unstable();
    let mut seqs: Vec<Vec<u64>> =
        parts.iter().map(|simulation| vec![0; simulation.events.len()]).collect();
    for (seq, (_, _, index, part)) in (0..).zip(order) {
        seqs[part][index] = seq;
    }
    for (part, seqs) in parts.iter_mut().zip(seqs) {
        for replan in &mut part.replans {
            // The last event that is dealt with, or none.
            let before = part.events.partition_point(|event| event.seq < replan.plan.dealt_seq);
            replan.plan.dealt_seq = before.checked_sub(1).map_or(0, |last| seqs[last] + 1);
        }
        for (event, seq) in part.events.iter_mut().zip(seqs) {
            event.seq = seq;
        }
    }
}
