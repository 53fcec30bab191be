// SPDX-License-Identifier: GPL-2.0
//! The plan and the events of its run, side by side.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use pbs_plan::{Plan, Process};
use pbs_uapi::{Event, EventKind};
use serde::{Deserialize, Serialize};

use crate::deadline::Deadline;
use crate::event::{counted_as, is_push, is_signal};
use crate::number::deviation_permille;
use crate::timeline::CpuTimeline;
use crate::waits::{edges, waited, Edge, Waited};

/// Facts beside the plan and the events.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// Release of the kernel, as `uname -r` prints it.
    pub kernel: String,
    /// Way of counting instructions: see [`tier_name`](crate::tier_name).
    pub tier: String,
    /// Instructions that a CPU retires in a millisecond.
    pub rate_insns_per_ms: u64,
    /// Exits of the plan's commands.
    pub exits: Vec<Exit>,
    /// Outcome of the run.
    pub outcome: Outcome,
}

/// Outcome of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The plan ended on every CPU.
    #[default]
    Ended,
    /// Somebody dropped the plan.
    Dropped,
    /// Somebody wrote another plan for a CPU of this one.
    Replaced,
    /// A CPU of the plan went offline.
    CpuGone,
    /// The run was broken off.
    Interrupted,
}

/// Exit of a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Exit {
    /// The process that it ran for.
    pub process: u32,
    /// The program.
    pub program: String,
    /// Process id of the command.
    pub pid: i32,
    /// Exit status, if it exited.
    pub code: Option<i32>,
    /// The signal, if that killed it.
    pub signal: Option<i32>,
    /// Reason for which it could not be executed, if it could not.
    pub error: Option<String>,
}

impl Exit {
    /// Whether all went well.
    pub fn success(&self) -> bool {
        self.code == Some(0) && self.error.is_none()
    }
}

/// Report on the run of a plan. Data that a [`Recording`](crate::Recording) also has are not
/// serialised: both go into one JSON object.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The plan's number.
    pub plan_id: u64,
    /// Outcome of the run.
    #[serde(skip)]
    pub outcome: Outcome,
    /// Release of the kernel, as `uname -r` prints it.
    #[serde(skip)]
    pub kernel: String,
    /// Way of counting instructions.
    #[serde(skip)]
    pub tier: String,
    /// Instructions that a CPU retires in a millisecond.
    #[serde(skip)]
    pub rate_insns_per_ms: u64,
    /// Number of events of each kind. Slots that reached t1 are counted separately: `preempted`
    /// with a task beyond its plan, `pushed` with another.
    pub event_counts: BTreeMap<String, u64>,
    /// Events that happened but were not read in time.
    pub events_lost: u64,
    /// The prediction failures and the information on the way to them, in
    /// order. They are among the events of a [`Recording`](crate::Recording).
    #[serde(skip)]
    pub signals: Vec<Event>,
    /// Dependencies between tasks, from the plans.
    pub edges: Vec<Edge>,
    /// Tasks that waited. They are also among the events of a [`Recording`](crate::Recording).
    #[serde(skip)]
    pub waited: Vec<Waited>,
    /// In the order of the slots, CPU by CPU.
    pub tasks: Vec<TaskReport>,
    /// In the order of the plan.
    pub processes: Vec<ProcessReport>,
    /// Ascending.
    pub cpus: Vec<CpuTimeline>,
    /// Deadlines of processes or of jobs, if they are known: events do not contain them.
    pub deadlines: Vec<Deadline>,
}

/// Report on a task.
#[derive(Clone, Debug, Serialize)]
pub struct TaskReport {
    /// The number of its process.
    pub process: u32,
    /// Name of its process.
    pub process_name: String,
    /// Number of the task.
    pub task: u32,
    /// Name of the task.
    pub name: Option<String>,
    /// CPU of the task.
    pub cpu: u32,
    /// The slot that was planned for it.
    pub slot: usize,
    /// Whether it ended.
    pub ended: bool,
    /// Planned length.
    pub planned_insns: u64,
    /// Counted instructions, as far as the events report them.
    pub retired_insns: u64,
    /// `(retired − planned) / planned`.
    pub deviation_permille: i64,
    /// Number of preemptions: how often a slot reached t1 with the task when it was beyond its
    /// plan.
    pub preemptions: u32,
    /// Number of times that a slot reached t1 with the task when it was not beyond its plan.
    pub pushes: u32,
    /// Lateness of its process when it ended; negative: early.
    pub lateness_insns: i64,
    /// Largest virtual size seen.
    pub peak_vm_bytes: u64,
    /// Largest resident size seen.
    pub peak_rss_bytes: u64,
    /// Time at which the task first had the CPU, on the monotonic clock.
    pub started_ns: Option<u64>,
    /// End of the task, on the monotonic clock.
    pub ended_ns: Option<u64>,
}

/// Report on a process.
#[derive(Clone, Debug, Serialize)]
pub struct ProcessReport {
    /// Number of the process.
    pub id: u32,
    /// Name of the process.
    pub name: String,
    /// CPU of the process.
    pub cpu: Option<u32>,
    /// Number of its tasks.
    pub tasks: usize,
    /// Number of its tasks that ended.
    pub tasks_ended: usize,
    /// Over all tasks.
    pub planned_insns: u64,
    /// Over all tasks.
    pub retired_insns: u64,
    /// Over all tasks.
    pub preemptions: u64,
    /// Over all tasks.
    pub pushes: u64,
    /// After the last task that ended; negative: early.
    pub lateness_insns: i64,
    /// Largest virtual size seen.
    pub peak_vm_bytes: u64,
    /// Largest resident size seen.
    pub peak_rss_bytes: u64,
    /// Exits of its commands.
    pub exits: Vec<Exit>,
}

impl Report {
    /// Puts together what became of `plan`; `events` are those since it was
    /// written, in order.
    pub fn new(plan: &Plan, events: &[Event], facts: &Facts) -> Self {
        Self::of_plans(std::slice::from_ref(plan), events, facts)
    }

    /// Builds the report on several plans that came into force one after the other. The planned
    /// length of a task is the one in the first plan that contains it: the expectation before
    /// anything was measured.
    ///
    /// # Panics
    ///
    /// Panics if there is no plan.
    pub fn of_plans(plans: &[Plan], events: &[Event], facts: &Facts) -> Self {
        let mut event_counts = BTreeMap::new();
        let mut events_lost = 0;
        for event in events {
            *event_counts.entry(counted_as(event)).or_default() += 1;
            if event.kind == EventKind::Overrun as u16 {
                events_lost += event.value;
            }
        }
        let numbers: BTreeSet<_> =
            plans.iter().flat_map(|plan| plan.cpus.iter().map(|cpu| cpu.cpu)).collect();
        let rate = pbs_core::Rate::new(facts.rate_insns_per_ms);
        let cpus: Vec<_> =
            numbers.into_iter().map(|cpu| CpuTimeline::new(plans, cpu, events, rate)).collect();
        let tasks = tasks(plans, &cpus, events);
        let mut processes: Vec<ProcessReport> = Vec::new();
        for process in plans.iter().flat_map(|plan| &plan.processes) {
            if processes.iter().all(|known| known.id != process.id) {
                processes.push(process_report(process, &tasks, &facts.exits));
            }
        }
        Self {
            plan_id: plans[0].plan_id,
            outcome: facts.outcome,
            kernel: facts.kernel.clone(),
            tier: facts.tier.clone(),
            rate_insns_per_ms: facts.rate_insns_per_ms,
            event_counts,
            events_lost,
            signals: events.iter().filter(|event| is_signal(event)).copied().collect(),
            edges: edges(plans),
            waited: waited(plans, events),
            tasks,
            processes,
            cpus,
            deadlines: Vec::new(),
        }
    }

    /// Returns the name of a task: its number, with its name if it has one.
    pub(crate) fn task_words(&self, process: u32, task: u32) -> String {
        match self.task_name(process, task) {
            Some(name) => format!("{task} {name}"),
            None => task.to_string(),
        }
    }

    pub(crate) fn task_name(&self, process: u32, task: u32) -> Option<String> {
        let mut tasks = self.tasks.iter();
        let known = tasks.find(|known| (known.process, known.task) == (process, task));
        known.and_then(|task| task.name.clone())
    }

    pub(crate) fn process_name(&self, id: u32) -> String {
        let process = self.processes.iter().find(|process| process.id == id);
        process.map_or_else(|| id.to_string(), |process| process.name.clone())
    }

    /// Whether all tasks ended, all commands succeeded and nothing was lost.
    pub fn is_complete(&self) -> bool {
        self.outcome == Outcome::Ended && self.tasks.iter().all(|task| task.ended)
    }
}

impl TaskReport {
    /// Returns the label of the task, with its process.
    pub fn label(&self) -> String {
        let (process, task) = (&self.process_name, self.task);
        // A process without a name.
        let of = if *process == self.process.to_string() {
            format!("process {process} task")
        } else {
            process.clone()
        };
        match &self.name {
            Some(name) => format!("{of} {task} ({name})"),
            None => format!("{of} {task}"),
        }
    }
}

fn tasks(plans: &[Plan], cpus: &[CpuTimeline], events: &[Event]) -> Vec<TaskReport> {
    let names: HashMap<_, _> = plans
        .iter()
        .rev()
        .flat_map(|plan| &plan.processes)
        .flat_map(|process| {
            let tasks = process.tasks.iter();
            tasks.map(|task| ((process.id, task.id), (process.label(), task.name.clone())))
        })
        .collect();
    let mut reports = Vec::new();
    let mut positions = HashMap::new();
    for cpu in cpus {
        let later = cpu.later.iter().flat_map(|plan| &plan.planned);
        for planned in cpu.planned.iter().chain(later) {
            let (Some(process), Some(task)) = (planned.process, planned.task) else {
                continue;
            };
            if positions.contains_key(&(process, task)) {
                continue;
            }
            positions.insert((process, task), reports.len());
            let name = names.get(&(process, task)).cloned();
            let (process_name, name) = name.unwrap_or_else(|| (process.to_string(), None));
            reports.push(TaskReport {
                process,
                process_name,
                task,
                name,
                cpu: cpu.cpu,
                slot: planned.slot,
                ended: false,
                planned_insns: planned.length_insns,
                retired_insns: 0,
                deviation_permille: 0,
                preemptions: 0,
                pushes: 0,
                lateness_insns: 0,
                peak_vm_bytes: 0,
                peak_rss_bytes: 0,
                started_ns: None,
                ended_ns: None,
            });
        }
        for segment in &cpu.actual {
            let Some(task) = segment.task else { continue };
            if let Some(&position) = positions.get(&(segment.process, task)) {
                let report: &mut TaskReport = &mut reports[position];
                report.started_ns.get_or_insert(segment.start_ns);
            }
        }
    }
    let mut preempted = vec![0; reports.len()];
    let ids: HashSet<_> = plans.iter().map(|plan| plan.plan_id).collect();
    for event in events.iter().filter(|event| ids.contains(&event.plan_id)) {
        let Some(&position) = positions.get(&(event.process, event.task)) else {
            continue;
        };
        let report = &mut reports[position];
        if report.ended {
            continue;
        }
        // Every event of a task tells how far it has come.
        report.retired_insns = report.retired_insns.max(event.retired_insns);
        if is_push(event) {
            report.pushes += 1;
        } else if event.kind == EventKind::Preempted as u16 {
            preempted[position] += 1;
        }
        // An event tells the count, in case some were lost; a plan that deals
        // with a failure sets it back.
        let preemptions = event.preemptions.max(preempted[position]);
        report.preemptions = report.preemptions.max(preemptions);
        report.peak_vm_bytes = report.peak_vm_bytes.max(event.peak_vm_bytes);
        report.peak_rss_bytes = report.peak_rss_bytes.max(event.peak_rss_bytes);
        if event.kind == EventKind::TaskEnded as u16 {
            report.ended = true;
            report.ended_ns = Some(event.time_ns);
            report.lateness_insns = event.lateness_insns;
            report.deviation_permille =
                deviation_permille(report.planned_insns, report.retired_insns);
        }
    }
    reports
}

fn process_report(process: &Process, tasks: &[TaskReport], exits: &[Exit]) -> ProcessReport {
    let tasks: Vec<_> = tasks.iter().filter(|task| task.process == process.id).collect();
    let last_ended = tasks.iter().rfind(|task| task.ended);
    ProcessReport {
        id: process.id,
        name: process.label(),
        cpu: tasks.first().map(|task| task.cpu),
        tasks: tasks.len(),
        tasks_ended: tasks.iter().filter(|task| task.ended).count(),
        planned_insns: tasks.iter().map(|task| task.planned_insns).sum(),
        retired_insns: tasks.iter().map(|task| task.retired_insns).sum(),
        preemptions: tasks.iter().map(|task| u64::from(task.preemptions)).sum(),
        pushes: tasks.iter().map(|task| u64::from(task.pushes)).sum(),
        lateness_insns: last_ended.map_or(0, |task| task.lateness_insns),
        peak_vm_bytes: tasks.iter().map(|task| task.peak_vm_bytes).max().unwrap_or(0),
        peak_rss_bytes: tasks.iter().map(|task| task.peak_rss_bytes).max().unwrap_or(0),
        exits: exits.iter().filter(|exit| exit.process == process.id).cloned().collect(),
    }
}
