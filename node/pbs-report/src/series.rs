// SPDX-License-Identifier: GPL-2.0
//! Lateness and thresholds over time (Leppert 2021, 4.3.2), from the events of
//! a recording.
//!
//! Events tell counts and latenesses; between two of them a count goes up
//! evenly while its process has the CPU. Thresholds are computed at every event
//! and at changes of stress.

use std::collections::{BTreeMap, HashMap};

use pbs_core::{Rate, Threshold};
use pbs_plan::Plan;
use pbs_uapi::{Cause, Event, EventKind};
use serde::Serialize;

use crate::event::{comparison, is_push, reason_name, threshold, Stages};
use crate::gantt::span_ns;
use crate::point::Point;
use crate::recording::Opened;
use crate::replay::{Growth, Replay};
use crate::thin::thin;
use crate::timeline::{PlanOfEvent, Succession};
use crate::{MarkKind, Report, TaskReport};

/// Changes of stress between two plans that are looked at.
const STRESS_STEPS: u64 = 64;
/// Moments at most that are looked at between two events of a task.
const STEPS: u64 = 32;
/// Number of moments that a picture can distinguish.
const FINENESS: u64 = 500;

/// Lines that are drawn of a recording.
#[derive(Clone, Debug, Serialize)]
pub struct Series {
    /// Ascending.
    pub cpus: Vec<CpuSeries>,
    /// The most telling tasks, the one that was asked for in front.
    pub tasks: Vec<TaskSeries>,
    /// Late, early and info events, in order.
    pub signals: Vec<Signal>,
}

/// The processes of a CPU together.
#[derive(Clone, Debug, Serialize)]
pub struct CpuSeries {
    /// Number of the CPU.
    pub cpu: u32,
    /// Time at which its first plan came into force, on the monotonic clock.
    pub begin_ns: u64,
    /// Length of the axis of time: the longest of the plans and of their runs.
    pub span_ns: u64,
    /// The plans that took over: when, and their numbers.
    pub later_plans: Vec<(u64, u64)>,
    /// Times at which the configuration of a plan in force changed. No threshold is known from
    /// there to the next plan.
    pub config_changes_ns: Vec<u64>,
    /// In points (3.3.6).
    pub stress: Vec<Point>,
    /// Lateness of the node, in instructions (3.3.6).
    pub lateness_insns: Vec<Point>,
    /// Empty if it is switched off.
    pub t2_node_insns: Vec<Point>,
    /// Empty if it is switched off.
    pub tm2_node_insns: Vec<Point>,
    /// In the order of the plans, those that have begun.
    pub processes: Vec<ProcessSeries>,
}

/// A process.
#[derive(Clone, Debug, Serialize)]
pub struct ProcessSeries {
    /// Number of the process.
    pub process: u32,
    /// Name of the process.
    pub name: String,
    /// In instructions (3.3.6).
    pub lateness_insns: Vec<Point>,
    /// max(capacity buffer, t2_process); empty if that is switched off.
    pub limit_insns: Vec<Point>,
    /// The first stage of the limit.
    pub capacity_buffer_insns: Vec<Point>,
}

/// A task.
#[derive(Clone, Debug, Serialize)]
pub struct TaskSeries {
    /// The number of its process.
    pub process: u32,
    /// Number of the task.
    pub task: u32,
    /// Name of the task, with its process.
    pub name: String,
    /// CPU of the task.
    pub cpu: u32,
    /// Count of the task.
    pub retired_insns: Vec<Point>,
    /// Planned length; a plan that takes over may change it.
    pub planned_insns: Vec<Point>,
    /// Empty if it is switched off.
    pub t2_task_insns: Vec<Point>,
    /// Empty if it is switched off or never signals.
    pub tm2_task_insns: Vec<Point>,
    /// The slots of its own that it sat in, with their t1.
    pub slots: Vec<SlotStay>,
    /// Time and count at each preemption.
    pub preemptions: Vec<Point>,
    /// Time and count at its end.
    pub ended: Option<Point>,
}

/// A task in a slot of its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SlotStay {
    /// The number of the slot.
    pub slot: u64,
    /// Since the CPU's first plan came into force.
    pub begin_ns: u64,
    /// Since the CPU's first plan came into force.
    pub end_ns: u64,
    /// The count of the task at which the slot reaches its t1: what tasks
    /// before it have retired in the slot counts, too.
    pub t1_insns: u64,
}

/// A late, early or info event.
#[derive(Clone, Debug, Serialize)]
pub struct Signal {
    /// Number among the signals, from 1.
    pub number: usize,
    /// The number of its event.
    pub seq: u64,
    /// Since the CPU's first plan came into force.
    pub time_ns: u64,
    /// CPU of the event.
    pub cpu: u32,
    /// Late, early or info.
    pub kind: MarkKind,
    /// The name of a `pbs_uapi::Cause`.
    pub cause: String,
    /// Process that caused the event.
    pub process: u32,
    /// Task that caused the event.
    pub task: u32,
    /// 100, or 25, 50 or 75 of an info.
    pub level_percent: u32,
    /// In points.
    pub stress: u32,
    /// Value that was compared with the threshold.
    pub compared: i64,
    /// Instructions, or preemptions.
    pub threshold: i64,
    /// The comparison in words.
    pub words: String,
}

/// Selection of the tasks and points in a series.
#[derive(Clone, Copy, Debug)]
pub struct Selection {
    /// Process and number of a task to have in front.
    pub task: Option<(u32, u32)>,
    /// Maximum number of tasks.
    pub tasks: usize,
    /// Maximum number of points in each line.
    pub points: usize,
}

impl Default for Selection {
    fn default() -> Self {
        Self { task: None, tasks: 12, points: 1500 }
    }
}

impl CpuSeries {
    /// Times at which a plan took over, or the configuration of a plan changed.
    pub(crate) fn changes_ns(&self) -> Vec<u64> {
        let plans = self.later_plans.iter().map(|&(time_ns, _)| time_ns);
        plans.chain(self.config_changes_ns.iter().copied()).collect()
    }
}

impl Series {
    /// Derives everything from a recording; `report` is made from the same.
    pub fn new(opened: &Opened, report: &Report, selection: Selection) -> Self {
        let span_ns = span_ns(report);
        let mut signals = Vec::new();
        let mut cpus = Vec::new();
        let mut tasks = HashMap::new();
        for timeline in &report.cpus {
            let mut builder = Builder::new(opened, timeline.cpu, timeline.installed_ns);
            builder.follow(&opened.events);
            signals.append(&mut builder.signals);
            tasks.extend(std::mem::take(&mut builder.tasks));
            cpus.push(builder.finish(report, span_ns, selection.points));
        }
        signals.sort_by_key(|signal| signal.seq);
        for (signal, number) in signals.iter_mut().zip(1..) {
            signal.number = number;
        }
        let chosen = choose(report, &signals, selection);
        let series = |task: &&TaskReport| {
            let data = tasks.get(&(task.process, task.task));
            data.map(|data| data.series(task, selection.points))
        };
        Self { tasks: chosen.iter().filter_map(series).collect(), cpus, signals }
    }
}

/// The tasks to draw: the one that was asked for, then those with most signals
/// and preemptions and the greatest deviations.
fn choose<'a>(report: &'a Report, signals: &[Signal], selection: Selection) -> Vec<&'a TaskReport> {
    let mut failures: HashMap<(u32, u32), usize> = HashMap::new();
    for signal in signals {
        let weight = if signal.kind == MarkKind::Info { 0 } else { 1 };
        *failures.entry((signal.process, signal.task)).or_default() += weight;
    }
    let key = |task: &TaskReport| (task.process, task.task);
    let mut tasks: Vec<_> = report.tasks.iter().collect();
    tasks.sort_by_key(|task| {
        let signals = failures.get(&key(task)).copied().unwrap_or(0);
        let chosen = selection.task == Some(key(task));
        let telling = (chosen, signals, task.preemptions);
        std::cmp::Reverse((telling, task.deviation_permille.abs()))
    });
    tasks.truncate(selection.tasks);
    tasks
}

/// A task under observation; times are of the monotonic clock.
#[derive(Default)]
struct TaskData {
    begin_ns: u64,
    growths: Vec<Growth>,
    /// Values of t2_task and tm2_task, by growth.
    thresholds: Vec<(Option<u64>, Option<u64>)>,
    preemptions: Vec<Point>,
    ended: Option<Point>,
}

impl TaskData {
    fn series(&self, task: &TaskReport, points: usize) -> TaskSeries {
        let at = |time_ns: u64| time_ns.saturating_sub(self.begin_ns);
        let mut retired_insns = Vec::new();
        let mut lines = [const { Vec::new() }; 3];
        let mut slots: Vec<SlotStay> = Vec::new();
        for (growth, &(t2, tm2)) in self.growths.iter().zip(&self.thresholds) {
            let (from, to) = (at(growth.from_ns), at(growth.to_ns));
            retired_insns.push(Point(from, signed(growth.from_insns)));
            retired_insns.push(Point(to, signed(growth.to_insns)));
            let values = [Some(growth.planned_insns), t2, tm2];
            for (line, value) in lines.iter_mut().zip(values) {
                let Some(value) = value.map(signed) else {
                    continue;
                };
                line.push(Point(from, value));
                line.push(Point(to, value));
            }
            let Some((slot, t1_insns)) = growth.t1 else {
                continue;
            };
            match slots.last_mut() {
                // The slot goes on.
                Some(stay) if stay.slot == slot && stay.t1_insns == t1_insns => stay.end_ns = to,
                _ => slots.push(SlotStay { slot, begin_ns: from, end_ns: to, t1_insns }),
            }
        }
        let [planned_insns, t2_task_insns, tm2_task_insns] = lines.map(|line| thin(&line, points));
        TaskSeries {
            process: task.process,
            task: task.task,
            name: task.label(),
            cpu: task.cpu,
            retired_insns: thin(&retired_insns, points),
            planned_insns,
            t2_task_insns,
            tm2_task_insns,
            slots,
            preemptions: thin(&self.preemptions, points),
            ended: self.ended,
        }
    }
}

struct Builder<'a> {
    cpu: u32,
    replay: Replay,
    succession: Succession<'a>,
    begin_ns: u64,
    /// Changes of stress up to here are drawn; `None` before the first plan.
    stress_ns: Option<u64>,
    /// Counts that go up for longer are looked at in between.
    step_ns: u64,
    last_ns: u64,
    later_plans: Vec<(u64, u64)>,
    config_changes_ns: Vec<u64>,
    stress: Vec<Point>,
    lateness: Vec<Point>,
    t2_node: Vec<Point>,
    tm2_node: Vec<Point>,
    processes: BTreeMap<u32, Lines>,
    tasks: HashMap<(u32, u32), TaskData>,
    signals: Vec<Signal>,
}

#[derive(Default)]
struct Lines {
    lateness: Vec<Point>,
    limit: Vec<Point>,
    capacity_buffer: Vec<Point>,
}

impl<'a> Builder<'a> {
    fn new(opened: &'a Opened, cpu: u32, installed_ns: Option<u64>) -> Self {
        let succession = Succession::new(&opened.plans, cpu);
        let empty = Plan::default();
        let first = succession.plan().unwrap_or(&empty);
        let own = opened.events.iter().find(|event| event.cpu == cpu);
        let begin_ns = installed_ns.or(own.map(|event| event.time_ns));
        Self {
            cpu,
            replay: Replay::new(
                first,
                cpu,
                opened.config,
                Rate::new(opened.facts.rate_insns_per_ms),
            ),
            succession,
            begin_ns: begin_ns.unwrap_or(0),
            stress_ns: None,
            step_ns: 1,
            last_ns: begin_ns.unwrap_or(0),
            later_plans: Vec::new(),
            config_changes_ns: Vec::new(),
            stress: Vec::new(),
            lateness: Vec::new(),
            t2_node: Vec::new(),
            tm2_node: Vec::new(),
            processes: BTreeMap::new(),
            tasks: HashMap::new(),
            signals: Vec::new(),
        }
    }

    fn at(&self, time_ns: u64) -> u64 {
        time_ns.saturating_sub(self.begin_ns)
    }

    fn task(&mut self, process: u32, task: u32) -> &mut TaskData {
        let data = self.tasks.entry((process, task)).or_default();
        data.begin_ns = self.begin_ns;
        data
    }

    fn follow(&mut self, events: &[Event]) {
        if let (Some(first), Some(last)) = (events.first(), events.last()) {
            let span_ns = last.time_ns.saturating_sub(first.time_ns);
            self.step_ns = (span_ns / FINENESS).max(1);
        }
        for event in events {
            let place = self.succession.follow(event);
            if place == PlanOfEvent::Elsewhere {
                continue;
            }
            self.last_ns = self.last_ns.max(event.time_ns);
            if let Some(growth) = self.replay.growth(event) {
                self.grow(&growth);
            }
            self.stress_until(event.time_ns);
            let active = self.replay.active();
            let next = match place {
                PlanOfEvent::NextPlan => self.succession.plan(),
                _ => None,
            };
            let all = next.is_some();
            self.sample(event, all);
            match next {
                Some(plan) => {
                    let at = self.at(event.time_ns);
                    let stress = self.replay.stress(event.time_ns);
                    push(&mut self.stress, at, signed(stress));
                    self.replay.take_over(plan, event);
                    self.later_plans.push((at, plan.plan_id));
                }
                None => self.replay.event(event),
            }
            if event.kind == EventKind::Configured as u16 {
                self.config_changes_ns.push(self.at(event.time_ns));
            }
            if event.kind == EventKind::TaskEnded as u16 {
                // With the last task of a process its lateness goes from the
                // node's right after this.
                let at = self.at(event.time_ns);
                push(&mut self.lateness, at, event.node_lateness_insns);
            }
            if event.kind == EventKind::PlanInstalled as u16 {
                self.stress_ns = Some(event.time_ns);
                let stress = self.replay.stress(event.time_ns);
                let at = self.at(event.time_ns);
                push(&mut self.stress, at, signed(stress));
            }
            self.sample(event, all || self.replay.active() != active);
            self.mark(event);
        }
        self.stress_until(self.last_ns);
        let (at, stress) = (self.at(self.last_ns), self.replay.stress(self.last_ns));
        push(&mut self.stress, at, signed(stress));
    }

    /// A count has gone up. Where its task turned late the latenesses begin to
    /// rise; and thresholds move with progress and with stress.
    fn grow(&mut self, growth: &Growth) {
        let (process, planned) = (growth.process, growth.planned_insns);
        self.stress_until(growth.from_ns);
        let (from, to) = (growth.from_ns, growth.to_ns.max(growth.from_ns));
        let insns = growth.to_insns - growth.from_insns;
        let at_turn = growth.from_insns.max(planned).min(growth.to_insns);
        let turning_ns = from + scaled(to - from, at_turn - growth.from_insns, insns);
        let parts = ((to - from) / self.step_ns).min(STEPS);
        let steps = (1..parts).map(|part| from + (to - from) / parts * part);
        let changes: Vec<_> = self.stress_changes(to).collect();
        let mut times: Vec<_> = steps.chain(changes).chain([turning_ns]).collect();
        times.retain(|time| (from..to).contains(time));
        times.sort_unstable();
        // A task that follows another one in its slot begins here.
        self.reach(process, growth.from_insns, from);
        for time_ns in times {
            let reached = if time_ns == turning_ns {
                at_turn
            } else {
                growth.from_insns + scaled(insns, time_ns - from, to - from)
            };
            self.replay.grow(process, reached, time_ns);
            self.stress_until(time_ns);
            self.reach(process, reached, time_ns);
        }
        self.reach(process, growth.to_insns, to);
        let policy = self.replay.policy();
        let config = policy.config;
        let t2_insns = config.has(Threshold::T2Task).then(|| policy.t2_task_insns(planned));
        let tm2_insns = config
            .has(Threshold::Tm2Task)
            .then(|| policy.tm2_task_insns(planned))
            .filter(|&insns| insns > 0);
        let data = self.task(process, growth.task);
        data.growths.push(*growth);
        data.thresholds.push((t2_insns, tm2_insns));
    }

    fn reach(&mut self, process: u32, insns: u64, time_ns: u64) {
        self.replay.grow(process, insns, time_ns);
        self.sample_process(process, time_ns);
        self.sample_node(time_ns);
    }

    /// The changes of stress that are to be drawn up to a time.
    fn stress_changes(&self, time_ns: u64) -> impl Iterator<Item = u64> {
        let config = self.replay.config();
        let tick_ns = config.nominal_tick_ns.max(1);
        let reset = config.stress(0);
        let step_ns = reset.div_ceil(STRESS_STEPS).max(1) * tick_ns;
        let end_ns = self.replay.installed_ns() + reset.saturating_mul(tick_ns);
        let last_ns = time_ns.min(end_ns);
        let after = move |at_ns: u64| Some((at_ns + step_ns).min(end_ns.max(at_ns + 1)));
        std::iter::successors(self.stress_ns.and_then(after), move |&at_ns| after(at_ns))
            .take_while(move |&at_ns| at_ns <= last_ns)
    }

    /// Draws how stress falls, and the thresholds with it.
    fn stress_until(&mut self, time_ns: u64) {
        let changes: Vec<_> = self.stress_changes(time_ns).collect();
        for change_ns in changes {
            self.stress_ns = Some(change_ns);
            for at_ns in [change_ns - 1, change_ns] {
                let stress = signed(self.replay.stress(at_ns));
                let at = self.at(at_ns);
                push(&mut self.stress, at, stress);
                self.sample_thresholds(at_ns);
            }
        }
    }

    /// The thresholds of all, not their latenesses: those are known at events.
    fn sample_thresholds(&mut self, time_ns: u64) {
        for process in self.replay.active_processes() {
            self.sample_limit(process, time_ns);
        }
        self.sample_node_limits(time_ns);
    }

    fn sample(&mut self, event: &Event, all: bool) {
        self.sample_process(event.process, event.time_ns);
        if all {
            for process in self.replay.active_processes() {
                self.sample_process(process, event.time_ns);
            }
        }
        self.sample_node(event.time_ns);
    }

    fn sample_process(&mut self, process: u32, time_ns: u64) {
        if !self.replay.has_begun(process) {
            return;
        }
        let at = self.at(time_ns);
        if let Some(state) = self.replay.process(process, time_ns) {
            let lines = self.processes.entry(process).or_default();
            push(&mut lines.lateness, at, state.lateness_insns);
        }
        self.sample_limit(process, time_ns);
    }

    fn sample_limit(&mut self, process: u32, time_ns: u64) {
        let at = self.at(time_ns);
        if !self.replay.config().has(Threshold::T2Process) {
            return;
        }
        if let Some(state) = self.replay.process(process, time_ns) {
            let lines = self.processes.entry(process).or_default();
            push(&mut lines.limit, at, signed(state.limit_insns));
            let buffer = signed(state.capacity_buffer_insns);
            push(&mut lines.capacity_buffer, at, buffer);
        }
    }

    fn sample_node(&mut self, time_ns: u64) {
        if self.replay.active() == 0 && self.lateness.is_empty() {
            return;
        }
        let (at, state) = (self.at(time_ns), self.replay.node(time_ns));
        push(&mut self.lateness, at, state.lateness_insns);
        self.sample_node_limits(time_ns);
    }

    fn sample_node_limits(&mut self, time_ns: u64) {
        if self.replay.active() == 0 {
            return;
        }
        let (at, state) = (self.at(time_ns), self.replay.node(time_ns));
        let config = self.replay.config();
        if config.has(Threshold::T2Node) {
            push(&mut self.t2_node, at, signed(state.t2_node_insns));
        }
        // Stress holds it back altogether.
        if config.has(Threshold::Tm2Node) && self.replay.stress(time_ns) == 0 {
            push(&mut self.tm2_node, at, state.tm2_node_insns);
        }
    }

    /// Preemptions, ends of tasks and signals.
    fn mark(&mut self, event: &Event) {
        let at = self.at(event.time_ns);
        let point = Point(at, signed(event.retired_insns));
        let kind = match EventKind::from_raw(event.kind) {
            Some(EventKind::Preempted) if !is_push(event) => {
                self.task(event.process, event.task).preemptions.push(point);
                return;
            }
            Some(EventKind::TaskEnded) => {
                self.task(event.process, event.task).ended = Some(point);
                return;
            }
            Some(EventKind::Late) => MarkKind::Late,
            Some(EventKind::Early) => MarkKind::Early,
            Some(EventKind::Info) => MarkKind::Info,
            _ => return,
        };
        let compared = match Cause::from_raw(event.reason) {
            Some(Cause::Process) => event.lateness_insns,
            Some(Cause::Node) => event.node_lateness_insns,
            Some(Cause::Preemptions) => event.preemptions.into(),
            Some(Cause::Memory | Cause::NodeMemory) => signed(event.memory_bytes),
            Some(Cause::Start | Cause::End) => event.value.cast_signed(),
            Some(Cause::Task | Cause::Message) | None => signed(event.retired_insns),
        };
        let state = self.replay.process(event.process, event.time_ns);
        let stages = state.map(|state| Stages {
            capacity_buffer_insns: state.capacity_buffer_insns,
            t2_process_insns: state.t2_process_insns,
        });
        self.signals.push(Signal {
            number: 0,
            seq: event.seq,
            time_ns: at,
            cpu: self.cpu,
            kind,
            // An event of a later kernel has no name here.
            cause: reason_name(event).unwrap_or_default(),
            process: event.process,
            task: event.task,
            level_percent: event.level_percent,
            stress: event.stress,
            compared,
            threshold: i64::try_from(threshold(event)).unwrap_or(i64::MAX),
            words: comparison(event, stages),
        });
    }

    fn finish(mut self, report: &Report, span_ns: u64, points: usize) -> CpuSeries {
        let mut processes = Vec::new();
        for process in &report.processes {
            if let Some(lines) = self.processes.remove(&process.id) {
                processes.push(ProcessSeries {
                    process: process.id,
                    name: process.name.clone(),
                    lateness_insns: thin(&lines.lateness, points),
                    limit_insns: thin(&lines.limit, points),
                    capacity_buffer_insns: thin(&lines.capacity_buffer, points),
                });
            }
        }
        CpuSeries {
            cpu: self.cpu,
            begin_ns: self.begin_ns,
            span_ns,
            later_plans: self.later_plans,
            config_changes_ns: self.config_changes_ns,
            stress: thin(&self.stress, points),
            lateness_insns: thin(&self.lateness, points),
            t2_node_insns: thin(&self.t2_node, points),
            tm2_node_insns: thin(&self.tm2_node, points),
            processes,
        }
    }
}

/// `value · part / whole`; all of it where the whole is nothing.
fn scaled(value: u64, part: u64, whole: u64) -> u64 {
    if part >= whole {
        return value;
    }
    // Not more than the value.
    (u128::from(value) * u128::from(part) / u128::from(whole)) as u64
}

fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Adds a point that says something new. Time does not go back: a count that
/// is told late stands where it was told.
fn push(line: &mut Vec<Point>, time_ns: u64, value: i64) {
    let time_ns = line.last().map_or(time_ns, |last| last.0.max(time_ns));
    let point = Point(time_ns, value);
    match line.as_slice() {
        [.., last] if *last == point => {}
        // The middle of a flat stretch.
        [.., before, last] if before.1 == value && last.1 == value => {
            if let Some(last) = line.last_mut() {
                *last = point;
            }
        }
        _ => line.push(point),
    }
}
