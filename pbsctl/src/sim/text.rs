// SPDX-License-Identifier: GPL-2.0
//! Results of a simulated plan, for the terminal.

use pbs_plan::Plan;
use pbs_report::{describe, signal_table, wait_table, waited};
use pbs_sim::{Counts, ProcessOutcome, Simulation};
use pbs_text::{bytes, columns, grouped, ms};

use super::recorded::counts;
use crate::output::counted;

/// Tasks that are listed without being asked for.
const TASKS: usize = 40;

/// Answers of the job scheduler that are listed.
const REPLANS: usize = 20;

/// The events and the table of all tasks where they are asked for; then in
/// short what became of the processes, and what was signalled.
pub(super) fn text(plan: &Plan, simulation: &Simulation, events: bool, tasks: bool) -> String {
    let mut out = String::new();
    if events {
        for event in &simulation.events {
            out.push_str(&describe(event));
            out.push('\n');
        }
        out.push('\n');
    }
    let count = simulation.tasks.len();
    if tasks || count <= TASKS {
        out.push_str(&task_table(plan, simulation));
    } else {
        out.push_str(&format!("{}; --tasks lists them.\n", counted(count as u64, "task", "tasks")));
    }
    out.push('\n');
    out.push_str(&process_table(simulation));
    out.push_str(&signals(plan, simulation));
    out.push('\n');
    out.push_str(&count_table(&counts(simulation)));
    for replan in simulation.replans.iter().take(REPLANS) {
        let said = match &replan.refused {
            Some(words) => format!("was refused: {words}"),
            None => "came into force".into(),
        };
        out.push_str(&format!(
            "{} ms: plan {} for CPU {} {said}\n",
            ms(replan.came_ns),
            replan.plan.plan_id,
            replan.cpu
        ));
    }
    let more = simulation.replans.len().saturating_sub(REPLANS);
    if more > 0 {
        out.push_str(&format!(
            "... and {}.\n",
            counted(more as u64, "more answer", "more answers")
        ));
    }
    out.push_str(&memory(simulation));
    for cpu in &simulation.cpus {
        let end = if cpu.ended {
            "all processes ended after"
        } else {
            "NOT all processes ended; the simulation stopped after"
        };
        out.push_str(&format!(
            "CPU {}: {end} {} ms: running {}, lost {}, idle {}, unallocated {}\n",
            cpu.cpu,
            ms(cpu.ended_ns),
            ms(cpu.running_ns),
            ms(cpu.lost_ns),
            ms(cpu.idle_ns),
            ms(cpu.unallocated_ns)
        ));
        if cpu.running_unallocated_ns > 0 {
            out.push_str(&format!(
                "CPU {}: {} ms of the running time are unallocated; slots float there \
                 (dispatch = deadline), since the rest of the system has nothing to run\n",
                cpu.cpu,
                ms(cpu.running_unallocated_ns)
            ));
        }
        if cpu.unanswered > 0 {
            out.push_str(&format!(
                "CPU {}: {} not answered, since --max-answers is {}\n",
                cpu.cpu,
                counted(cpu.unanswered, "failure was", "failures were"),
                grouped(cpu.answers)
            ));
        }
        if cpu.given_up > 0 {
            out.push_str(&format!(
                "CPU {}: {} not answered, since the node refused one plan after the other\n",
                cpu.cpu,
                counted(cpu.given_up, "failure was", "failures were")
            ));
        }
    }
    out
}

/// Memory that was in use, if that is known.
fn memory(simulation: &Simulation) -> String {
    let memory = &simulation.memory;
    if memory.peak_bytes == 0 && memory.killed == 0 {
        return String::new();
    }
    let limit = match memory.limit_bytes {
        0 => String::new(),
        limit_bytes => format!(" of the {} that the plan may use", bytes(limit_bytes)),
    };
    let killed = match memory.killed {
        0 => String::new(),
        killed => format!(
            "; {} killed for lack of memory",
            counted(killed, "process was", "processes were")
        ),
    };
    format!("Memory: {} at most{limit} were in use{killed}\n", bytes(memory.peak_bytes))
}

/// Formats signals as `run` prints them.
fn signals(plan: &Plan, simulation: &Simulation) -> String {
    let task_name = |process: u32, id: u32| {
        let tasks = &plan.process(process)?.tasks;
        tasks.iter().find(|task| task.id == id)?.name.clone()
    };
    let process_name = |id| label(plan, id);
    signal_table(&simulation.events, process_name, task_name)
        + &wait_table(
            &waited(std::slice::from_ref(plan), &simulation.events),
            process_name,
            task_name,
        )
}

fn label(plan: &Plan, id: u32) -> String {
    plan.process(id).map_or_else(|| id.to_string(), pbs_plan::Process::label)
}

fn task_table(plan: &Plan, simulation: &Simulation) -> String {
    let titles =
        ["PROCESS", "TASK", "CPU", "PLANNED", "REAL", "RETIRED", "PREEMPTED", "ENDED (ms)"];
    let mut rows = vec![titles.map(String::from).to_vec()];
    for task in &simulation.tasks {
        rows.push(vec![
            label(plan, task.process),
            task.task.to_string(),
            task.cpu.to_string(),
            grouped(task.planned_insns),
            grouped(task.real_insns),
            grouped(task.retired_insns),
            task.preemptions.to_string(),
            task.ended_ns.map_or_else(|| "not ended".into(), ms),
        ]);
    }
    columns(&rows, 2)
}

fn process_table(simulation: &Simulation) -> String {
    let titles = [
        "PROCESS",
        "DEADLINE",
        "CPU",
        "ENDED (ms)",
        "DEADLINE (ms)",
        "LEFT (ms)",
        "PLANNED PEAK",
        "REAL PEAK",
    ];
    let has_memory = |process: &ProcessOutcome| {
        process.planned_memory_bytes != 0 || process.real_memory_bytes != 0
    };
    let columns_used =
        if simulation.processes.iter().any(has_memory) { titles.len() } else { titles.len() - 2 };
    let mut rows = vec![titles.map(String::from).to_vec()];
    for process in &simulation.processes {
        let id = process.id;
        let left = process.ended_ns.map(|ended_ns| {
            let sign = if process.kept { "" } else { "-" };
            format!("{sign}{}", ms(process.deadline_ns.abs_diff(ended_ns)))
        });
        rows.push(vec![
            process.name.clone().unwrap_or_else(|| id.to_string()),
            match (process.kept, process.killed_ns) {
                (true, _) => "kept",
                (false, Some(_)) => "KILLED",
                // The simulation was stopped before.
                (false, None)
                    if process.ended_ns.is_none()
                        && process.deadline_ns > simulation.ended_ns() =>
                {
                    "open"
                }
                (false, None) => "MISSED",
            }
            .into(),
            process.cpu.to_string(),
            process.ended_ns.map_or_else(|| "not ended".into(), ms),
            ms(process.deadline_ns),
            left.unwrap_or_default(),
            bytes(process.planned_memory_bytes),
            bytes(process.real_memory_bytes),
        ]);
    }
    for row in &mut rows {
        row.truncate(columns_used);
    }
    columns(&rows, 2)
}

fn count_table(counts: &Counts) -> String {
    let mut rows = Vec::new();
    for (&kind, &count) in &counts.kinds {
        let causes = counts.signals.get(kind).into_iter().flatten();
        let causes: Vec<_> =
            causes.map(|(cause, count)| format!("{cause} {}", grouped(*count))).collect();
        rows.push(vec![kind.into(), causes.join(", "), grouped(count)]);
    }
    columns(&rows, 2)
}
