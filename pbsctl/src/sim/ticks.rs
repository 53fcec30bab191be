// SPDX-License-Identifier: GPL-2.0
//! The table of the states at ticks, in a file.

use std::path::{Path, PathBuf};

use clap::builder::{PathBufValueParser, TypedValueParser};
use pbs_sim::{HeldNode, HeldProcess};
use serde_json::json;

use crate::files;
use crate::output;

/// Columns of the table in CSV: those of the node, and those of a process.
const COLUMNS: &str = "cpu,tick,now_ns,slot,t1_insns,slot_count_insns,granted,stress,active,\
                       node_lateness_insns,t2_node_insns,tm2_node_insns,process,task,\
                       planned_insns,retired_insns,t2_task_insns,tm2_task_insns,preemptions,\
                       lateness_insns,t2_process_insns,buffer_insns";

/// Reader of the name of the file.
pub(super) fn file() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| match files::other_format(&path, &["csv", "json"]) {
        Some(ending) => Err(format!(
            "the table is written as CSV or JSON, and not as {ending}; name a file such as {}",
            path.with_extension("csv").display()
        )),
        None => Ok(path),
    })
}

/// The states as the name of the file promises.
pub(super) fn table(file: &Path, states: &[HeldNode], tick_ns: u64) -> String {
    let is_json = file.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("json"));
    if is_json {
        return output::to_json(&json!({ "nominal_tick_ns": tick_ns, "ticks": states })) + "\n";
    }
    csv(states, tick_ns)
}

/// A row for each process of each state. A CPU without processes has rows without them.
fn csv(states: &[HeldNode], tick_ns: u64) -> String {
    let mut rows = vec![COLUMNS.to_string()];
    for state in states {
        let node = of_node(state, tick_ns).join(",");
        rows.extend(state.processes.iter().map(|p| format!("{node},{}", of_process(p).join(","))));
        if state.processes.is_empty() {
            rows.push(format!("{node}{}", ",".repeat(PROCESS_COLUMNS)));
        }
    }
    rows.join("\n") + "\n"
}

fn of_node(state: &HeldNode, tick_ns: u64) -> [String; 12] {
    [
        state.cpu.to_string(),
        state.now_ns.checked_div(tick_ns).unwrap_or(0).to_string(),
        state.now_ns.to_string(),
        state.slot.to_string(),
        optional(state.t1_insns),
        state.slot_count_insns.to_string(),
        optional(state.granted),
        state.stress.to_string(),
        state.active.to_string(),
        state.lateness_insns.to_string(),
        state.t2_node_insns.to_string(),
        state.tm2_node_insns.to_string(),
    ]
}

const PROCESS_COLUMNS: usize = 10;

fn of_process(process: &HeldProcess) -> [String; PROCESS_COLUMNS] {
    [
        process.id.to_string(),
        optional(process.task),
        process.planned_insns.to_string(),
        process.retired_insns.to_string(),
        process.t2_task_insns.to_string(),
        process.tm2_task_insns.to_string(),
        process.preemptions.to_string(),
        process.lateness_insns.to_string(),
        process.t2_process_insns.to_string(),
        process.buffer_insns.to_string(),
    ]
}

fn optional(value: Option<impl ToString>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}
