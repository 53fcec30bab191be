// SPDX-License-Identifier: GPL-2.0
//! From TOML to the model. What is no plan at all is refused here, with the
//! line; whether the plan makes sense is for `check`.

mod config;
mod cpu;
mod process;
mod start;

use std::collections::HashMap;

use toml::de::DeTable;

use crate::names::Names;
use crate::text::{read, Reader};
use crate::{Config, Plan, Problem, Process};
use process::Written;

pub(crate) fn parse(text: &str) -> Result<Plan, Vec<Problem>> {
    read(text, Reader::plan)
}

/// `base` with the numbers of `text`, which is what stands below [config].
pub(crate) fn config(text: &str, base: &Config) -> Result<Config, Vec<Problem>> {
    read(text, |reader, document| {
        let table = reader.open(document, "the configuration", None, &Config::NAMES);
        reader.numbers(table, base, &mut [None; Config::COUNT])
    })
}

const TOP_KEYS: &[&str] = &[
    "plan_id",
    "dealt_seq",
    "lease_ns",
    "memory_bytes",
    "config",
    "process",
    "cpu",
];

impl Reader {
    fn plan(&mut self, document: &DeTable<'_>) -> Plan {
        let mut top = self.open(document, "the plan", None, TOP_KEYS);
        let plan_id = match top.entries.remove("plan_id") {
            Some((line, value)) => self.number(line, "plan_id", value).unwrap_or(0),
            None => 0,
        };
        let mut plan = Plan {
            plan_id,
            ..Plan::default()
        };
        if let Some((line, value)) = top.entries.remove("dealt_seq") {
            plan.dealt_seq = self.number(line, "dealt_seq", value).unwrap_or(0);
            plan.dealt_seq_line = line;
        }
        if let Some((line, value)) = top.entries.remove("lease_ns") {
            plan.lease_ns = self.number(line, "lease_ns", value).unwrap_or(0);
            plan.lease_ns_line = line;
        }
        if let Some((line, value)) = top.entries.remove("memory_bytes") {
            plan.memory_bytes = self.number(line, "memory_bytes", value).unwrap_or(0);
        }
        if let Some((line, value)) = top.entries.remove("config") {
            self.config(line, value, &mut plan);
        }
        let mut waits = Vec::new();
        for (line, value) in self.tables(&mut top, "process") {
            let process = self.process(line, value, plan.processes.len(), &mut waits);
            plan.processes.extend(process);
        }
        // The rest of a process that could not be read would be missed.
        if self.is_content() {
            self.order(&mut plan.processes, waits);
        }
        // A slot may name its process by number or by name.
        let mut indices = HashMap::new();
        for (index, process) in plan.processes.iter().enumerate() {
            indices.insert(process.id.to_string(), index);
            if let Some(name) = &process.name {
                indices.insert(name.clone(), index);
            }
        }
        for (line, value) in self.tables(&mut top, "cpu") {
            let cpu = self.cpu(line, value, &indices);
            plan.cpus.extend(cpu);
        }
        // It may be there to take away what other plans have on its CPUs.
        let clears = !plan.cpus.is_empty() && plan.cpus.iter().all(|cpu| cpu.slots.is_empty());
        if self.is_content() && plan.processes.is_empty() && !clears {
            self.problem(
                None,
                "the plan has no process; add a [[process]] with id, tasks and command",
            );
        }
        if self.is_content() && plan.cpus.is_empty() {
            self.problem(
                None,
                "the plan has no CPU; add a [[cpu]] with the order of the slots: slots = [1, ...]",
            );
        }
        plan
    }

    /// Who waits for whom, now that all processes are known.
    fn order(&mut self, processes: &mut [Process], waits: Vec<Written>) {
        let names = Names::new(processes);
        let found = waits.into_iter().map(|written| {
            let after = names.find(&written.after, written.line);
            (written, after)
        });
        for (written, after) in found.collect::<Vec<_>>() {
            let (process, task) = written.waits;
            match after {
                Ok(after) => processes[process].tasks[task].after.push(after),
                Err(message) => self.problem(written.line, message),
            }
        }
    }
}
