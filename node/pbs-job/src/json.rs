// SPDX-License-Identifier: GPL-2.0
//! Jobs, task graphs and machines to JSON, with the keys of files and all defaults.
//!
//! Quantities are numbers in the unit of their key. A key without a default is only there if it
//! was declared.

use pbs_plan::put_start;
use serde_json::{json, Value};

use crate::checkpoint::checkpoint_to_json;
use crate::graph::{Graph, GraphTask, Target, Variant};
use crate::{Action, Amount, Job, Kind, Machine, Process, Task};

/// The job with the keys of its file. The tasks that a file may leave out are there.
pub fn job_to_json(job: &Job) -> Value {
    let mut out = json!({
        "name": job.name,
        "start_ns": job.start_ns,
        "deadline_ns": job.deadline_ns,
        "priority": job.priority,
        "value": job.worth.value,
        "penalty": job.worth.penalty,
        "best_effort": job.best_effort,
        "process": job.processes.iter().map(|it| process(job, it)).collect::<Vec<_>>(),
    });
    put(&mut out, "checkpoint", checkpoint_to_json(job.checkpoint.as_ref()));
    put(&mut out, "runtime_ns", job.runtime_ns);
    put(&mut out, "memory_bytes", job.memory_bytes);
    put(&mut out, "cpus", some(&job.cpus));
    put(&mut out, "resources", amounts(&job.resources));
    out
}

fn process(job: &Job, process: &Process) -> Value {
    let tasks = process.tasks.iter().map(|&at| task(job, &job.tasks[at]));
    let mut out = json!({
        "id": process.id,
        "memory_bytes": process.memory_bytes,
        "tasks": tasks.collect::<Vec<_>>(),
    });
    put(&mut out, "name", process.name.clone());
    put(&mut out, "runtime_ns", process.runtime_ns);
    put(&mut out, "rate_insns_per_s", process.rate_insns_per_s);
    put(&mut out, "cpus", some(&process.cpus));
    put(&mut out, "resources", amounts(&process.resources));
    put_start(&mut out, &process.start);
    out
}

fn task(job: &Job, task: &Task) -> Value {
    let after: Vec<u32> = task.after.iter().map(|&at| job.tasks[at].id).collect();
    let mut out = json!({
        "id": task.id,
        "action": Kind::from(task.action).name(),
        "insns": task.insns,
        "memory_bytes": task.memory_bytes,
        "after": after,
    });
    put(&mut out, "name", task.name.clone());
    match task.action {
        Action::Fork { child } | Action::Join { child: Some(child) } => {
            put(&mut out, "child", Some(job.processes[child].id));
        }
        Action::Communication { partner: Some(partner) } => {
            put(&mut out, "to", Some(job.tasks[partner].id));
            put(&mut out, "bytes", task.message_bytes);
        }
        _ => {}
    }
    out
}

/// The task graph with the keys of its file. Each repeated task is there.
pub fn graph_to_json(graph: &Graph) -> Value {
    let tasks = graph.tasks.iter().map(|it| graph_task(graph, it));
    let mut out = json!({
        "name": graph.name,
        "start_ns": graph.start_ns,
        "priority": graph.priority,
        "task": tasks.collect::<Vec<_>>(),
    });
    put(&mut out, "deadline_ns", graph.deadline_ns);
    put(&mut out, "program", (!graph.program.is_empty()).then(|| graph.program.clone()));
    out
}

fn graph_task(graph: &Graph, task: &GraphTask) -> Value {
    let after = task.after.iter().map(|edge| {
        let mut out = json!({ "task": graph.tasks[edge.task].name, "bytes": edge.bytes });
        put(&mut out, "transfer_ns", edge.transfer_ns);
        out
    });
    json!({
        "name": task.name,
        "after": after.collect::<Vec<_>>(),
        "memory_bytes": task.memory_bytes,
        "variant": task.variants.iter().map(variant).collect::<Vec<_>>(),
    })
}

fn variant(variant: &Variant) -> Value {
    let mut out = json!({ "model": variant.model, "command": variant.command });
    match &variant.target {
        Target::Threads(threads) => put(&mut out, "threads", Some(*threads)),
        Target::Device(kind) => put(&mut out, "device", Some(kind.clone())),
    }
    put(&mut out, "runtime_ns", variant.runtime_ns);
    put(&mut out, "insns", variant.insns);
    out
}

/// The machine with the keys of its file. Each core has its rate and its number.
pub fn machine_to_json(machine: &Machine) -> Value {
    let nodes = machine.nodes.iter().map(|node| {
        let cores = node.cores.iter().zip(0u32..).map(|(core, place)| {
            json!({
                "name": core.name,
                "cpu": core.cpu.unwrap_or(place),
                "rate_insns_per_s": core.rate_insns_per_s,
            })
        });
        let cores: Vec<_> = cores.collect();
        json!({ "name": node.name, "memory_bytes": node.memory_bytes, "cores": cores })
    });
    let links = machine.links.iter().map(|link| {
        json!({
            "nodes": link.nodes.map(|node| &machine.nodes[node].name),
            "latency_ns": link.latency_ns,
            "bandwidth_bytes_per_s": link.bandwidth_bytes_per_s,
        })
    });
    let devices = machine.devices.iter().map(|device| {
        let mut out =
            json!({ "kind": device.kind, "models": device.models, "count": device.count });
        put(&mut out, "host_cpu", device.host_cpu);
        put(&mut out, "host_permille", Some(device.host_permille).filter(|&share| share > 0));
        put(&mut out, "link_bytes_per_s", device.link_bytes_per_s);
        out
    });
    let resources = machine.resources.iter().map(|resource| {
        let names = resource.nodes.iter().map(|&node| &machine.nodes[node].name);
        let names: Vec<_> = names.collect();
        let mut out = json!({ "name": resource.name, "count": resource.count });
        put(&mut out, "nodes", Some(json!(names)).filter(|_| !names.is_empty()));
        out
    });
    let sharing = machine.sharing.iter();
    let sharing = sharing.map(|it| json!({ "level": it.level, "cpus": it.cpus }));
    let mut out = json!({
        "tick_ns": machine.tick_ns,
        "node": nodes.collect::<Vec<_>>(),
        "link": links.collect::<Vec<_>>(),
        "resource": resources.collect::<Vec<_>>(),
        "device": devices.collect::<Vec<_>>(),
        "sharing": sharing.collect::<Vec<_>>(),
    });
    put(&mut out, "name", machine.name.clone());
    put(&mut out, "demand_permille", machine.demand_permille);
    out
}

/// A list of CPUs; none stands for all.
fn some(cpus: &[u32]) -> Option<Vec<u32>> {
    (!cpus.is_empty()).then(|| cpus.to_vec())
}

/// Amounts of resources as an object by their names; `None`: there are none.
fn amounts(amounts: &[Amount]) -> Option<Value> {
    let of_names = amounts.iter().map(|amount| (amount.resource.clone(), amount.count.into()));
    (!amounts.is_empty()).then(|| Value::Object(of_names.collect()))
}

/// Adds a key to an object if it has a value.
fn put(object: &mut Value, key: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        object[key] = value.into();
    }
}
