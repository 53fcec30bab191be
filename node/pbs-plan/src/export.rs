// SPDX-License-Identifier: GPL-2.0
//! From the model to TOML.

use std::path::Path;

use pbs_text::{append, append_line, quoted, underscored, write_list};

use crate::names::Names;
use crate::{
    config_is_flag, config_word, After, Command, Config, Plan, Process, Slot, Start, Task,
    Threshold,
};

/// The plan as `from_toml` reads it.
pub fn to_toml(plan: &Plan) -> String {
    let mut out = format!("plan_id = {}\n", plan.plan_id);
    if plan.dealt_seq != 0 {
        append_line!(out, "dealt_seq = {}", plan.dealt_seq);
    }
    if plan.lease_ns != 0 {
        append_line!(out, "lease_ns = {}", plan.lease_ns);
    }
    if plan.memory_bytes != 0 {
        append_line!(out, "memory_bytes = {}", underscored(plan.memory_bytes));
    }
    if let Some(config) = &plan.config {
        write_config(&mut out, config);
    }
    let names = Names::new(&plan.processes);
    for process in &plan.processes {
        write_process(&mut out, process, &names);
    }
    for cpu in &plan.cpus {
        append!(out, "\n[[cpu]]\ncpu = {}\n", cpu.cpu);
        write_rate(&mut out, cpu.rate_insns_per_ms);
        let slots = cpu.slots.iter().map(|slot| match *slot {
            Slot::Process { process } => {
                let process = &plan.processes[process];
                match &process.name {
                    Some(name) => quoted(name),
                    None => process.id.to_string(),
                }
            }
            Slot::Idle { length_insns, real_insns: None } => {
                format!("\"idle {}\"", underscored(length_insns))
            }
            Slot::Idle { length_insns, real_insns: Some(real_insns) } => format!(
                "{{ idle_insns = {}, real_insns = {} }}",
                underscored(length_insns),
                underscored(real_insns)
            ),
        });
        write_list(&mut out, "slots", slots, false);
    }
    out
}

fn write_config(out: &mut String, config: &Config) {
    out.push_str("\n[config]\n");
    for (name, value) in Config::NAMES.into_iter().zip(config.values()) {
        match name {
            "thresholds" => {
                let on = Threshold::ALL.into_iter();
                let names = on.filter(|&threshold| config.has(threshold));
                write_list(out, name, names.map(|on| quoted(on.name())), false);
            }
            _ if config_is_flag(name) => {
                append_line!(out, "{name} = {}", value != 0);
            }
            _ => {
                let value = match config_word(name, value) {
                    Some(word) => quoted(word),
                    None => underscored(value),
                };
                append_line!(out, "{name} = {value}");
            }
        }
    }
}

fn write_process(out: &mut String, process: &Process, names: &Names<'_>) {
    append!(out, "\n[[process]]\nid = {}\n", process.id);
    if let Some(name) = &process.name {
        append_line!(out, "name = {}", quoted(name));
    }
    if let Some(cpu) = process.cpu {
        append_line!(out, "cpu = {cpu}");
    }
    if process.buffer_insns != 0 {
        append_line!(out, "buffer_insns = {}", underscored(process.buffer_insns));
    }
    if process.memory_bytes != 0 {
        append_line!(out, "memory_bytes = {}", underscored(process.memory_bytes));
    }
    write_rate(out, process.rate_insns_per_ms);
    if let Some(deadline_ns) = process.deadline_ns {
        append_line!(out, "deadline = {}", quoted(&time(deadline_ns)));
    }
    if let Some(bytes) = process.real_memory_bytes {
        append_line!(out, "real_memory_bytes = {}", underscored(bytes));
    }
    write_start(out, &process.start);
    let consecutive = (0..).zip(&process.tasks).all(|(id, task)| task.id == id);
    let is_number = |task: &Task| {
        task.name.is_none()
            && task.real_insns.or(task.wait_insns).is_none()
            && task.after.is_empty()
    };
    let plain = consecutive && process.tasks.iter().all(is_number);
    if plain {
        let lengths = process.tasks.iter().map(|task| underscored(task.planned_insns));
        write_list(out, "tasks", lengths, false);
    } else {
        let tasks = process.tasks.iter().map(|task| task_table(task, consecutive, names));
        write_list(out, "tasks", tasks, true);
    }
}

fn write_rate(out: &mut String, insns_per_ms: u64) {
    if insns_per_ms != 0 {
        append_line!(out, "rate_insns_per_ms = {}", underscored(insns_per_ms));
    }
}

/// A time in the greatest unit in which it is a whole number, up to milliseconds.
fn time(ns: u64) -> String {
    let units = [("ms", 1_000_000), ("us", 1_000), ("ns", 1)];
    let whole = units.into_iter().find(|(_, unit_ns)| ns.is_multiple_of(*unit_ns));
    let (unit, unit_ns) = whole.unwrap_or(("ns", 1));
    format!("{} {unit}", underscored(ns / unit_ns))
}

/// The task that another one waits for, with the planned arrival of its message.
fn awaited(after: &After, names: &Names<'_>) -> String {
    let task = quoted(&names.text(after));
    match after.arrival_ns {
        Some(arrival_ns) => format!("{{ task = {task}, arrival = {} }}", quoted(&time(arrival_ns))),
        None => task,
    }
}

fn task_table(task: &Task, consecutive: bool, names: &Names<'_>) -> String {
    let mut table = String::from("{ ");
    if !consecutive {
        append!(table, "id = {}, ", task.id);
    }
    if let Some(name) = &task.name {
        append!(table, "name = {}, ", quoted(name));
    }
    append!(table, "planned_insns = {}", underscored(task.planned_insns));
    if let Some(real_insns) = task.real_insns {
        append!(table, ", real_insns = {}", underscored(real_insns));
    }
    if let Some(wait_insns) = task.wait_insns {
        append!(table, ", wait_insns = {}", underscored(wait_insns));
    }
    if !task.after.is_empty() {
        let after = task.after.iter().map(|after| awaited(after, names));
        let after: Vec<_> = after.collect();
        append!(table, ", after = [{}]", after.join(", "));
    }
    table + " }"
}

/// Writes the start of a process, as the keys of [`Start::KEYS`].
pub fn write_start(out: &mut String, start: &Start) {
    match start {
        Start::Unsaid => {}
        Start::Command(command) => write_command(out, command),
        Start::Itself(command) => {
            out.push_str("attaches = \"itself\"\n");
            if let Some(command) = command {
                write_command(out, command);
            }
        }
        Start::Commands(commands) => {
            let commands = commands.iter().map(|command| {
                let redirections = redirections(command);
                if redirections.is_empty() {
                    return argv(command);
                }
                let mut table = format!("{{ command = {}", argv(command));
                for (key, file) in redirections {
                    append!(table, ", {key} = {}", path(file));
                }
                table + " }"
            });
            write_list(out, "commands", commands, true);
        }
    }
}

fn write_command(out: &mut String, command: &Command) {
    append_line!(out, "command = {}", argv(command));
    for (key, file) in redirections(command) {
        append_line!(out, "{key} = {}", path(file));
    }
}

fn redirections(command: &Command) -> Vec<(&'static str, &Path)> {
    [("stdin", &command.stdin), ("stdout", &command.stdout), ("stderr", &command.stderr)]
        .into_iter()
        .filter_map(|(key, file)| Some((key, file.as_deref()?)))
        .collect()
}

fn argv(command: &Command) -> String {
    let words: Vec<_> = command.argv.iter().map(|word| quoted(word)).collect();
    format!("[{}]", words.join(", "))
}

fn path(path: &Path) -> String {
    quoted(&path.to_string_lossy())
}
