// SPDX-License-Identifier: GPL-2.0
//! A run or a simulation as a file that `ui.perfetto.dev` opens.
//!
//! [`Trace::new`] takes a recording; the result serialises to the JSON object of
//! Chrome's trace event format, which Perfetto, `chrome://tracing` and
//! `trace_processor` read. That format has all that is to be shown: tracks,
//! slices, instants, counters and names. Perfetto's own binary format would be
//! smaller, and would need its schema.
//!
//! Each CPU is a process of the trace with three threads, which are its tracks:
//! what was *planned*, what was *actual*, and the *signals*; and a counter for
//! each lateness and for the stress. Times are those of the events, so that
//! another trace of the monotonic clock can be laid beside it.

mod format;
mod tracks;

use std::collections::HashMap;

use crate::{Opened, Report, Selection, Series, Source};
use serde::Serialize;

pub use format::{Event, Phase, Scope};

/// A trace. Its JSON is the JSON object format of trace events.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Trace {
    /// Names first, then everything by time.
    pub trace_events: Vec<Event>,
    display_time_unit: &'static str,
    other_data: OtherData,
}

/// Other data about the run. Times are of the monotonic clock, rates as `pbsctl stat` shows them.
#[derive(Clone, Debug, Serialize)]
struct OtherData {
    source: Source,
    kernel: String,
    tier: String,
    rate_insns_per_ms: u64,
    /// Events that happened but were not read in time: if there are any, the
    /// tracks have holes.
    events_lost: u64,
}

/// Points of a counter at most. A track has room for some thousand.
const MOST_POINTS: usize = 20_000;

impl Trace {
    /// Lays out what `opened` recorded.
    pub fn new(opened: &Opened) -> Self {
        let report = Report::of_plans(&opened.plans, &opened.events, &opened.facts);
        let selection = Selection { task: None, tasks: 0, points: MOST_POINTS };
        let series = Series::new(opened, &report, selection);
        let names = names(opened, &report);
        let mut trace_events = Vec::new();
        for timeline in &report.cpus {
            let first = opened
                .plans
                .iter()
                .find(|plan| plan.cpus.iter().any(|cpu| cpu.cpu == timeline.cpu));
            let tracks = tracks::Tracks {
                timeline,
                first_plan_id: first.map_or(0, |plan| plan.plan_id),
                names: &names,
            };
            tracks.add_to(&mut trace_events);
        }
        for signal in &series.signals {
            trace_events.push(tracks::signal(signal, &series, &names));
        }
        for cpu in &series.cpus {
            tracks::add_counters(cpu, &mut trace_events);
        }
        // A slice that begins with another and lasts longer holds that one.
        trace_events.sort_by_key(|event| {
            (event.phase != Phase::Metadata, event.ts, u64::MAX - event.lasts())
        });
        Self {
            trace_events,
            display_time_unit: "ns",
            other_data: OtherData {
                source: opened.source,
                kernel: opened.facts.kernel.clone(),
                tier: opened.facts.tier.clone(),
                rate_insns_per_ms: opened.facts.rate_insns_per_ms,
                events_lost: report.events_lost,
            },
        }
    }
}

/// Names of processes and tasks.
struct Names {
    processes: HashMap<u32, String>,
    tasks: HashMap<(u32, u32), String>,
}

impl Names {
    fn of(&self, process: u32, task: Option<u32>) -> String {
        task.and_then(|task| self.tasks.get(&(process, task)))
            .or_else(|| self.processes.get(&process))
            .cloned()
            .unwrap_or_else(|| format!("process {process}"))
    }
}

fn names(opened: &Opened, report: &Report) -> Names {
    let processes = opened.plans.iter().rev().flat_map(|plan| &plan.processes);
    let named = processes.filter_map(|process| Some((process.id, process.name.clone()?)));
    let tasks = report.tasks.iter();
    Names {
        processes: named.collect(),
        tasks: tasks.map(|task| ((task.process, task.task), task.label())).collect(),
    }
}
