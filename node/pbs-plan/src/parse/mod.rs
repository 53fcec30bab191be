// SPDX-License-Identifier: GPL-2.0
//! From TOML to the model. What is no plan at all is refused here, with the
//! line; whether the plan makes sense is for `check`.

mod config;
mod cpu;
mod process;
mod start;

use std::collections::HashMap;

use pbs_text::reader::{read, Reader};
use pbs_text::Problem;
use toml::de::DeTable;

use crate::names::Names;
use crate::{After, Config, Plan, Process};
use config::{numbers, read_config};
use cpu::read_cpu;
use process::{read_process, Written};

pub use start::read_start;

pub(crate) fn parse(text: &str) -> Result<Plan, Vec<Problem>> {
    read(text, plan)
}

/// `base` with the numbers of `text`, which is what stands below [config].
pub(crate) fn config(text: &str, base: &Config) -> Result<Config, Vec<Problem>> {
    read(text, |reader, document| {
        let table = reader.open(document, "the configuration", None, &Config::NAMES);
        numbers(reader, table, base, &mut [None; Config::COUNT])
    })
}

const TOP_KEYS: &[&str] =
    &["plan_id", "dealt_seq", "lease_ns", "memory_bytes", "config", "process", "cpu"];

fn plan(reader: &mut Reader, document: &DeTable<'_>) -> Plan {
    let mut top = reader.open(document, "the plan", None, TOP_KEYS);
    let plan_id = match top.entries.remove("plan_id") {
        Some((line, value)) => reader.number(line, "plan_id", value).unwrap_or(0),
        None => 0,
    };
    let mut plan = Plan { plan_id, ..Plan::default() };
    if let Some((line, value)) = top.entries.remove("dealt_seq") {
        plan.dealt_seq = reader.number(line, "dealt_seq", value).unwrap_or(0);
        plan.dealt_seq_line = line;
    }
    if let Some((line, value)) = top.entries.remove("lease_ns") {
        plan.lease_ns = reader.number(line, "lease_ns", value).unwrap_or(0);
        plan.lease_ns_line = line;
    }
    if let Some((line, value)) = top.entries.remove("memory_bytes") {
        plan.memory_bytes = reader.number(line, "memory_bytes", value).unwrap_or(0);
    }
    if let Some((line, value)) = top.entries.remove("config") {
        read_config(reader, line, value, &mut plan);
    }
    let mut waits = Vec::new();
    for (line, value) in reader.tables(&mut top, "process") {
        let process = read_process(reader, line, value, plan.processes.len(), &mut waits);
        plan.processes.extend(process);
    }
    // The rest of a process that could not be read would be missed.
    if reader.is_content() {
        order(reader, &mut plan.processes, waits);
    }
    // A slot may name its process by number or by name.
    let mut indices = HashMap::new();
    for (index, process) in plan.processes.iter().enumerate() {
        indices.insert(process.id.to_string(), index);
        if let Some(name) = &process.name {
            indices.insert(name.clone(), index);
        }
    }
    for (line, value) in reader.tables(&mut top, "cpu") {
        let cpu = read_cpu(reader, line, value, &indices);
        plan.cpus.extend(cpu);
    }
    // It may be there to take away what other plans have on its CPUs.
    let clears = !plan.cpus.is_empty() && plan.cpus.iter().all(|cpu| cpu.slots.is_empty());
    if reader.is_content() && plan.processes.is_empty() && !clears {
        reader
            .problem(None, "the plan has no process; add a [[process]] with id, tasks and command");
    }
    if reader.is_content() && plan.cpus.is_empty() {
        reader.problem(
            None,
            "the plan has no CPU; add a [[cpu]] with the order of the slots: slots = [1, ...]",
        );
    }
    plan
}

/// Resolves the dependencies between tasks, once all processes are known.
fn order(reader: &mut Reader, processes: &mut [Process], waits: Vec<Written>) {
    let names = Names::new(processes);
    let found = waits.into_iter().map(|written| {
        let after = names.find(&written.after, written.line);
        (written, after)
    });
    for (written, after) in found.collect::<Vec<_>>() {
        let (process, task) = written.waits;
        match after {
            Ok(after) => {
                let after = After { arrival_ns: written.arrival_ns, ..after };
                processes[process].tasks[task].after.push(after);
            }
            Err(message) => reader.problem(written.line, message),
        }
    }
}
