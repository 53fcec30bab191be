// SPDX-License-Identifier: GPL-2.0
//! Task graphs and a machine, as co-scheduling sees them.

use std::fmt;

use pbs_cosched::{
    DeviceType, Edge, ExecutionTarget, Host, Platform, Process, Task, Variant, Workload,
};
use pbs_job::graph::{Graph, GraphEdge, GraphTask, Target};
use pbs_job::Machine;

/// Input of co-scheduling, with the meaning of its indices.
#[derive(Clone, Debug, Default)]
pub struct Question {
    /// The node.
    pub platform: Platform,
    /// All tasks of all graphs. Processes are the graphs, in their order.
    pub workload: Workload,
    /// The CPU, by its number in Linux, that each thread of the platform is.
    pub cpus: Vec<u32>,
    /// Host CPU of each accelerator type, whose process waits for it.
    pub hosts: Vec<u32>,
    /// Origin of each task of the workload in the graphs.
    pub tasks: Vec<TaskOrigin>,
}

/// Origin of a task of the workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskOrigin {
    /// Index of its graph.
    pub graph: usize,
    /// Index of its task there.
    pub task: usize,
    /// Index of each variant in the graph's task. Variants that fit nothing on the machine are left
    /// out.
    pub variants: Vec<usize>,
}

/// A task that cannot be co-scheduled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfit {
    /// The name of its job.
    pub job: String,
    /// Name of the task.
    pub task: String,
    /// Reason.
    pub why: UndecidableReason,
}

/// Reason for which a task cannot be co-scheduled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UndecidableReason {
    /// The machine has nothing that any of its variants runs on: each with why not.
    NothingFits(Vec<(String, String)>),
    /// The runtimes of these variants are unknown (§5.6.4).
    Unprofiled(Vec<String>),
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { job, task, why } = self;
        match why {
            UndecidableReason::NothingFits(variants) => {
                write!(
                    f,
                    "task {task} of {job}: the machine has nothing to run it on; it can run"
                )?;
                for (place, (variant, why)) in variants.iter().enumerate() {
                    let and = if place == 0 { "" } else { "," };
                    write!(f, "{and} as {variant}, but {why}")?;
                }
                Ok(())
            }
            UndecidableReason::Unprofiled(variants) => write!(
                f,
                "task {task} of {job}: its run time as {} is unknown; add runtime_ns or insns, or \
                 run it once to record it in the history",
                variants.join(", ")
            ),
        }
    }
}

impl Question {
    /// Builds the question of graphs on the first node of a machine. `known` returns the measured
    /// runtime of a variant, in nanoseconds, by the indices of graph, task and variant. It takes
    /// precedence over the runtime in the file.
    ///
    /// # Errors
    ///
    /// All tasks that can't be co-scheduled.
    pub fn new(
        graphs: &[Graph],
        machine: &Machine,
        mut known: impl FnMut(usize, usize, usize) -> Option<u64>,
    ) -> Result<Self, Vec<Unfit>> {
        let node = machine.nodes.first();
        let cores = node.map_or(0, |node| node.cores.len());
        let cpus: Vec<u32> = machine.cpus().take(cores).collect();
        let rates = node.into_iter().flat_map(|node| &node.cores);
        // Threads of a task go on together, as fast as the slowest core.
        let rate = rates.map(|core| core.rate_insns_per_s).min().unwrap_or(1);
        let mut question = Self {
            platform: Platform { threads: cores as u32, devices: devices(machine, &cpus) },
            hosts: hosts(machine, &cpus),
            cpus,
            ..Self::default()
        };
        let mut unfit = Vec::new();
        for (index, graph) in graphs.iter().enumerate() {
            question.workload.processes.push(Process {
                name: graph.name.clone(),
                owner: index as u64,
                arrival_ns: graph.start_ns,
                deadline_ns: graph.deadline_ns,
            });
            let first = question.workload.tasks.len();
            let threads = Threads { cores, is_program: !graph.program.is_empty() };
            for (place, task) in graph.tasks.iter().enumerate() {
                let mut known = |variant| known(index, place, variant);
                let (variants, of) = match variants(machine, threads, task, rate, &mut known) {
                    Ok(found) => found,
                    Err(why) => {
                        unfit.push(Unfit { job: graph.name.clone(), task: task.name.clone(), why });
                        (Vec::new(), Vec::new())
                    }
                };
                let after = task.after.iter().map(|edge| Edge {
                    task: first + edge.task,
                    transfer_ns: transfer_ns(machine, graph, task, edge),
                });
                question.workload.tasks.push(Task {
                    name: task.name.clone(),
                    process: index,
                    after: after.collect(),
                    variants,
                });
                question.tasks.push(TaskOrigin { graph: index, task: place, variants: of });
            }
        }
        if unfit.is_empty() {
            Ok(question)
        } else {
            Err(unfit)
        }
    }

    /// Question in which tasks on accelerators take all of their hosts' time, as plans reserve it.
    #[must_use]
    pub fn for_plans(mut self) -> Self {
        for host in self.platform.devices.iter_mut().filter_map(|device| device.host.as_mut()) {
            host.permille = 1000;
        }
        self
    }
}

/// Threads that a variant can have.
#[derive(Clone, Copy)]
struct Threads {
    cores: usize,
    /// Whether a program runs all tasks itself: each on one thread, which is a process of the plan.
    is_program: bool,
}

impl Threads {
    fn fit(self, count: u32) -> Result<(), String> {
        if self.is_program && count > 1 {
            Err("its program runs each task on one thread".into())
        } else if count as usize > self.cores {
            Err(format!("it has {} CPUs", self.cores))
        } else {
            Ok(())
        }
    }
}

fn devices(machine: &Machine, cpus: &[u32]) -> Vec<DeviceType> {
    let hosts = hosts(machine, cpus);
    let devices = machine.devices.iter().zip(hosts).map(|(device, host)| DeviceType {
        name: device.kind.clone(),
        count: device.count,
        has_link: device.link_bytes_per_s.is_some(),
        host: thread_of(cpus, host).map(|thread| Host { thread, permille: device.host_permille }),
    });
    devices.collect()
}

/// Returns the thread that is a CPU.
fn thread_of(cpus: &[u32], cpu: u32) -> Option<u32> {
    (0..).zip(cpus).find_map(|(thread, &other)| (other == cpu).then_some(thread))
}

/// The CPU that waits for a device, where the machine does not say it, is the first.
fn hosts(machine: &Machine, cpus: &[u32]) -> Vec<u32> {
    let first = cpus.first().copied().unwrap_or(0);
    let devices = machine.devices.iter();
    devices.map(|device| device.host_cpu.unwrap_or(first)).collect()
}

/// The variants of a task that fit, and their indices.
fn variants(
    machine: &Machine,
    threads: Threads,
    task: &GraphTask,
    rate_insns_per_s: u64,
    known: &mut dyn FnMut(usize) -> Option<u64>,
) -> Result<(Vec<Variant>, Vec<usize>), UndecidableReason> {
    let mut fitting = Vec::new();
    let mut of = Vec::new();
    let mut unprofiled = Vec::new();
    let mut without = Vec::new();
    for (index, variant) in task.variants.iter().enumerate() {
        let place = match &variant.target {
            Target::Threads(count) => match threads.fit(*count) {
                Ok(()) => ExecutionTarget::Threads(*count),
                Err(why) => {
                    without.push((variant.label(), why));
                    continue;
                }
            },
            Target::Device(kind) => match device(machine, kind, &variant.model) {
                Ok(device) => ExecutionTarget::Device(device),
                Err(why) => {
                    without.push((variant.label(), why));
                    continue;
                }
            },
        };
        let runtime_ns = known(index).or_else(|| variant.runtime_ns(rate_insns_per_s));
        match runtime_ns {
            Some(runtime_ns) => {
                fitting.push(Variant { model: variant.model.clone(), place, runtime_ns });
                of.push(index);
            }
            None => unprofiled.push(variant.label()),
        }
    }
    // Who is never measured never wins: so it is not left out, but told.
    if !unprofiled.is_empty() {
        return Err(UndecidableReason::Unprofiled(unprofiled));
    }
    if fitting.is_empty() {
        return Err(UndecidableReason::NothingFits(without));
    }
    Ok((fitting, of))
}

/// The device of that kind that understands the model, or why there is none.
fn device(machine: &Machine, kind: &str, model: &str) -> Result<usize, String> {
    let devices = &machine.devices;
    let Some(found) = devices.iter().position(|device| device.kind == kind) else {
        let kinds: Vec<_> = devices.iter().map(|device| &*device.kind).collect();
        return Err(if kinds.is_empty() {
            "it has no [[device]]".into()
        } else {
            format!("it has no device {kind}, only {}", kinds.join(", "))
        });
    };
    let models = &devices[found].models;
    if models.iter().any(|known| known == model) {
        Ok(found)
    } else {
        Err(format!("its {kind} understands {}", models.join(", ")))
    }
}

/// Returns the duration of an edge's data transfer if the memories differ: over the slowest link of
/// the devices on which the two tasks can run.
fn transfer_ns(machine: &Machine, graph: &Graph, task: &GraphTask, edge: &GraphEdge) -> u64 {
    if let Some(transfer_ns) = edge.transfer_ns {
        return transfer_ns;
    }
    let before = &graph.tasks[edge.task];
    let variants = task.variants.iter().chain(&before.variants);
    let kinds = variants.filter_map(|variant| match &variant.target {
        Target::Device(kind) => Some(kind),
        Target::Threads(_) => None,
    });
    let devices =
        kinds.filter_map(|kind| machine.devices.iter().find(|device| device.kind == *kind));
    let times = devices.map(|device| device.transfer_ns(edge.bytes));
    times.max().unwrap_or(0)
}
