// SPDX-License-Identifier: GPL-2.0
//! Pictures of the task nets of jobs, and of task graphs.

use pbs_job::graph::{Graph, Target, Variant};
use pbs_job::{Action, Job, Machine};
use pbs_report::{net_picture, Net, NetEdge, NetTask};
use pbs_text::{bytes, grouped, shown, span};

/// Draws the task net of a job, as SVG. With a machine, tasks have durations on its fastest core.
pub(crate) fn of_job(job: &Job, machine: Option<&Machine>) -> String {
    let processes = job.processes.iter().map(|process| {
        let memory = Some(process.memory_bytes).filter(|&bytes| bytes != 0).map(bytes);
        (process.label(), memory.unwrap_or_default())
    });
    let note = match machine {
        Some(_) => {
            "Boxes: number and name of a task, what it does, its instructions (instr.), their time \
             on the fastest core of the machine, and the memory that it uses."
        }
        None => {
            "Boxes: number and name of a task, what it does, its instructions (instr.), their time \
             if its process declares a rate, and the memory that it uses."
        }
    };
    net_picture(&Net {
        title: format!("Task net of job {}", job.name),
        note: note.into(),
        processes: processes.collect(),
        tasks: (0..job.tasks.len()).map(|task| task_of(job, task, machine)).collect(),
    })
}

/// Draws a task graph, as SVG.
pub(crate) fn of_graph(graph: &Graph) -> String {
    let tasks = graph.tasks.iter().map(|task| {
        let mut figures: Vec<_> = task.variants.iter().map(of_variant).collect();
        figures.extend(Some(task.memory_bytes).filter(|&bytes| bytes != 0).map(bytes));
        let after = task.after.iter().map(|edge| NetEdge {
            task: edge.task,
            message_bytes: Some(edge.bytes).filter(|&bytes| bytes != 0),
        });
        NetTask { process: 0, name: task.name.clone(), figures, after: after.collect() }
    });
    net_picture(&Net {
        title: format!("Task graph {}", graph.name),
        note: "Boxes: name of a task, the model of each of its variants with its time or its \
               instructions (instr.), and the memory of each thread."
            .into(),
        processes: Vec::new(),
        tasks: tasks.collect(),
    })
}

/// A variant in a few words, such as `omp × 4: 18.85 ms`.
fn of_variant(variant: &Variant) -> String {
    let threads = match variant.target {
        Target::Threads(threads) if threads != 1 => format!(" × {threads}"),
        _ => String::new(),
    };
    let length = match (variant.runtime_ns, variant.insns) {
        (Some(ns), _) => format!(": {}", span(ns)),
        (None, Some(insns)) => format!(": {} instr.", grouped(insns)),
        (None, None) => String::new(),
    };
    shown(&format!("{}{threads}{length}", variant.model)).into_owned()
}

fn task_of(job: &Job, index: usize, machine: Option<&Machine>) -> NetTask {
    let task = &job.tasks[index];
    let mut figures = Vec::new();
    figures.extend(action(task.action).map(String::from));
    if task.insns != 0 {
        figures.push(format!("{} instr.", grouped(task.insns)));
        figures.extend(duration_ns(job, index, machine).map(span));
    }
    if task.memory_bytes != 0 {
        figures.push(bytes(task.memory_bytes));
    }
    let edge = |from: usize| {
        let is_message = task.senders.contains(&from);
        NetEdge { task: from, message_bytes: job.tasks[from].message_bytes.filter(|_| is_message) }
    };
    NetTask {
        process: task.process,
        name: task.label(),
        figures,
        after: job.predecessors(index).map(edge).collect(),
    }
}

/// Action of a task, if that is not to calculate.
fn action(action: Action) -> Option<&'static str> {
    Some(match action {
        Action::Calculation => return None,
        Action::Start => "start",
        Action::End => "end",
        Action::Communication { .. } => "communication",
        Action::Fork { .. } => "fork",
        Action::ForkEnd => "fork end",
        Action::Join { .. } => "join",
    })
}

/// Time of a task at the rate of its process, or at that of the fastest core.
fn duration_ns(job: &Job, task: usize, machine: Option<&Machine>) -> Option<u64> {
    const NS_PER_S: u128 = 1_000_000_000;
    let task = &job.tasks[task];
    let own = job.processes[task.process].rate_insns_per_s;
    let Some(machine) = machine else {
        let ns = (u128::from(task.insns) * NS_PER_S).div_ceil(u128::from(own?.max(1)));
        return Some(u64::try_from(ns).unwrap_or(u64::MAX));
    };
    let fastest = machine.cores().map(|(_, core)| core.rate_insns_per_s).max()?;
    Some(machine.duration_ns(task.insns, own.unwrap_or(fastest)))
}
