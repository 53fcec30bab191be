// SPDX-License-Identifier: GPL-2.0
//! From the model to JSON, with the keys of files and all defaults.

use serde_json::{json, Map, Value};

use crate::{
    config_is_flag, config_word, Command, Config, Plan, Process, Slot, Start, Task, Threshold,
};

/// The configuration as `[config]` of a plan has it: names where a plan has names.
pub fn config_to_json(config: &Config) -> Value {
    let numbers = Config::NAMES.into_iter().zip(config.values());
    let entries = numbers.map(|(name, number)| {
        let value = match name {
            "thresholds" => {
                let on = Threshold::ALL.into_iter().filter(|&it| config.has(it));
                on.map(Threshold::name).collect()
            }
            _ if config_is_flag(name) => Value::Bool(number != 0),
            _ => config_word(name, number).map_or_else(|| number.into(), Value::from),
        };
        (name.to_owned(), value)
    });
    Value::Object(entries.collect())
}

/// The plan with the keys of its file: quantities are numbers in the unit of their key, keys that
/// were left out have their default, and processes and tasks are named by their numbers. A key
/// without a default, such as `[config]`, is only there if the plan has it.
pub fn to_json(plan: &Plan) -> Value {
    let cpus = plan.cpus.iter().map(|cpu| {
        let slots = cpu.slots.iter().map(|slot| match *slot {
            Slot::Process { process } => plan.processes[process].id.into(),
            Slot::Idle { length_insns, real_insns } => {
                let mut slot = json!({ "idle_insns": length_insns });
                put(&mut slot, "real_insns", real_insns);
                slot
            }
        });
        let slots: Vec<Value> = slots.collect();
        json!({ "cpu": cpu.cpu, "rate_insns_per_ms": cpu.rate_insns_per_ms, "slots": slots })
    });
    let mut out = json!({
        "plan_id": plan.plan_id,
        "dealt_seq": plan.dealt_seq,
        "lease_ns": plan.lease_ns,
        "memory_bytes": plan.memory_bytes,
        "process": plan.processes.iter().map(process).collect::<Vec<_>>(),
        "cpu": cpus.collect::<Vec<_>>(),
    });
    put(&mut out, "config", plan.config.as_ref().map(config_to_json));
    out
}

fn process(process: &Process) -> Value {
    let mut out = json!({
        "id": process.id,
        "buffer_insns": process.buffer_insns,
        "memory_bytes": process.memory_bytes,
        "rate_insns_per_ms": process.rate_insns_per_ms,
        "tasks": process.tasks.iter().map(task).collect::<Vec<_>>(),
    });
    put(&mut out, "name", process.name.as_deref());
    put(&mut out, "cpu", process.cpu);
    put(&mut out, "deadline", process.deadline_ns);
    put(&mut out, "real_memory_bytes", process.real_memory_bytes);
    put_start(&mut out, &process.start);
    out
}

fn task(task: &Task) -> Value {
    let after = task.after.iter().map(|after| {
        let task = format!("{}/{}", after.process, after.task);
        match after.arrival_ns {
            Some(arrival_ns) => json!({ "task": task, "arrival": arrival_ns }),
            None => json!(task),
        }
    });
    let mut out = json!({
        "id": task.id,
        "planned_insns": task.planned_insns,
        "after": after.collect::<Vec<_>>(),
    });
    put(&mut out, "name", task.name.as_deref());
    put(&mut out, "real_insns", task.real_insns);
    put(&mut out, "wait_insns", task.wait_insns);
    out
}

/// Adds the start of a process to its object, as the keys of [`Start::KEYS`].
pub fn put_start(process: &mut Value, start: &Start) {
    match start {
        Start::Unsaid => {}
        Start::Command(it) => put_command(process, it),
        Start::Itself(it) => {
            put(process, "attaches", Some("itself"));
            if let Some(it) = it {
                put_command(process, it);
            }
        }
        Start::Commands(all) => {
            let all = all.iter().map(|it| {
                let mut object = Value::Object(Map::new());
                put_command(&mut object, it);
                object
            });
            put(process, "commands", Some(all.collect::<Vec<_>>()));
        }
    }
}

fn put_command(object: &mut Value, command: &Command) {
    put(object, "command", Some(command.argv.clone()));
    let files =
        [("stdin", &command.stdin), ("stdout", &command.stdout), ("stderr", &command.stderr)];
    for (key, file) in files {
        put(object, key, file.as_ref().map(|file| file.to_string_lossy()));
    }
}

/// Adds a key to an object if it has a value.
fn put(object: &mut Value, key: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        object[key] = value.into();
    }
}
