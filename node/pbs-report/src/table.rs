// SPDX-License-Identifier: GPL-2.0
//! The report as a table for the terminal.

use pbs_text::{append, append_line, bytes, columns, grouped, program_end};
use pbs_uapi::{Event, NO_SLOT};

use crate::deadline::deadline_lines;
use crate::event::{comparison, is_signal, kind_name};
use crate::number::percent;
use crate::waits::wait_table;
use crate::{Outcome, Report};

/// Signals that are listed.
const SIGNALS: usize = 20;

/// Lists the report on each task, and the number of events of each kind.
pub fn table(report: &Report) -> String {
    let mut rows = vec![[
        "PROCESS",
        "TASK",
        "CPU",
        "PLANNED",
        "RETIRED",
        "DEVIATION",
        "PREEMPTED",
        "PUSHED",
        "LATENESS",
        "PEAK RSS",
        "PEAK VM",
    ]
    .map(String::from)
    .to_vec()];
    for task in &report.tasks {
        let name = match &task.name {
            Some(name) => format!("{} {name}", task.task),
            None => task.task.to_string(),
        };
        let ended = |text: String| if task.ended { text } else { "not ended".into() };
        rows.push(vec![
            task.process_name.clone(),
            name,
            task.cpu.to_string(),
            grouped(task.planned_insns),
            grouped(task.retired_insns),
            ended(percent(task.deviation_permille, 1)),
            task.preemptions.to_string(),
            task.pushes.to_string(),
            ended(grouped(task.lateness_insns)),
            bytes(task.peak_rss_bytes),
            bytes(task.peak_vm_bytes),
        ]);
    }
    let mut out = columns(&rows, 2);
    out.push_str(&deadline_lines(&report.deadlines));
    out.push_str(&signals(report));
    out.push_str(&wait_table(
        &report.waited,
        |id| report.process_name(id),
        |process, task| report.task_name(process, task),
    ));

    let ended = report.tasks.iter().filter(|task| task.ended).count();
    let outcome = match report.outcome {
        Outcome::Ended => "ended",
        Outcome::Dropped => "was dropped",
        Outcome::Replaced => "was replaced by another plan",
        Outcome::CpuGone => "lost its CPU",
        Outcome::Interrupted => "was interrupted",
    };
    append!(
        out,
        "\nPlan {} {outcome}: {ended} of {} tasks ended.\n\
         Kernel {}, counting tier {}, {} instructions a ms.\n",
        report.plan_id,
        report.tasks.len(),
        report.kernel,
        report.tier,
        grouped(report.rate_insns_per_ms)
    );
    let counts: Vec<_> = report
        .event_counts
        .iter()
        .map(|(kind, count)| format!("{kind} {}", grouped(*count)))
        .collect();
    append_line!(out, "Events: {}.", counts.join(", "));
    if report.events_lost > 0 {
        append_line!(
            out,
            "{} events were lost because they were read too slowly: the table and the picture \
             have gaps.",
            grouped(report.events_lost)
        );
    }
    for exit in report.processes.iter().flat_map(|process| &process.exits) {
        let end = program_end(exit.code, exit.signal, exit.error.as_deref());
        if let Some(end) = end.filter(|_| !exit.success()) {
            let (program, pid, process) = (&exit.program, exit.pid, exit.process);
            append_line!(out, "{program} (pid {pid}) of process {process} {end}.");
        }
    }
    out
}

fn signals(report: &Report) -> String {
    signal_table(
        &report.signals,
        |id| report.process_name(id),
        |process, task| report.task_name(process, task),
    )
}

/// The prediction failures and the information on the way to them, a line
/// each, below an empty one; nothing at all if there were none. Only the first
/// are listed, and how many more there were is said. Other events are passed
/// over.
pub fn signal_table(
    events: &[Event],
    process_name: impl Fn(u32) -> String,
    task_name: impl Fn(u32, u32) -> Option<String>,
) -> String {
    let signals = || events.iter().filter(|event| is_signal(event));
    if signals().next().is_none() {
        return String::new();
    }
    let header = ["SIGNAL", "PROCESS", "TASK", "WHAT WAS COMPARED", "SLOT"];
    let mut rows = vec![header.map(String::from).to_vec()];
    for event in signals().take(SIGNALS) {
        let number = event.task.to_string();
        rows.push(vec![
            kind_name(event),
            process_name(event.process),
            match task_name(event.process, event.task) {
                Some(name) => format!("{number} {name}"),
                None => number,
            },
            comparison(event, None),
            if event.slot == NO_SLOT { "after the plan".into() } else { event.slot.to_string() },
        ]);
    }
    let mut out = String::from("\n") + &columns(&rows, 4);
    let more = signals().count().saturating_sub(SIGNALS);
    if more > 0 {
        append_line!(out, "... and {} more.", grouped(more as u64));
    }
    out
}
