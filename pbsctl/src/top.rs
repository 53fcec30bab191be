// SPDX-License-Identifier: GPL-2.0
//! The command that shows the node as it runs.

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use pbs_node::device::{open, sysfs};
use pbs_text::{bytes, columns, grouped};
use serde::Serialize;
use serde_json::Value;

use crate::failure::Failure;
use crate::output::Output;
use crate::{quantities, watch};

const TOP_HELP: &str = "\
Examples:
  pbsctl node top                       Until Ctrl-C
  pbsctl node top --interval 5 | cat    Print one table after the other
  pbsctl --json node top --count 2      Print one JSON object a line

DONE is the share of passed slots, LEFT the number of processes with remaining tasks, T2 the
lateness at which the node signals a prediction failure. Each of the last columns is a number of
events a second: ended tasks, slots that reached t1 or their time limit, and prediction failures.

On a CPU with a plan, pbsctl runs in the unallocated time, and an interval may be longer than
requested.";

#[derive(Args, Debug)]
#[command(after_help = TOP_HELP)]
pub(crate) struct TopOptions {
    /// Time between two tables, in seconds or with a unit, such as 250ms
    #[arg(long, short, value_name = "S", default_value = "1",
          value_parser = quantities::interval)]
    pub(crate) interval: u64,

    /// Stop after this many tables
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) count: Option<u64>,
}

/// The events of which it is said how often they come.
const RATES: [&str; 5] = ["task_ended", "preempted", "ceiling", "late", "early"];

pub(crate) fn top(out: Output, device: &Path, options: &TopOptions) -> Result<ExitCode, Failure> {
    // Whether there is a node to look at.
    open(device)?;
    let clear = watch::clear(out);
    let mut last: Option<(Instant, Value)> = None;
    watch::repeat(options.interval, options.count, || {
        let now = (Instant::now(), sysfs());
        let before = (last.as_ref()).map(|(at, sysfs)| (sysfs, at.elapsed()));
        let view = View::new(&now.1, before);
        out.print_view(&view, clear, || view.text())?;
        last = Some(now);
        Ok(())
    })
}

/// The node at a moment.
#[derive(Debug, Serialize)]
struct View {
    events: u64,
    lateness_insns: i64,
    threads: u64,
    tier: String,
    cpus: Vec<CpuView>,
}

/// A CPU at a moment.
#[derive(Debug, Serialize)]
struct CpuView {
    cpu: u32,
    state: String,
    plan_id: u64,
    /// Slots that have passed.
    slot: u64,
    slots: u64,
    /// The process that was granted the CPU last.
    process: Option<u64>,
    processes_unfinished: u64,
    threads: u64,
    lateness_insns: i64,
    t2_node_insns: i64,
    stress: u64,
    peak_rss_bytes: u64,
    tier: String,
    /// Events a second since the view before; `None`: there was none.
    per_s: Option<[f64; RATES.len()]>,
}

impl View {
    /// `before`: what sysfs said some time ago.
    fn new(sysfs: &Value, before: Option<(&Value, Duration)>) -> Self {
        let entries = sysfs.as_object().into_iter().flatten();
        let mut cpus: Vec<_> = entries
            .filter_map(|(name, now)| {
                let cpu = name.strip_prefix("cpu")?.parse().ok()?;
                let before = before.map(|(sysfs, passed)| (&sysfs[name], passed));
                Some(CpuView::new(cpu, now, before))
            })
            .collect();
        cpus.sort_by_key(|view| view.cpu);
        Self {
            events: number(&sysfs["events"]),
            lateness_insns: signed(&sysfs["lateness_insns"]),
            threads: number(&sysfs["threads"]),
            tier: text(&sysfs["tier"]),
            cpus,
        }
    }

    fn text(&self) -> String {
        let mut rows = vec![[
            "CPU", "STATE", "PLAN", "SLOT", "OF", "DONE", "PROCESS", "LEFT", "THREADS", "LATENESS",
            "T2", "STRESS", "PEAK RSS", "ENDS/s", "T1/s", "LIMIT/s", "LATE/s", "EARLY/s", "TIER",
        ]
        .map(String::from)
        .to_vec()];
        rows.extend(self.cpus.iter().map(CpuView::row));
        format!(
            "{} events, {} threads, lateness {}, tier {}\n\n{}",
            grouped(self.events),
            grouped(self.threads),
            grouped(self.lateness_insns),
            self.tier,
            columns(&rows, 2)
        )
    }
}

impl CpuView {
    fn new(cpu: u32, now: &Value, before: Option<(&Value, Duration)>) -> Self {
        let per_s = before.map(|(before, passed)| {
            RATES.map(|kind| {
                let count = |sysfs: &Value| number(&sysfs["counts"][kind]);
                let more = count(now).saturating_sub(count(before));
                more as f64 / passed.as_secs_f64().max(1e-3)
            })
        });
        Self {
            cpu,
            state: text(&now["state"]),
            plan_id: number(&now["plan_id"]),
            slot: number(&now["slot"]),
            slots: number(&now["slots"]),
            process: now["granted_process"].as_u64(),
            processes_unfinished: number(&now["processes_unfinished"]),
            threads: number(&now["threads"]),
            lateness_insns: signed(&now["lateness_insns"]),
            t2_node_insns: signed(&now["t2_node_insns"]),
            stress: number(&now["stress"]),
            peak_rss_bytes: number(&now["peak_rss_bytes"]),
            tier: text(&now["tier"]),
            per_s,
        }
    }

    fn row(&self) -> Vec<String> {
        let mut row = vec![self.cpu.to_string(), self.state.clone()];
        if self.slots == 0 {
            return row;
        }
        let rate = |place: usize| {
            let per_s = self.per_s.map(|rates| rates[place]);
            per_s.map_or_else(|| "-".into(), |rate| format!("{rate:.1}"))
        };
        row.extend([
            self.plan_id.to_string(),
            grouped(self.slot),
            grouped(self.slots),
            format!("{} %", u128::from(self.slot) * 100 / u128::from(self.slots)),
            self.process.map_or_else(|| "-".into(), |id| id.to_string()),
            grouped(self.processes_unfinished),
            grouped(self.threads),
            grouped(self.lateness_insns),
            grouped(self.t2_node_insns),
            grouped(self.stress),
            bytes(self.peak_rss_bytes),
        ]);
        row.extend((0..RATES.len()).map(rate));
        row.push(self.tier.clone());
        row
    }
}

/// Number in a file of sysfs; 0 if there is none.
fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

fn signed(value: &Value) -> i64 {
    value.as_i64().unwrap_or(0)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or("-").into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn sysfs(ended: u64) -> Value {
        json!({
            "events": 12, "lateness_insns": -5, "threads": 2, "tier": "pmu", "version": 1,
            "config": { "stress_reset": 3 },
            "cpu10": { "state": "no_plan", "slots": 0, "granted_process": -1 },
            "cpu2": {
                "state": "execution", "plan_id": 7, "slot": 3, "slots": 12,
                "granted_process": 4, "processes_unfinished": 2, "threads": 2,
                "lateness_insns": -5, "t2_node_insns": 20_000_000, "stress": 9,
                "peak_rss_bytes": 4096, "tier": "pmu",
                "counts": { "task_ended": ended, "preempted": 1 },
            },
        })
    }

    #[test]
    fn shows_each_cpu_in_order() {
        let view = View::new(&sysfs(30), None);
        let cpus: Vec<_> = view.cpus.iter().map(|cpu| cpu.cpu).collect();
        assert_eq!(cpus, [2, 10]);
        assert_eq!(view.cpus[0].process, Some(4));
        assert_eq!(view.cpus[1].process, None);
        let text = view.text();
        let line = text.lines().find(|line| line.starts_with("2 ")).unwrap();
        let words: Vec<_> = line.split_whitespace().collect();
        assert_eq!(words[..7], ["2", "execution", "7", "3", "12", "25", "%"]);
        assert!(text.lines().any(|line| line == "10   no_plan"), "{text}");
    }

    #[test]
    fn views_are_valid_under_their_schema() {
        let (before, now) = (sysfs(10), sysfs(30));
        for before in [None, Some((&before, Duration::from_secs(4)))] {
            let mut view = json!(View::new(&now, before));
            view["schema"] = json!("pbs.top/1");
            assert_eq!(crate::schemas::Schemas::read().answer_problem(&view), None);
        }
    }

    #[test]
    fn rates_are_of_the_time_between() {
        let before = sysfs(10);
        let view = View::new(&sysfs(30), Some((&before, Duration::from_secs(4))));
        let rates = view.cpus[0].per_s.unwrap();
        assert_eq!(rates, [5.0, 0.0, 0.0, 0.0, 0.0]);
        // A CPU whose counts began anew is no reason to stop.
        let view = View::new(&before, Some((&sysfs(30), Duration::ZERO)));
        assert_eq!(view.cpus[0].per_s.unwrap()[0], 0.0);
    }

    #[test]
    fn a_node_without_files_is_shown_empty() {
        let view = View::new(&json!({}), None);
        assert!(view.cpus.is_empty());
        assert!(view.text().starts_with("0 events, 0 threads, lateness 0, tier -\n"));
    }
}
