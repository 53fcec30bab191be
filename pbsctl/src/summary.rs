// SPDX-License-Identifier: GPL-2.0
//! Plans, jobs and machines in a few numbers.

use std::collections::BTreeSet;

use pbs_job::graph::{Graph, Target};
use pbs_job::{Job, Machine, Worth};
use pbs_plan::{Plan, Slot};
use pbs_text::{bytes, grouped, span};
use serde::Serialize;

use crate::output::counted;

/// A plan in a few numbers.
#[derive(Serialize)]
pub(crate) struct PlanSummary {
    plan_id: u64,
    cpus: Vec<CpuSummary>,
}

#[derive(Serialize)]
struct CpuSummary {
    cpu: u32,
    processes: usize,
    slots: usize,
    idle_slots: usize,
    planned_insns: u64,
    idle_insns: u64,
}

impl PlanSummary {
    pub(crate) fn new(plan: &Plan) -> Self {
        let cpus = plan.cpus.iter().map(|cpu| {
            let placed: Vec<_> = plan.place(cpu).collect();
            let idle = || placed.iter().filter(|slot| slot.task.is_none());
            CpuSummary {
                cpu: cpu.cpu,
                processes: plan.processes_on(cpu).len(),
                slots: cpu.slots.len(),
                idle_slots: cpu
                    .slots
                    .iter()
                    .filter(|slot| matches!(slot, Slot::Idle { .. }))
                    .count(),
                planned_insns: placed.iter().map(|slot| slot.length_insns).sum(),
                idle_insns: idle().map(|slot| slot.length_insns).sum(),
            }
        });
        Self { plan_id: plan.plan_id, cpus: cpus.collect() }
    }

    pub(crate) fn text(&self) -> String {
        let lines = self.cpus.iter().map(|cpu| {
            format!(
                "  CPU {}: {}, {} of which {} idle, {} instructions of which {} idle\n",
                cpu.cpu,
                counted(cpu.processes as u64, "process", "processes"),
                counted(cpu.slots as u64, "slot", "slots"),
                grouped(cpu.idle_slots as u64),
                grouped(cpu.planned_insns),
                grouped(cpu.idle_insns)
            )
        });
        lines.collect()
    }
}

/// A job in a few numbers.
#[derive(Serialize)]
pub(crate) struct JobSummary {
    name: String,
    processes: usize,
    tasks: usize,
    /// Number of tasks that have instructions: the others are not in plans.
    working_tasks: usize,
    insns: u64,
    /// Memory of all processes together.
    memory_bytes: u64,
    start_ns: u64,
    deadline_ns: u64,
    #[serde(skip)]
    worth: Worth,
}

impl JobSummary {
    pub(crate) fn new(job: &Job) -> Self {
        let sum = |figures: &mut dyn Iterator<Item = u64>| figures.fold(0, u64::saturating_add);
        Self {
            name: job.name.clone(),
            processes: job.processes.len(),
            tasks: job.tasks.len(),
            working_tasks: job.tasks.iter().filter(|task| task.insns > 0).count(),
            insns: sum(&mut job.tasks.iter().map(|task| task.insns)),
            memory_bytes: sum(&mut job.processes.iter().map(|process| process.memory_bytes)),
            start_ns: job.start_ns,
            deadline_ns: job.deadline_ns,
            worth: job.worth,
        }
    }

    pub(crate) fn text(&self) -> String {
        let Worth { value, penalty } = self.worth;
        let worth = if self.worth == Worth::default() {
            String::new()
        } else {
            format!(", value {}, penalty {}", grouped(value), grouped(penalty))
        };
        format!(
            "  job {}: {}, {}{}, {} instructions, {} of memory, deadline {}{worth}\n",
            self.name,
            counted(self.processes as u64, "process", "processes"),
            counted(self.tasks as u64, "task", "tasks"),
            match self.working_tasks {
                all if all == self.tasks => String::new(),
                some => format!(" of which {} with instructions", grouped(some as u64)),
            },
            grouped(self.insns),
            bytes(self.memory_bytes),
            span(self.deadline_ns)
        )
    }
}

/// A task graph in a few numbers.
#[derive(Serialize)]
pub(crate) struct GraphSummary {
    name: String,
    tasks: usize,
    /// Number of tasks that wait for no other.
    first_tasks: usize,
    variants: usize,
    /// The kinds of accelerators that some of them run on.
    devices: Vec<String>,
    /// Number of variants whose run times must come from the history.
    unprofiled: usize,
    start_ns: u64,
    deadline_ns: Option<u64>,
}

impl GraphSummary {
    pub(crate) fn new(graph: &Graph) -> Self {
        let variants = || graph.tasks.iter().flat_map(|task| &task.variants);
        let devices = variants().filter_map(|variant| match &variant.target {
            Target::Device(kind) => Some(kind.clone()),
            Target::Threads(_) => None,
        });
        let devices: BTreeSet<String> = devices.collect();
        let first = graph.tasks.iter().filter(|task| task.after.is_empty());
        Self {
            name: graph.name.clone(),
            tasks: graph.tasks.len(),
            first_tasks: first.count(),
            variants: variants().count(),
            devices: devices.into_iter().collect(),
            unprofiled: variants()
                .filter(|variant| variant.runtime_ns.is_none() && variant.insns.is_none())
                .count(),
            start_ns: graph.start_ns,
            deadline_ns: graph.deadline_ns,
        }
    }

    pub(crate) fn text(&self) -> String {
        let devices = match &self.devices[..] {
            [] => String::new(),
            devices => format!(", some for {}", devices.join(", ")),
        };
        let unprofiled = match self.unprofiled {
            0 => String::new(),
            some => format!(", {} without a run time", grouped(some as u64)),
        };
        let deadline = match self.deadline_ns {
            Some(ns) => format!("deadline {}", span(ns)),
            None => "no deadline".into(),
        };
        format!(
            "  job {}: {} of which {} at once, {}{devices}{unprofiled}, arrives after {}, \
             {deadline}\n",
            self.name,
            counted(self.tasks as u64, "task", "tasks"),
            grouped(self.first_tasks as u64),
            counted(self.variants as u64, "variant", "variants"),
            span(self.start_ns),
        )
    }
}

/// A machine in a few numbers.
#[derive(Serialize)]
pub(crate) struct MachineSummary {
    name: Option<String>,
    nodes: Vec<NodeSummary>,
}

#[derive(Serialize)]
struct NodeSummary {
    node: String,
    cores: usize,
    memory_bytes: u64,
    /// Rate of all of its cores together.
    rate_insns_per_s: u64,
}

impl MachineSummary {
    pub(crate) fn new(machine: &Machine) -> Self {
        let nodes = machine.nodes.iter().map(|node| NodeSummary {
            node: node.name.clone(),
            cores: node.cores.len(),
            memory_bytes: node.memory_bytes,
            rate_insns_per_s: node
                .cores
                .iter()
                .fold(0, |sum, core| sum.saturating_add(core.rate_insns_per_s)),
        });
        Self { name: machine.name.clone(), nodes: nodes.collect() }
    }

    pub(crate) fn text(&self) -> String {
        let lines = self.nodes.iter().map(|node| {
            format!(
                "  node {}: {}, {} of memory, {} instructions a second together\n",
                node.node,
                counted(node.cores as u64, "core", "cores"),
                bytes(node.memory_bytes),
                grouped(node.rate_insns_per_s)
            )
        });
        lines.collect()
    }
}
