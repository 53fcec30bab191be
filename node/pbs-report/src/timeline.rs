// SPDX-License-Identifier: GPL-2.0
//! Planned and actual use of a CPU over time.

use std::collections::HashMap;

use pbs_core::Rate;
use pbs_plan::{Cpu, Plan, Task};
use pbs_uapi::{Event, EventKind, Grant, IDLE, NO_SLOT, NO_TASK};
use serde::Serialize;

use crate::event::is_push;

/// A CPU's plan and what became of it.
#[derive(Clone, Debug, Serialize)]
pub struct CpuTimeline {
    /// The CPU.
    pub cpu: u32,
    /// Time at which its plan came into force, on the monotonic clock.
    pub installed_ns: Option<u64>,
    /// Time at which its plan ended, was dropped or went with its CPU.
    pub ended_ns: Option<u64>,
    /// The slots of the first plan, end to end.
    pub planned: Vec<PlannedSlot>,
    /// The plans that took over from it, in order.
    pub later: Vec<LaterPlan>,
    /// Intervals in which tasks ran, in order.
    pub actual: Vec<ActualSegment>,
    /// Marks of slots.
    pub marks: Vec<Mark>,
}

/// A plan that took over from another one.
#[derive(Clone, Debug, Serialize)]
pub struct LaterPlan {
    /// Number of the plan.
    pub plan_id: u64,
    /// Time at which the plan came into force, on the monotonic clock.
    pub installed_ns: u64,
    /// Slots of the plan, end to end from that time.
    pub planned: Vec<PlannedSlot>,
}

/// A slot at its place in the plan.
#[derive(Clone, Debug, Serialize)]
pub struct PlannedSlot {
    /// Number of the slot, from 0.
    pub slot: usize,
    /// `None`: idle.
    pub process: Option<u32>,
    /// `None`: idle.
    pub task: Option<u32>,
    /// The lengths of all slots before it.
    pub start_insns: u64,
    /// Length of the slot.
    pub length_insns: u64,
    /// Planned beginning, counted from the time at which its plan came into force. Each slot takes
    /// its length at the rate that the plan declares for its process or its CPU.
    pub start_ns: u64,
    /// Planned end.
    pub end_ns: u64,
    /// Messages for which the task of the slot waits.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<PlannedMessage>,
}

/// A message with its planned arrival.
#[derive(Clone, Debug, Serialize)]
pub struct PlannedMessage {
    /// Process that sends the message.
    pub from_process: u32,
    /// Task at whose end the message arrives.
    pub from_task: u32,
    /// Planned arrival, counted from the time at which the plan came into force.
    pub arrival_ns: u64,
}

/// A stretch of time in which a task had the CPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ActualSegment {
    /// On the monotonic clock.
    pub start_ns: u64,
    /// On the monotonic clock.
    pub end_ns: u64,
    /// Process of the task.
    pub process: u32,
    /// `None` once a process has no task left.
    pub task: Option<u32>,
    /// The slot it had it in; `None` after the last.
    pub slot: Option<u64>,
    /// Index of the plan in force among the CPU's plans: 0 is the first.
    pub plan: usize,
    /// Reason for which the task had the CPU, as the events name it.
    pub reason: &'static str,
}

/// Mark of a slot at a moment.
#[derive(Clone, Debug, Serialize)]
pub struct Mark {
    /// On the monotonic clock.
    pub time_ns: u64,
    /// Kind of the mark.
    pub kind: MarkKind,
    /// The slot's process.
    pub process: u32,
    /// Task of the process at that moment.
    pub task: Option<u32>,
    /// The slot.
    pub slot: Option<u64>,
    /// Instructions that the task had retired.
    pub retired_insns: u64,
    /// t1 in instructions, the ceiling in nanoseconds, or the threshold of a
    /// signal.
    pub value: u64,
}

/// Kinds of marks of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MarkKind {
    /// The slot reached t1 with a task beyond its own plan.
    Preempted,
    /// The slot reached t1 with a task that was not beyond its plan: an earlier task had used up
    /// the slot.
    Pushed,
    /// The slot reached its ceiling on the clock.
    Ceiling,
    /// The process of the slot had no thread during the whole slot.
    Absent,
    /// The slot came before the end of a task that its own task waits for.
    Waits,
    /// Prediction failure: late.
    Late,
    /// Prediction failure: early.
    Early,
    /// On the way to one.
    Info,
}

impl CpuTimeline {
    /// Takes the events of `cpu` out of `events`; `plans` are those that came
    /// into force one after the other, on this and other CPUs; `rate` is that of a
    /// CPU where they say none.
    pub(crate) fn new(plans: &[Plan], cpu: u32, events: &[Event], rate: Rate) -> Self {
        let mut timeline = Self {
            cpu,
            installed_ns: None,
            ended_ns: None,
            planned: Vec::new(),
            later: Vec::new(),
            actual: Vec::new(),
            marks: Vec::new(),
        };
        let mut succession = Succession::new(plans, cpu);
        if let Some(plan) = succession.plan() {
            timeline.planned = planned(plan, cpu, rate);
        }
        let mut builder =
            Builder { open: None, slot: None, next: following(&timeline.planned), rate, timeline };
        for event in events {
            match succession.follow(event) {
                PlanOfEvent::Elsewhere => {}
                PlanOfEvent::Here => builder.event(event),
                PlanOfEvent::NextPlan => {
                    if let Some(plan) = succession.plan() {
                        builder.next_plan(plan, event);
                    }
                }
            }
        }
        if let Some(last) = events.last() {
            builder.close(last.time_ns);
        }
        builder.timeline
    }
}

/// Tracker of the plan in force on a CPU, fed with the events in order.
pub(crate) struct Succession<'a> {
    plans: Vec<&'a Plan>,
    cpu: u32,
    present: usize,
    installed: bool,
}

/// The plan that an event belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlanOfEvent {
    /// To another CPU or to a plan that is not known.
    Elsewhere,
    /// To the plan that is in force.
    Here,
    /// To the next plan, which it brings into force.
    NextPlan,
}

impl<'a> Succession<'a> {
    pub(crate) fn new(plans: &'a [Plan], cpu: u32) -> Self {
        let names = |plan: &&Plan| plan.cpus.iter().any(|known| known.cpu == cpu);
        Self { plans: plans.iter().filter(names).collect(), cpu, present: 0, installed: false }
    }

    /// The plan in force, or the first one before that.
    pub(crate) fn plan(&self) -> Option<&'a Plan> {
        self.plans.get(self.present).copied()
    }

    pub(crate) fn follow(&mut self, event: &Event) -> PlanOfEvent {
        if event.cpu != self.cpu {
            return PlanOfEvent::Elsewhere;
        }
        if event.kind == EventKind::PlanInstalled as u16 && self.installed {
            let rest = self.plans.iter().enumerate().skip(self.present + 1);
            let next = rest.map(|(index, plan)| (index, plan.plan_id));
            if let Some((index, _)) = next.into_iter().find(|(_, id)| *id == event.plan_id) {
                self.present = index;
                return PlanOfEvent::NextPlan;
            }
        }
        match self.plan() {
            Some(plan) if plan.plan_id == event.plan_id => {
                self.installed |= event.kind == EventKind::PlanInstalled as u16;
                PlanOfEvent::Here
            }
            _ => PlanOfEvent::Elsewhere,
        }
    }
}

/// Returns the next task of the process and its slot, by process and task.
fn following(planned: &[PlannedSlot]) -> HashMap<(u32, u32), (u32, u64)> {
    let mut last = HashMap::new();
    let mut following = HashMap::new();
    for slot in planned {
        let (Some(process), Some(task)) = (slot.process, slot.task) else {
            continue;
        };
        if let Some(before) = last.insert(process, task) {
            following.insert((process, before), (task, slot.slot as u64));
        }
    }
    following
}

fn planned(plan: &Plan, cpu: u32, rate: Rate) -> Vec<PlannedSlot> {
    let Some(cpu) = plan.cpus.iter().find(|known| known.cpu == cpu) else {
        return Vec::new();
    };
    let rate = rate_of(cpu, rate);
    let mut start_insns = 0u64;
    // The same as the CPU would retire at its rate.
    let mut passed_insns = 0u64;
    plan.place(cpu)
        .enumerate()
        .map(|(slot, placed)| {
            let task = placed.task.map(|(process, task)| {
                let process = &plan.processes[process];
                (process.id, process.tasks[task].id)
            });
            let own = placed.task.map(|(process, _)| &plan.processes[process]);
            let own = own.map_or(0, |process| process.rate_insns_per_ms);
            let start_ns = rate.to_ns(passed_insns);
            let length_insns = u128::from(placed.length_insns);
            let passes_insns = match own {
                0 => length_insns,
                own => length_insns * u128::from(rate.insns_per_ms()) / u128::from(own),
            };
            let passes_insns = u64::try_from(passes_insns).unwrap_or(u64::MAX);
            passed_insns = passed_insns.saturating_add(passes_insns);
            let planned = PlannedSlot {
                slot,
                process: task.map(|(process, _)| process),
                task: task.map(|(_, task)| task),
                start_insns,
                length_insns: placed.length_insns,
                start_ns,
                end_ns: rate.to_ns(passed_insns),
                messages: placed.task.map_or_else(Vec::new, |(process, task)| {
                    messages(&plan.processes[process].tasks[task])
                }),
            };
            start_insns += placed.length_insns;
            planned
        })
        .collect()
}

/// Returns the messages for which a task waits.
fn messages(task: &Task) -> Vec<PlannedMessage> {
    let messages = task.after.iter().filter_map(|after| {
        Some(PlannedMessage {
            from_process: after.process,
            from_task: after.task,
            arrival_ns: after.arrival_ns?,
        })
    });
    messages.collect()
}

/// The rate of a CPU of a plan; `otherwise` where that says none.
pub(crate) fn rate_of(cpu: &Cpu, otherwise: Rate) -> Rate {
    match cpu.rate_insns_per_ms {
        0 => otherwise,
        insns_per_ms => Rate::new(insns_per_ms),
    }
}

struct Builder {
    /// The segment that has begun; its end is not known yet.
    open: Option<ActualSegment>,
    /// The present slot.
    slot: Option<u64>,
    /// See [`following`]; of the plan in force.
    next: HashMap<(u32, u32), (u32, u64)>,
    /// Rate of a CPU if the plan declares none.
    rate: Rate,
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
            EventKind::Preempted if is_push(event) => self.mark(event, MarkKind::Pushed),
            EventKind::Preempted => self.mark(event, MarkKind::Preempted),
            EventKind::Ceiling => self.mark(event, MarkKind::Ceiling),
            EventKind::Absent => self.mark(event, MarkKind::Absent),
            EventKind::Waits => self.mark(event, MarkKind::Waits),
            EventKind::Late => self.mark(event, MarkKind::Late),
            EventKind::Early => self.mark(event, MarkKind::Early),
            EventKind::Info => self.mark(event, MarkKind::Info),
            EventKind::Attached => self.attached(event),
            EventKind::ProcessEnded if self.runs(event.process) => self.close(event.time_ns),
            _ => {}
        }
    }

    fn next_plan(&mut self, plan: &Plan, event: &Event) {
        self.close(event.time_ns);
        self.slot = None;
        let planned = planned(plan, event.cpu, self.rate);
        self.next = following(&planned);
        self.timeline.ended_ns = None;
        self.timeline.later.push(LaterPlan {
            plan_id: plan.plan_id,
            installed_ns: event.time_ns,
            planned,
        });
    }

    fn runs(&self, process: u32) -> bool {
        self.open.as_ref().is_some_and(|open| open.process == process)
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
            plan: self.timeline.later.len(),
            reason: reason.map_or("unknown", Grant::name),
        });
    }

    /// A process that goes on in its slot gets no new grant: the segment is
    /// cut where the task ended, and the next one is the process's next task.
    /// In its own slot it goes on until it has caught up, that is, until its next
    /// task has its own slot still to come. In the slot of another it goes on
    /// until another grant: it may have been behind under the plan before.
    fn task_ended(&mut self, event: &Event) {
        let Some(open) = self.open.as_ref() else {
            return;
        };
        if open.process != event.process {
            return;
        }
        let (slot, is_own) = (open.slot, open.reason == Grant::Slot.name());
        let goes_on = |own: u64| !is_own || slot.is_none_or(|slot| own <= slot);
        let next = self.next.get(&(event.process, event.task));
        let next = next.filter(|&&(_, own)| goes_on(own)).map(|&(task, _)| task);
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
