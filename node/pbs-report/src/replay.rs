// SPDX-License-Identifier: GPL-2.0
//! The accounts of a CPU's processes, followed along its events.
//!
//! The policy core keeps them while the plan runs; the events tell enough to
//! know them again: tasks begun and ended, counts, and plans that take over.
//! All thresholds come from the core's own functions on its `Policy`.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use pbs_core::{Policy, Progress, Rate};
use pbs_plan::{Config, PlacedSlot, Plan};
use pbs_uapi::{Cause, Event, EventKind, Grant, IDLE, NO_TASK};

use crate::timeline::rate_of;

/// State of a process at a moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Run {
    pub(crate) begun: bool,
    pub(crate) done: bool,
    task: u32,
    task_begun: bool,
    planned_insns: u64,
    pub(crate) retired_insns: u64,
    account: Account,
    /// Planned lengths of the current task and those after it.
    rest_insns: u64,
    buffer_insns: u64,
    /// Time at which the process got its present or last CPU; later, the time of its last known
    /// count.
    since_ns: u64,
    /// Time at which the process lost the CPU.
    until_ns: Option<u64>,
    /// The slot that it has the CPU in as its owner.
    slot: Option<u64>,
    /// The slot that it had last as its owner, and what it has retired there. Where slots
    /// float, others have the CPU in between.
    counted: Option<(u64, u64)>,
    /// The last failure of t2_process that no plan has dealt with.
    told_seq: Option<u64>,
}

/// The sums over the processes that have begun and have tasks left.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    active: u32,
    lateness_insns: i64,
    begun_insns: u64,
    finished_insns: u64,
}

impl Sums {
    /// Returns the part of a process in the sums.
    fn of(run: &Run) -> Self {
        if !run.is_active() {
            return Self::default();
        }
        Self {
            active: 1,
            lateness_insns: run.lateness_insns(),
            begun_insns: run.begun_insns(),
            finished_insns: run.account.planned_insns,
        }
    }

    fn add(&mut self, other: &Self) {
        self.active += other.active;
        self.lateness_insns += other.lateness_insns;
        self.begun_insns += other.begun_insns;
        self.finished_insns += other.finished_insns;
    }

    fn take_away(&mut self, other: &Self) {
        self.active -= other.active;
        self.lateness_insns -= other.lateness_insns;
        self.begun_insns -= other.begun_insns;
        self.finished_insns -= other.finished_insns;
    }
}

/// Sums over the ended tasks of a process.
#[derive(Clone, Copy, Debug, Default)]
struct Account {
    lateness_insns: i64,
    planned_insns: u64,
}

/// A task as planned.
#[derive(Clone, Copy, Debug)]
struct Planned {
    id: u32,
    planned_insns: u64,
    /// Length of the task and of all tasks after it.
    rest_insns: u64,
}

/// A stretch of time in which the count of a task went up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Growth {
    pub(crate) process: u32,
    pub(crate) task: u32,
    pub(crate) from_ns: u64,
    pub(crate) to_ns: u64,
    pub(crate) from_insns: u64,
    pub(crate) to_insns: u64,
    /// Planned length in the plan in force.
    pub(crate) planned_insns: u64,
    /// In its own slot: the number of the slot, and the count of the task at
    /// which the slot reaches t1.
    pub(crate) t1: Option<(u64, u64)>,
}

/// The thresholds of a process and what is compared with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProcessState {
    pub(crate) lateness_insns: i64,
    /// max(capacity buffer, t2_process)
    pub(crate) limit_insns: u64,
    pub(crate) capacity_buffer_insns: u64,
    pub(crate) t2_process_insns: u64,
}

/// The thresholds of the node and what is compared with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NodeState {
    pub(crate) lateness_insns: i64,
    pub(crate) t2_node_insns: u64,
    pub(crate) tm2_node_insns: i64,
}

/// A CPU as its events tell of it.
pub(crate) struct Replay {
    default_config: Config,
    /// Rate of the CPU.
    rate: Rate,
    policy: Policy,
    installed_ns: u64,
    plan_ended: bool,
    /// The greatest that a plan had.
    dealt_seq: u64,
    /// Tasks with their lengths, ascending, by process.
    tasks: HashMap<u32, Rc<[Planned]>>,
    /// t1 of each slot, where it holds.
    slots_t1_insns: Vec<Option<u64>>,
    /// State by process. It is changed with [`Replay::change`].
    runs: BTreeMap<u32, Run>,
    /// Over the active ones.
    sums: Sums,
    /// The last failures of the node that no plan has dealt with, late and
    /// early: the numbers of their events.
    told_late_seq: Option<u64>,
    told_early_seq: Option<u64>,
    /// Process that has the CPU.
    granted: Option<u32>,
}

impl Replay {
    pub(crate) fn new(plan: &Plan, cpu: u32, default_config: Config, rate: Rate) -> Self {
        let mut replay = Self {
            default_config,
            rate,
            policy: Policy::new(default_config, rate),
            installed_ns: 0,
            plan_ended: false,
            dealt_seq: 0,
            tasks: HashMap::new(),
            slots_t1_insns: Vec::new(),
            runs: BTreeMap::new(),
            sums: Sums::default(),
            told_late_seq: None,
            told_early_seq: None,
            granted: None,
        };
        replay.take(plan, cpu);
        for (process, tasks) in &replay.tasks {
            let run = replay.runs.entry(*process).or_default();
            run.move_to(tasks, 0);
        }
        replay
    }

    /// Reads what is needed of a plan.
    fn take(&mut self, plan: &Plan, cpu: u32) {
        let config = plan.config.unwrap_or(self.default_config);
        let cpu = plan.cpus.iter().find(|known| known.cpu == cpu);
        let rate = cpu.map_or(self.rate, |cpu| rate_of(cpu, self.rate));
        self.policy = Policy::new(config, rate);
        self.tasks.clear();
        self.slots_t1_insns.clear();
        let Some(cpu) = cpu else {
            return;
        };
        let t1_insns = |slot: PlacedSlot| {
            let (process, task) = slot.task?;
            let is_last = task + 1 == plan.processes[process].tasks.len();
            self.policy.t1_of_slot_insns(slot.length_insns, is_last)
        };
        self.slots_t1_insns = plan.place(cpu).map(t1_insns).collect();
        let on_cpu = plan.processes_on(cpu);
        for &index in &on_cpu {
            let process = &plan.processes[index];
            let mut rest_insns = 0;
            let mut tasks: Vec<_> = process
                .tasks
                .iter()
                .rev()
                .map(|task| {
                    rest_insns += task.planned_insns;
                    Planned { id: task.id, planned_insns: task.planned_insns, rest_insns }
                })
                .collect();
            tasks.reverse();
            self.tasks.insert(process.id, tasks.into());
            let run = self.runs.entry(process.id).or_default();
            run.buffer_insns = process.buffer_insns;
        }
        self.runs.retain(|id, _| self.tasks.contains_key(id));
    }

    pub(crate) fn config(&self) -> &Config {
        &self.policy.config
    }

    /// The configuration with its times as instructions.
    pub(crate) fn policy(&self) -> &Policy {
        &self.policy
    }

    pub(crate) fn installed_ns(&self) -> u64 {
        self.installed_ns
    }

    pub(crate) fn stress(&self, now_ns: u64) -> u64 {
        self.policy.config.stress(now_ns.saturating_sub(self.installed_ns))
    }

    /// Returns the number of processes that have begun and have tasks left.
    pub(crate) fn active(&self) -> u32 {
        self.sums.active
    }

    /// Their numbers, ascending.
    pub(crate) fn active_processes(&self) -> Vec<u32> {
        let active = self.runs.iter().filter(|(_, run)| run.is_active());
        active.map(|(&id, _)| id).collect()
    }

    /// Whether a task of the process has begun.
    pub(crate) fn has_begun(&self, process: u32) -> bool {
        self.runs.get(&process).is_some_and(|run| run.begun)
    }

    /// Changes what is known of a process, and the sums with it.
    fn change(&mut self, process: u32, change: impl FnOnce(&mut Run)) {
        if let Some(run) = self.runs.get_mut(&process) {
            self.sums.take_away(&Sums::of(run));
            change(run);
            self.sums.add(&Sums::of(run));
        }
    }

    pub(crate) fn process(&self, id: u32, now_ns: u64) -> Option<ProcessState> {
        let run = self.runs.get(&id)?;
        let progress = run.progress();
        let stress = self.stress(now_ns);
        Some(ProcessState {
            lateness_insns: run.lateness_insns(),
            limit_insns: self.policy.process_limit_insns(&progress, self.active(), stress),
            capacity_buffer_insns: self.policy.capacity_buffer_insns(progress.begun_insns),
            t2_process_insns: self.policy.t2_process_insns(&progress, self.active(), stress),
        })
    }

    pub(crate) fn node(&self, now_ns: u64) -> NodeState {
        let sums = &self.sums;
        let stress = self.stress(now_ns);
        NodeState {
            lateness_insns: sums.lateness_insns,
            t2_node_insns: self.policy.t2_node_insns(sums.begun_insns, sums.active, stress),
            tm2_node_insns: self.policy.tm2_node_insns(sums.finished_insns),
        }
    }

    /// Returns the growth that led to the count in `event`, if the count went up. [`Replay::grow`]
    /// updates the count itself.
    pub(crate) fn growth(&self, event: &Event) -> Option<Growth> {
        if !tells_count(event) {
            return None;
        }
        let run = self.runs.get(&event.process)?;
        if run.task != event.task || event.retired_insns <= run.retired_insns {
            return None;
        }
        let t1 = run.slot.and_then(|slot| {
            let t1_insns = *self.slots_t1_insns.get(usize::try_from(slot).ok()?)?;
            let counted = run.counted.filter(|counted| counted.0 == slot);
            let used_insns = counted.map_or(0, |counted| counted.1);
            Some((slot, run.retired_insns + t1_insns? - used_insns))
        });
        Some(Growth {
            process: event.process,
            task: event.task,
            from_ns: run.since_ns.min(event.time_ns),
            to_ns: run.until_ns.unwrap_or(event.time_ns),
            from_insns: run.retired_insns,
            to_insns: event.retired_insns,
            planned_insns: run.planned_insns,
            t1,
        })
    }

    /// The current task of a process has retired so much at that time.
    pub(crate) fn grow(&mut self, process: u32, retired_insns: u64, time_ns: u64) {
        let Some(run) = self.runs.get(&process) else {
            return;
        };
        let more_insns = retired_insns.saturating_sub(run.retired_insns);
        self.change(process, |run| {
            if let Some(slot) = run.slot {
                let counted = run.counted.filter(|counted| counted.0 == slot);
                let before_insns = counted.map_or(0, |counted| counted.1);
                run.counted = Some((slot, before_insns + more_insns));
            }
            run.retired_insns = retired_insns;
            run.since_ns = time_ns;
            run.begun = true;
            run.task_begun = true;
        });
    }

    /// Follows an event of the plan in force, after its growth.
    pub(crate) fn event(&mut self, event: &Event) {
        let Some(kind) = EventKind::from_raw(event.kind) else {
            return;
        };
        let time_ns = event.time_ns;
        match kind {
            EventKind::PlanInstalled => self.installed_ns = time_ns,
            EventKind::PlanEnded => self.plan_ended = true,
            EventKind::Grant => self.grant(event),
            EventKind::TaskEnded => {
                let tasks = self.tasks.get(&event.process).cloned();
                let tasks = tasks.as_deref().unwrap_or_default();
                self.change(event.process, |run| {
                    run.begun = true;
                    run.account.planned_insns += run.planned_insns;
                    run.account.lateness_insns = event.lateness_insns;
                    let next = tasks.partition_point(|task| task.id <= event.task);
                    run.move_to(tasks, next);
                    run.since_ns = time_ns;
                });
            }
            EventKind::ProcessEnded => self.change(event.process, |run| run.done = true),
            EventKind::Late | EventKind::Early => self.told(kind, event),
            EventKind::Configured => self.lose_thresholds(),
            _ => {}
        }
    }

    /// Forgets the thresholds until the next plan: the event of a change of the configuration does
    /// not contain the new numbers.
    fn lose_thresholds(&mut self) {
        self.policy.config.thresholds = 0;
        self.slots_t1_insns.clear();
    }

    fn told(&mut self, kind: EventKind, event: &Event) {
        let seq = Some(event.seq);
        match (kind, Cause::from_raw(event.reason)) {
            (EventKind::Late, Some(Cause::Node)) => self.told_late_seq = seq,
            (EventKind::Late, Some(Cause::Process)) => {
                self.change(event.process, |run| run.told_seq = seq);
            }
            (EventKind::Early, Some(Cause::Node)) => self.told_early_seq = seq,
            _ => {}
        }
    }

    fn grant(&mut self, event: &Event) {
        if let Some(before) = self.granted.take() {
            self.change(before, |run| run.until_ns = Some(event.time_ns));
        }
        let reason = Grant::from_raw(event.reason);
        if event.process == IDLE || reason == Some(Grant::None) {
            return;
        }
        self.granted = Some(event.process);
        self.change(event.process, |run| {
            // It begins when the first instruction is counted, which is now but
            // for what the kernel needs.
            run.begun = true;
            run.task_begun = true;
            run.since_ns = event.time_ns;
            run.until_ns = None;
            run.slot = Some(event.slot).filter(|_| reason == Some(Grant::Slot));
        });
    }

    /// `plan` takes over with `event`, as `Node::begin` of the policy core says.
    pub(crate) fn take_over(&mut self, plan: &Plan, event: &Event) {
        let again = std::mem::take(&mut self.plan_ended) && plan.dealt_seq == 0;
        self.dealt_seq = self.dealt_seq.max(plan.dealt_seq);
        let dealt_seq = self.dealt_seq;
        let dealt = |seq: Option<u64>| seq.is_some_and(|seq| seq < dealt_seq);
        let node_dealt = dealt(self.told_late_seq) || dealt(self.told_early_seq);
        if node_dealt || again {
            self.told_late_seq = None;
            self.told_early_seq = None;
        }
        let next_tasks: HashMap<_, _> = self
            .runs
            .iter()
            .map(|(&id, run)| (id, (run.next_task(self.tasks.get(&id).map(Rc::as_ref)), run.done)))
            .collect();
        self.take(plan, event.cpu);
        self.installed_ns = event.time_ns;
        self.granted = None;
        for (id, tasks) in &self.tasks {
            let Some(run) = self.runs.get_mut(id) else {
                continue;
            };
            let Some(&(next_task, done)) = next_tasks.get(id) else {
                run.move_to(tasks, 0);
                continue;
            };
            if done && again {
                let buffer_insns = run.buffer_insns;
                *run = Run::default();
                run.buffer_insns = buffer_insns;
                run.move_to(tasks, 0);
                continue;
            }
            let was = run.clone();
            run.done = false;
            run.move_to(tasks, tasks.partition_point(|task| task.id < next_task));
            if !run.done && !done && run.task == next_task {
                run.retired_insns = was.retired_insns;
                run.task_begun = was.task_begun;
            } else if !done {
                run.account = Account {
                    lateness_insns: was.lateness_insns(),
                    planned_insns: was.begun_insns(),
                };
            }
            (run.slot, run.counted) = (None, None);
            if node_dealt || dealt(run.told_seq) {
                run.told_seq = None;
                let over_insns = run.retired_insns.saturating_sub(run.planned_insns);
                run.account = Account {
                    lateness_insns: -i64::try_from(over_insns).unwrap_or(i64::MAX),
                    planned_insns: 0,
                };
            }
        }
        self.sums = Sums::default();
        for run in self.runs.values() {
            self.sums.add(&Sums::of(run));
        }
    }
}

/// Whether the event's count is that of a task that goes on or ends here. The
/// count of an early signal is that of a task that has ended already.
fn tells_count(event: &Event) -> bool {
    event.process != IDLE && event.task != NO_TASK && event.kind != EventKind::Early as u16
}

impl Run {
    fn move_to(&mut self, tasks: &[Planned], position: usize) {
        self.retired_insns = 0;
        self.task_begun = false;
        match tasks.get(position) {
            Some(task) => {
                self.task = task.id;
                self.planned_insns = task.planned_insns;
                self.rest_insns = task.rest_insns;
            }
            None => {
                self.done = true;
                self.task = NO_TASK;
                self.planned_insns = 0;
                self.rest_insns = 0;
            }
        }
    }

    /// The id of the first task that has not ended; one more than the last if
    /// all have.
    fn next_task(&self, tasks: Option<&[Planned]>) -> u32 {
        if self.task != NO_TASK {
            return self.task;
        }
        let last = tasks.and_then(|tasks| tasks.last());
        last.map_or(0, |last| last.id.saturating_add(1))
    }

    pub(crate) fn is_active(&self) -> bool {
        self.begun && !self.done
    }

    fn lateness_insns(&self) -> i64 {
        let over_insns = self.retired_insns.saturating_sub(self.planned_insns);
        let over_insns = i64::try_from(over_insns).unwrap_or(i64::MAX);
        self.account.lateness_insns.saturating_add(over_insns)
    }

    fn begun_insns(&self) -> u64 {
        let running_insns = if self.task_begun { self.planned_insns } else { 0 };
        self.account.planned_insns + running_insns
    }

    fn progress(&self) -> Progress {
        let account = &self.account;
        let finished_insns = account.planned_insns.saturating_add_signed(account.lateness_insns);
        Progress {
            begun_insns: self.begun_insns(),
            planned_insns: account.planned_insns + self.rest_insns,
            retired_insns: finished_insns + self.retired_insns,
            buffer_insns: self.buffer_insns,
        }
    }
}
