// SPDX-License-Identifier: GPL-2.0
//! The command that prints the state of the node.

use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use pbs_node::device::{self, open};
use pbs_report::tier_name;
use pbs_text::columns;
use pbs_uapi::{ProcessState, IDLE, NO_TASK};
use serde_json::{json, Value};

use crate::failure::Failure;
use crate::output::Output;

/// Options of `pbsctl node stat`.
#[derive(Args, Debug)]
pub(crate) struct StatOptions {
    /// Show this process only, by its number in the plan that has it
    #[arg(long, value_name = "ID")]
    pub(crate) process: Option<u32>,
}

/// Prints the kernel's state of one process.
pub(crate) fn process(out: Output, path: &Path, id: u32) -> Result<ExitCode, Failure> {
    let known = open(path)?
        .process(id)
        .map_err(|refused| Failure::refused(&format!("process {id}"), &refused))?;
    let Some(known) = known else {
        return Err(Failure::Failed(format!(
            "no plan has process {id}; pbsctl plan dump --cpu N shows the plan of a CPU"
        )));
    };
    let state = ProcessState::from_raw(known.state);
    let task = Some(known.task).filter(|&task| task != NO_TASK);
    let after = (known.after_process != IDLE)
        .then(|| json!({ "process": known.after_process, "task": known.after_task }));
    let facts = json!({
        "process": known.process,
        "cpu": known.cpu,
        "plan_id": known.plan_id,
        "state": state.map_or_else(|| known.state.into(), |state| json!(state.name())),
        "task": task,
        "ended_tasks": known.ended_tasks,
        "tasks": known.tasks,
        "planned_insns": known.planned_insns,
        "retired_insns": known.retired_insns,
        "lateness_insns": known.lateness_insns,
        "buffer_insns": known.buffer_insns,
        "preemptions": known.preemptions,
        "after": after,
        "task_peak_vm_bytes": known.task_peak_vm_bytes,
        "task_peak_rss_bytes": known.task_peak_rss_bytes,
        "peak_vm_bytes": known.peak_vm_bytes,
        "peak_rss_bytes": known.peak_rss_bytes,
        "memory_bytes": known.memory_bytes,
        "t2_memory_bytes": known.t2_memory_bytes,
        "next_seq": known.next_seq,
    });
    out.print(&facts, || {
        let mut rows = Vec::new();
        flatten("", &facts, &mut rows);
        columns(&rows, 2)
    })?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn stat(out: Output, path: &Path) -> Result<ExitCode, Failure> {
    let info = open(path)?.info().map_err(|refused| Failure::refused("limits", &refused))?;
    let limits = json!({
        "version": info.version,
        "tier": tier_name(info.tier),
        "rate_insns_per_ms": info.rate_insns_per_ms,
        "rate_spread_permille": info.rate_spread_permille,
        "max_slots": info.max_slots,
        "max_processes": info.max_processes,
        "max_slot_insns": info.max_slot_insns,
        "first_seq": info.first_seq,
        "next_seq": info.next_seq,
    });
    // The files say themselves what they are: one value each.
    let sysfs = device::sysfs();
    out.print(&json!({ "device": limits, "sysfs": sysfs }), || {
        let mut rows = Vec::new();
        flatten("device", &limits, &mut rows);
        flatten("", &sysfs, &mut rows);
        columns(&rows, 2)
    })?;
    Ok(ExitCode::SUCCESS)
}

/// `cpu0/lateness_insns` and its value, a row each; numbers of CPUs in their
/// order.
fn flatten(prefix: &str, value: &Value, rows: &mut Vec<Vec<String>>) {
    let Value::Object(entries) = value else {
        let text = value.as_str().map_or_else(|| value.to_string(), Into::into);
        rows.push(vec![prefix.to_string(), text]);
        return;
    };
    let mut entries: Vec<_> = entries.iter().collect();
    entries.sort_by_key(|(name, value)| {
        let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let digits = &name[stem.len()..];
        (value.is_object(), stem, digits.len(), digits)
    });
    for (name, value) in entries {
        let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}/{name}") };
        flatten(&path, value, rows);
    }
}
