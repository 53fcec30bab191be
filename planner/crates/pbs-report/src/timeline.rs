// SPDX-License-Identifier: GPL-2.0
//! What was to run when on a CPU, and what did.

use pbs_plan::{Cpu, Plan};
use pbs_uapi::{Event, EventKind, Grant, IDLE, NO_SLOT, NO_TASK};
use serde::Serialize;

/// A CPU's plan and what became of it.
#[derive(Clone, Debug, Serialize)]
pub struct CpuTimeline {
    /// The CPU.
    pub cpu: u32,
    /// When its plan came into force, on the monotonic clock.
    pub installed_ns: Option<u64>,
    /// When its plan ended, dropped or went with its CPU.
    pub ended_ns: Option<u64>,
    /// The slots, end to end.
    pub planned: Vec<PlannedSlot>,
    /// Who ran when, in order.
    pub actual: Vec<ActualSegment>,
    /// What happened to slots.
    pub marks: Vec<Mark>,
}

/// A slot at its place in the plan.
#[derive(Clone, Debug, Serialize)]
pub struct PlannedSlot {
    /// Its number, from 0.
    pub slot: usize,
    /// `None`: idle.
    pub process: Option<u32>,
    /// `None`: idle.
    pub task: Option<u32>,
    /// The lengths of all slots before it.
    pub start_insns: u64,
    /// Its length.
    pub length_insns: u64,
}

/// A stretch of time in which a task had the CPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ActualSegment {
    /// On the monotonic clock.
    pub start_ns: u64,
    /// On the monotonic clock.
    pub end_ns: u64,
    /// Its process.
    pub process: u32,
    /// `None` once a process has no task left.
    pub task: Option<u32>,
    /// The slot it had it in; `None` after the last.
    pub slot: Option<u64>,
    /// Why it had it, as the events name it.
    pub reason: &'static str,
}

/// Something that happened to a slot at a moment.
#[derive(Clone, Debug, Serialize)]
pub struct Mark {
    /// On the monotonic clock.
    pub time_ns: u64,
    /// What.
    pub kind: MarkKind,
    /// The slot's process.
    pub process: u32,
    /// Its task then.
    pub task: Option<u32>,
    /// The slot.
    pub slot: Option<u64>,
    /// What the task had retired then.
    pub retired_insns: u64,
    /// t1 in instructions, or the ceiling in nanoseconds.
    pub value: u64,
}

/// What can happen to a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MarkKind {
    /// It reached t1 with a task beyond its own plan.
    Preempted,
    /// It reached t1 with a task that was not: what came before it had used
    /// up the slot.
    Pushed,
    /// It reached its ceiling on the clock.
    Ceiling,
    /// Its process had no thread all the while.
    Absent,
}

impl CpuTimeline {
    /// Takes the events of `cpu` out of `events`.
    pub(crate) fn new(plan: &Plan, cpu: &Cpu, events: &[Event]) -> Self {
        let mut builder = Builder {
            open: None,
            slot: None,
            timeline: Self {
                cpu: cpu.cpu,
                installed_ns: None,
                ended_ns: None,
                planned: planned(plan, cpu),
                actual: Vec::new(),
                marks: Vec::new(),
            },
        };
        for event in events {
            if event.cpu == cpu.cpu && event.plan_id == plan.plan_id {
                builder.event(event);
            }
        }
        if let Some(last) = events.last() {
            builder.close(last.time_ns);
        }
        builder.timeline
    }
}

fn planned(plan: &Plan, cpu: &Cpu) -> Vec<PlannedSlot> {
    let mut start_insns = 0u64;
    plan.place(cpu)
        .enumerate()
        .map(|(slot, placed)| {
            let task = placed.task.map(|(process, task)| {
                let process = &plan.processes[process];
                (process.id, process.tasks[task].id)
            });
            let planned = PlannedSlot {
                slot,
                process: task.map(|(process, _)| process),
                task: task.map(|(_, task)| task),
                start_insns,
                length_insns: placed.length_insns,
            };
            start_insns += placed.length_insns;
            planned
        })
        .collect()
}

struct Builder {
    /// The segment that has begun; its end is not known yet.
    open: Option<ActualSegment>,
    /// The present slot.
    slot: Option<u64>,
    timeline: CpuTimeline,
}

impl Builder {
    fn event(&mut self, event: &Event) {
        let Some(kind) = EventKind::from_raw(event.kind) else {
            return;
        };
        match kind {
            EventKind::PlanInstalled => self.timeline.installed_ns = Some(event.time_ns),
            EventKind::PlanEnded | EventKind::PlanDropped | EventKind::CpuGone => {
                self.close(event.time_ns);
                self.timeline.ended_ns = Some(event.time_ns);
            }
            EventKind::Grant => self.grant(event),
            EventKind::TaskEnded => self.task_ended(event),
            EventKind::Preempted if event.retired_insns > event.planned_insns => {
                self.mark(event, MarkKind::Preempted);
            }
            EventKind::Preempted => self.mark(event, MarkKind::Pushed),
            EventKind::Ceiling => self.mark(event, MarkKind::Ceiling),
            EventKind::Absent => self.mark(event, MarkKind::Absent),
            EventKind::Attached => self.attached(event),
            EventKind::ProcessEnded if self.runs(event.process) => self.close(event.time_ns),
            _ => {}
        }
    }

    fn runs(&self, process: u32) -> bool {
        self.open
            .as_ref()
            .is_some_and(|open| open.process == process)
    }

    fn close(&mut self, end_ns: u64) {
        if let Some(mut segment) = self.open.take() {
            segment.end_ns = end_ns;
            if segment.end_ns > segment.start_ns {
                self.timeline.actual.push(segment);
            }
        }
    }

    /// A process that comes while its slot lasts was not absent from it. That
    /// is so at the beginning of a plan, which must be there before a thread
    /// can be attached to its first process.
    fn attached(&mut self, event: &Event) {
        let slot = self.slot;
        self.timeline.marks.retain(|mark| {
            mark.kind != MarkKind::Absent || mark.process != event.process || mark.slot != slot
        });
    }

    fn grant(&mut self, event: &Event) {
        self.close(event.time_ns);
        self.slot = slot(event);
        let reason = Grant::from_raw(event.reason);
        if event.process == IDLE || reason == Some(Grant::None) {
            return;
        }
        self.open = Some(ActualSegment {
            start_ns: event.time_ns,
            end_ns: event.time_ns,
            process: event.process,
            task: task(event),
            slot: slot(event),
            reason: reason.map_or("unknown", Grant::name),
        });
    }

    /// A process that goes on in its slot gets no new grant: the segment is
    /// cut where the task ended, and the next one is the process's next task.
    /// It goes on until it has caught up, that is, until its next task has its
    /// own slot still to come.
    fn task_ended(&mut self, event: &Event) {
        let Some(open) = self.open.as_ref() else {
            return;
        };
        if open.process != event.process {
            return;
        }
        let slot = open.slot;
        let next = self
            .timeline
            .planned
            .iter()
            .filter(|planned| planned.process == Some(event.process))
            .find(|planned| planned.task > Some(event.task))
            .filter(|planned| slot.is_none_or(|slot| planned.slot as u64 <= slot))
            .and_then(|planned| planned.task);
        let following = next.map(|task| ActualSegment {
            start_ns: event.time_ns,
            task: Some(task),
            ..open.clone()
        });
        self.close(event.time_ns);
        self.open = following;
    }

    fn mark(&mut self, event: &Event, kind: MarkKind) {
        self.timeline.marks.push(Mark {
            time_ns: event.time_ns,
            kind,
            process: event.process,
            task: task(event),
            slot: slot(event),
            retired_insns: event.retired_insns,
            value: event.value,
        });
    }
}

fn task(event: &Event) -> Option<u32> {
    Some(event.task).filter(|&task| task != NO_TASK)
}

fn slot(event: &Event) -> Option<u64> {
    Some(event.slot).filter(|&slot| slot != NO_SLOT)
}
