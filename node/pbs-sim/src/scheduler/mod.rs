// SPDX-License-Identifier: GPL-2.0
//! Job schedulers: planners that answer a prediction failure with a new plan.
//!
//! The simulator asks them, and a node: both with the same questions.

pub(crate) mod command;
pub(crate) mod conversation;
pub(crate) mod remaining;
pub(crate) mod stretch;

use pbs_core::{Config, EventKind};
use pbs_plan::Plan;
use pbs_uapi::Event;
use serde::{Serialize, Serializer};

/// A job scheduler as a node knows it (Leppert 2021, 3.3.4).
///
/// It is asked as soon as a node signals a prediction failure. Its answer
/// comes into force RESCHEDULE_TIME later; what the node signals until then is
/// kept for the next question.
pub trait JobScheduler {
    /// A new plan for the CPU of `state`, or `None` if the one in force shall
    /// stay. There is at least one failure, unless [`JobScheduler::asks_again_ns`] wanted
    /// the question; the plan says in `dealt_seq` which
    /// it deals with. Real lengths of tasks that are known already are not
    /// looked at. An error ends the simulation.
    fn answer(&mut self, failures: &[Failure], state: &NodeState) -> Result<Option<Plan>, String>;

    /// Time at which the job scheduler wants the next question, though the node may have
    /// signalled nothing more by then: it put its answer off. There are no failures in that
    /// question then. `None`: it waits for the next signal.
    fn asks_again_ns(&self) -> Option<u64> {
        None
    }
}

/// A prediction failure, as the node signals it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// The number of the event.
    pub seq: u64,
    /// Time of the signal.
    pub time_ns: u64,
    /// Late, or early.
    #[serde(serialize_with = "kind_name")]
    pub kind: EventKind,
    /// Threshold that was passed.
    #[serde(serialize_with = "cause_name")]
    pub cause: Cause,
    /// The process that ran.
    pub process: u32,
    /// Number of its task.
    pub task: u32,
    /// Planned length of the task.
    pub planned_insns: u64,
    /// Retired by the task.
    pub retired_insns: u64,
    /// Preemptions of the task.
    pub preemptions: u32,
    /// Lateness of the process.
    pub lateness_insns: i64,
    /// Lateness of the node.
    pub node_lateness_insns: i64,
    /// Memory in use by the process or on the node, for a failure of memory.
    pub memory_bytes: u64,
    /// The threshold, in preemptions, instructions or bytes; that of an early node
    /// is negative.
    pub threshold: i64,
    /// The stress.
    pub stress: u32,
}

pub use pbs_core::Cause;

impl Failure {
    /// Returns the failure that an event of a node signals, if it signals one.
    pub fn of_event(event: &Event) -> Option<Self> {
        let kind = match pbs_uapi::EventKind::from_raw(event.kind)? {
            pbs_uapi::EventKind::Late => EventKind::Late,
            pbs_uapi::EventKind::Early => EventKind::Early,
            _ => return None,
        };
        let causes = [
            Cause::Task,
            Cause::Process,
            Cause::Node,
            Cause::Preemptions,
            Cause::Memory,
            Cause::NodeMemory,
            Cause::Message,
        ];
        Some(Self {
            seq: event.seq,
            time_ns: event.time_ns,
            kind,
            cause: causes.into_iter().find(|&cause| cause as u16 == event.reason)?,
            process: event.process,
            task: event.task,
            planned_insns: event.planned_insns,
            retired_insns: event.retired_insns,
            preemptions: event.preemptions,
            lateness_insns: event.lateness_insns,
            node_lateness_insns: event.node_lateness_insns,
            memory_bytes: event.memory_bytes,
            threshold: event.value as i64,
            stress: event.stress,
        })
    }

    /// Returns the event by which a node with this CPU would signal the failure.
    pub fn event(&self, cpu: u32) -> Event {
        Event {
            seq: self.seq,
            kind: self.kind as u16,
            reason: self.cause as u16,
            cpu,
            process: self.process,
            task: self.task,
            retired_insns: self.retired_insns,
            lateness_insns: self.lateness_insns,
            ..Event::default()
        }
    }
}

fn kind_name<S: Serializer>(kind: &EventKind, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(kind.name())
}

fn cause_name<S: Serializer>(cause: &Cause, to: S) -> Result<S::Ok, S::Error> {
    let cause = pbs_uapi::Cause::from_raw(*cause as u16);
    to.serialize_str(cause.map_or("unknown", pbs_uapi::Cause::name))
}

/// State of a node, as far as a job scheduler can be aware of it.
#[derive(Clone, Debug, Serialize)]
pub struct NodeState {
    /// The CPU.
    pub cpu: u32,
    /// The time since the beginning.
    pub now_ns: u64,
    /// Instructions that the CPU retires in a millisecond; processes that
    /// `remaining` gives a rate of their own retire as many as that says.
    pub rate_insns_per_ms: u64,
    /// The configuration in force.
    #[serde(serialize_with = "config_map")]
    pub config: Config,
    /// Processes of the plan in force, ascending.
    pub processes: Vec<ProcessState>,
    /// Remaining part of the plan. Each task that has not ended has a slot of its own, in the order
    /// in which the node would run them. The running task has its whole length. A task whose slot
    /// has passed precedes the next slot of its process, or is at the end if there is none. Idle
    /// time that will have passed when an answer comes into force is subtracted.
    #[serde(rename = "remaining_toml", serialize_with = "toml")]
    pub remaining: Plan,
}

/// State of a process, as far as a job scheduler can be aware of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProcessState {
    /// Number of the process.
    pub id: u32,
    /// Whether the process has no task left.
    pub ended: bool,
    /// Number of the current task.
    pub task: Option<u32>,
    /// Planned length of the current task.
    pub planned_insns: u64,
    /// Retired by the current task.
    pub retired_insns: u64,
    /// Preemptions of the current task.
    pub preemptions: u32,
    /// Lateness of the process.
    pub lateness_insns: i64,
}

impl ProcessState {
    /// Returns an event from which a listener learns this state, on a node with this CPU.
    pub fn event(&self, cpu: u32) -> Event {
        let kind = if self.ended { EventKind::ProcessEnded } else { EventKind::Grant };
        Event {
            kind: kind as u16,
            cpu,
            process: self.id,
            task: self.task.unwrap_or(u32::MAX),
            retired_insns: self.retired_insns,
            ..Event::default()
        }
    }
}

/// Serializes a configuration like the table [config] of a plan: names and booleans are used where
/// the plan uses them.
fn config_map<S: Serializer>(config: &Config, to: S) -> Result<S::Ok, S::Error> {
    pbs_plan::config_to_json(config).serialize(to)
}

fn toml<S: Serializer>(plan: &Plan, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&pbs_plan::to_toml(plan))
}

/// Job scheduler that never answers: the plan stays in force.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoAnswer;

impl JobScheduler for NoAnswer {
    fn answer(&mut self, _: &[Failure], _: &NodeState) -> Result<Option<Plan>, String> {
        Ok(None)
    }
}
