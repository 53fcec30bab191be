// SPDX-License-Identifier: GPL-2.0
//! The state at which a simulation was stopped, for the terminal.

use pbs_sim::{HeldNode, Simulation};
use pbs_text::{grouped, ms, Format, Table};

use crate::output::counted;

/// State of each node, and of its processes.
pub(super) fn text(simulation: &Simulation, tick_ns: u64) -> String {
    simulation.held.iter().map(|node| of_node(node, tick_ns)).collect()
}

pub(crate) fn of_node(node: &HeldNode, tick_ns: u64) -> String {
    let granted = node.granted.map_or("no process".into(), |id| format!("process {id}"));
    let t1 = node.t1_insns.map_or("no t1".into(), |insns| format!("t1 {}", grouped(insns)));
    let mut out = format!(
        "\nCPU {} after {} ({} ms): slot {} for {granted}, {} retired in it, {t1}\n\
         lateness {} of {}, early below {}; {} active; stress {}\n",
        node.cpu,
        counted(node.now_ns.checked_div(tick_ns).unwrap_or(0), "tick", "ticks"),
        ms(node.now_ns),
        node.slot,
        grouped(node.slot_count_insns),
        signed(node.lateness_insns),
        grouped(node.t2_node_insns),
        signed(node.tm2_node_insns),
        node.active,
        node.stress,
    );
    let titles = [
        "Process",
        "Task",
        "Planned",
        "Retired",
        "t2_task",
        "t-2_task",
        "Preemptions",
        "Lateness",
        "t2_process",
        "Plan buffer",
    ];
    let mut table = Table::new(&titles, 0);
    for process in &node.processes {
        table.push(vec![
            process.id.to_string(),
            process.task.map_or("-".into(), |task| task.to_string()),
            grouped(process.planned_insns),
            grouped(process.retired_insns),
            grouped(process.t2_task_insns),
            grouped(process.tm2_task_insns),
            process.preemptions.to_string(),
            signed(process.lateness_insns),
            grouped(process.t2_process_insns),
            grouped(process.buffer_insns),
        ]);
    }
    out.push_str(&table.print(Format::Text));
    out
}

fn signed(insns: i64) -> String {
    let sign = if insns < 0 { "-" } else { "" };
    format!("{sign}{}", grouped(insns.unsigned_abs()))
}
