// SPDX-License-Identifier: GPL-2.0
//! Jobs to TOML.

use pbs_plan::write_start;
use pbs_text::{append, append_line, quoted, underscored, write_list};

use crate::amounts::write_amounts;
use crate::checkpoint::write_checkpoint;
use crate::{Action, Job, Kind, Process, Task, Worth};

/// The job as [`job_from_toml`](crate::job_from_toml) reads it. What a file
/// may leave out is written.
pub fn job_to_toml(job: &Job) -> String {
    let mut out = format!("name = {}\n", quoted(&job.name));
    let mut line = |key: &str, value: u64| {
        append_line!(out, "{key} = {}", underscored(value));
    };
    if job.start_ns != 0 {
        line("start_ns", job.start_ns);
    }
    line("deadline_ns", job.deadline_ns);
    if job.priority != 0 {
        line("priority", job.priority.into());
    }
    let unsaid = Worth::default();
    if job.worth.value != unsaid.value {
        line("value", job.worth.value);
    }
    if job.worth.penalty != unsaid.penalty {
        line("penalty", job.worth.penalty);
    }
    write_checkpoint(&mut out, job.checkpoint.as_ref());
    if job.best_effort {
        out.push_str("best_effort = true\n");
    }
    let mut line = |key: &str, value: u64| {
        append_line!(out, "{key} = {}", underscored(value));
    };
    if let Some(runtime_ns) = job.runtime_ns {
        line("runtime_ns", runtime_ns);
    }
    if let Some(memory_bytes) = job.memory_bytes {
        line("memory_bytes", memory_bytes);
    }
    if !job.cpus.is_empty() {
        write_list(&mut out, "cpus", job.cpus.iter().map(u32::to_string), false);
    }
    write_amounts(&mut out, &job.resources);
    for process in &job.processes {
        write_process(&mut out, job, process);
    }
    out
}

fn write_process(out: &mut String, job: &Job, process: &Process) {
    append!(out, "\n[[process]]\nid = {}\n", process.id);
    if let Some(name) = &process.name {
        append_line!(out, "name = {}", quoted(name));
    }
    let memory_bytes = underscored(process.memory_bytes);
    append_line!(out, "memory_bytes = {memory_bytes}");
    if let Some(runtime_ns) = process.runtime_ns {
        append_line!(out, "runtime_ns = {}", underscored(runtime_ns));
    }
    if let Some(rate) = process.rate_insns_per_s {
        append_line!(out, "rate_insns_per_s = {}", underscored(rate));
    }
    if !process.cpus.is_empty() {
        write_list(out, "cpus", process.cpus.iter().map(u32::to_string), false);
    }
    write_amounts(out, &process.resources);
    write_start(out, &process.start);
    let tasks = process.tasks.iter().map(|&task| task_table(job, &job.tasks[task]));
    write_list(out, "tasks", tasks, true);
}

fn task_table(job: &Job, task: &Task) -> String {
    let mut table = format!("{{ id = {}", task.id);
    if let Some(name) = &task.name {
        append!(table, ", name = {}", quoted(name));
    }
    let kind = Kind::from(task.action);
    if kind != Kind::default() {
        append!(table, ", action = {}", quoted(kind.name()));
    }
    if task.insns != 0 {
        append!(table, ", insns = {}", underscored(task.insns));
    }
    if task.memory_bytes != job.processes[task.process].memory_bytes {
        let memory_bytes = underscored(task.memory_bytes);
        append!(table, ", memory_bytes = {memory_bytes}");
    }
    match task.action {
        Action::Fork { child } | Action::Join { child: Some(child) } => {
            append!(table, ", child = {}", job.processes[child].id);
        }
        Action::Communication { partner: Some(partner) } => {
            append!(table, ", to = {}", job.tasks[partner].id);
            if let Some(bytes) = task.message_bytes {
                append!(table, ", bytes = {}", underscored(bytes));
            }
        }
        _ => {}
    }
    if !task.after.is_empty() {
        let ids = task.after.iter().map(|&before| job.tasks[before].id.to_string());
        append!(table, ", after = [{}]", ids.collect::<Vec<_>>().join(", "));
    }
    table + " }"
}
