// SPDX-License-Identifier: GPL-2.0
//! Metrics of the scheduling class, from sysfs and from the plans in force.

use std::collections::BTreeSet;
use std::path::Path;

use pbs_node::device::{open, sysfs};
use pbs_plan::{wire, Plan, Slot};
use serde_json::Value;

use super::page::{Kind, Metric};

/// States of a CPU, as sysfs names them.
const STATES: [&str; 5] = ["offline", "no_plan", "execution", "unallocated", "ended"];

/// Slots of the longest plan that is read back for its utilization.
const READ_SLOTS: u64 = 100_000;

/// A file of each CPU: its name, the factor to the metric's unit, and the metric.
type File = (&'static str, f64, Kind, &'static str, &'static str);

const FILES: &[File] = &[
    ("slots", 1.0, Kind::Gauge, "pbs_plan_slots", "Number of slots of the plan"),
    ("slot", 1.0, Kind::Gauge, "pbs_plan_passed_slots", "Number of slots that have passed"),
    (
        "processes_unfinished",
        1.0,
        Kind::Gauge,
        "pbs_plan_unfinished_processes",
        "Number of processes with tasks left",
    ),
    ("threads", 1.0, Kind::Gauge, "pbs_threads", "Number of threads in the class"),
    (
        "lateness_insns",
        1.0,
        Kind::Gauge,
        "pbs_lateness_instructions",
        "Sum of the lateness of the processes that have begun and are not done",
    ),
    (
        "t2_node_insns",
        1.0,
        Kind::Gauge,
        "pbs_t2_node_instructions",
        "Lateness of the node at which a prediction failure is signalled",
    ),
    ("stress", 1.0, Kind::Gauge, "pbs_stress_points", "Stress, which raises the thresholds"),
    (
        "memory_bytes",
        1.0,
        Kind::Gauge,
        "pbs_memory_bytes",
        "Sum of the peaks of the processes that have begun and are not done",
    ),
    (
        "memory_limit_bytes",
        1.0,
        Kind::Gauge,
        "pbs_memory_limit_bytes",
        "Memory that the plan may use on the node",
    ),
    (
        "rate_insns_per_ms",
        1000.0,
        Kind::Gauge,
        "pbs_rate_instructions_per_second",
        "Instructions that the CPU retires in a second",
    ),
    (
        "out_of_turn_ns",
        1e-9,
        Kind::Counter,
        "pbs_out_of_turn_seconds",
        "Time for which threads had the CPU in the turn of another",
    ),
    (
        "budgets_spent",
        1.0,
        Kind::Counter,
        "pbs_kernel_budgets_spent",
        "Number of windows in which threads that may not run used up their share",
    ),
    (
        "longest_stop_ns",
        1e-9,
        Kind::Gauge,
        "pbs_longest_stop_seconds",
        "Longest time from the request that a thread wait until it waited, since boot",
    ),
    (
        "longest_swap_ns",
        1e-9,
        Kind::Gauge,
        "pbs_longest_swap_seconds",
        "Longest time for which a change of plans held the run queue, since boot",
    ),
    (
        "overflows",
        1.0,
        Kind::Counter,
        "pbs_counter_interrupts",
        "Number of interrupts of the counter of instructions",
    ),
    (
        "timer_interrupts",
        1.0,
        Kind::Counter,
        "pbs_timer_interrupts",
        "Number of expiries of the timer of the class",
    ),
];

/// Metrics of this node.
pub(super) fn metrics(device: &Path) -> Vec<Metric> {
    let sysfs = sysfs();
    let utilization = utilization(device, &sysfs);
    let mut metrics = of_sysfs(&sysfs);
    metrics.push(utilization);
    metrics
}

/// CPUs by their numbers, with their files.
fn cpus(sysfs: &Value) -> Vec<(u32, &Value)> {
    let entries = sysfs.as_object().into_iter().flatten();
    let numbered = entries.filter_map(|(name, files)| {
        let cpu = name.strip_prefix("cpu")?.parse().ok()?;
        Some((cpu, files))
    });
    let mut cpus: Vec<_> = numbered.collect();
    cpus.sort_by_key(|(cpu, _)| *cpu);
    cpus
}

fn of_sysfs(sysfs: &Value) -> Vec<Metric> {
    let is_there = sysfs.as_object().is_some_and(|files| !files.is_empty());
    let mut up = Metric::new(Kind::Gauge, "pbs_class_up", "Whether the kernel has the class");
    up.add([], f64::from(u8::from(is_there)));
    let mut watchdog = Metric::new(
        Kind::Gauge,
        "pbs_watchdog_seconds",
        "Time after which a faulty plan is dropped; 0: never",
    );
    if let Some(ms) = sysfs["watchdog_ms"].as_f64() {
        watchdog.add([], ms / 1e3);
    }
    let cpus = cpus(sysfs);
    let mut metrics = vec![up, watchdog, states(&cpus), tiers(&cpus), drops(&cpus), events(&cpus)];
    for &(file, factor, kind, name, help) in FILES {
        let mut metric = Metric::new(kind, name, help);
        for (cpu, files) in &cpus {
            if let Some(value) = files[file].as_f64() {
                metric.add([("cpu", &cpu.to_string())], value * factor);
            }
        }
        metrics.push(metric);
    }
    metrics
}

fn states(cpus: &[(u32, &Value)]) -> Metric {
    let mut metric = Metric::new(Kind::Gauge, "pbs_cpu_state", "1 for the state of the CPU");
    for (cpu, files) in cpus {
        for state in STATES {
            let is_now = files["state"] == state;
            let labels = [("cpu", &*cpu.to_string()), ("state", state)];
            metric.add(labels, f64::from(u8::from(is_now)));
        }
    }
    metric
}

fn tiers(cpus: &[(u32, &Value)]) -> Metric {
    let mut metric = Metric::new(
        Kind::Gauge,
        "pbs_tier_info",
        "1 for the way in which the CPU counts instructions",
    );
    for (cpu, files) in cpus {
        if let Some(tier) = files["tier"].as_str() {
            metric.add([("cpu", &cpu.to_string()), ("tier", tier)], 1.0);
        }
    }
    metric
}

fn drops(cpus: &[(u32, &Value)]) -> Metric {
    let mut metric = Metric::new(
        Kind::Gauge,
        "pbs_plan_dropped_info",
        "1 for the reason for which the last dropped plan of the CPU was dropped",
    );
    for (cpu, files) in cpus {
        if let Some(reason) = files["dropped"].as_str().filter(|&reason| reason != "no") {
            metric.add([("cpu", &cpu.to_string()), ("reason", reason)], 1.0);
        }
    }
    metric
}

fn events(cpus: &[(u32, &Value)]) -> Metric {
    let mut metric =
        Metric::new(Kind::Counter, "pbs_events", "Number of scheduling events, by their kinds");
    for (cpu, files) in cpus {
        for (kind, count) in files["counts"].as_object().into_iter().flatten() {
            if let Some(count) = count.as_f64() {
                metric.add([("cpu", &cpu.to_string()), ("kind", kind)], count);
            }
        }
    }
    metric
}

/// Share of each plan in force that is not idle, for who may read the plans.
fn utilization(device: &Path, sysfs: &Value) -> Metric {
    let mut metric = Metric::new(
        Kind::Gauge,
        "pbs_plan_utilization_ratio",
        "Share of the instructions of the plan that are not those of idle slots",
    );
    let Ok(device) = open(device) else {
        return metric;
    };
    for (cpu, files) in cpus(sysfs) {
        if !files["slots"].as_u64().is_some_and(|slots| (1..=READ_SLOTS).contains(&slots)) {
            continue;
        }
        // A plan that has just gone has no ratio.
        let plan = device.get_plan(cpu).ok().and_then(|bytes| wire::decode(&bytes).ok());
        if let Some(ratio) = plan.as_ref().and_then(|plan| busy_ratio(plan, cpu)) {
            metric.add([("cpu", &cpu.to_string())], ratio);
        }
    }
    metric
}

/// Share of a CPU's plan that is not idle; `None`: the plan has no instruction.
fn busy_ratio(plan: &Plan, cpu: u32) -> Option<f64> {
    let of = plan.cpus.iter().find(|of| of.cpu == cpu)?;
    let mut idle_insns = 0;
    let mut here = BTreeSet::new();
    for slot in &of.slots {
        match slot {
            Slot::Idle { length_insns, .. } => idle_insns += length_insns,
            Slot::Process { process } => drop(here.insert(*process)),
        }
    }
    let tasks = here.iter().flat_map(|&process| &plan.processes[process].tasks);
    let busy_insns: u64 = tasks.map(|task| task.planned_insns).sum();
    let all_insns = busy_insns + idle_insns;
    (all_insns > 0).then(|| busy_insns as f64 / all_insns as f64)
}

/// Names and kinds of all metrics of a kernel.
#[cfg(test)]
pub(super) fn all() -> Vec<(&'static str, Kind)> {
    let mut metrics = of_sysfs(&Value::Null);
    metrics.push(utilization(Path::new("/nonexistent"), &Value::Null));
    metrics.iter().map(|metric| (metric.name, metric.kind)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::page::Page;
    use super::*;

    /// CPUs come in the order of their numbers, and files that say nothing have no series.
    #[test]
    fn files_of_cpus_are_series() {
        let sysfs = json!({
            "watchdog_ms": 2500,
            "cpu10": { "state": "no_plan", "tier": "pmu", "dropped": "no", "lateness_insns": -5 },
            "cpu2": {
                "state": "execution", "tier": "clock", "dropped": "lease", "slots": 7,
                "out_of_turn_ns": 1_500_000_000u64, "rate_insns_per_ms": 2_000_000,
                "counts": { "late": 3 },
            },
            "counts": { "late": 3 },
        });
        let mut page = Page::default();
        page.extend(of_sysfs(&sysfs));
        let page = page.open_metrics().unwrap();
        for line in [
            "pbs_class_up 1.0",
            "pbs_watchdog_seconds 2.5",
            "pbs_cpu_state{cpu=\"2\",state=\"execution\"} 1.0",
            "pbs_cpu_state{cpu=\"10\",state=\"execution\"} 0.0",
            "pbs_plan_dropped_info{cpu=\"2\",reason=\"lease\"} 1.0",
            "pbs_events_total{cpu=\"2\",kind=\"late\"} 3.0",
            "pbs_plan_slots{cpu=\"2\"} 7.0",
            "pbs_lateness_instructions{cpu=\"10\"} -5.0",
            "pbs_out_of_turn_seconds_total{cpu=\"2\"} 1.5",
            "pbs_rate_instructions_per_second{cpu=\"2\"} 2000000000.0",
        ] {
            assert!(page.lines().any(|it| it == line), "{line} is not in\n{page}");
        }
        assert!(!page.contains("pbs_plan_dropped_info{cpu=\"10\""));
        let on = |cpu| page.find(&format!("pbs_cpu_state{{cpu=\"{cpu}\"")).unwrap();
        assert!(on(2) < on(10));
    }

    #[test]
    fn a_kernel_without_the_class_is_not_up() {
        let mut page = Page::default();
        page.extend(of_sysfs(&json!({})));
        let page = page.open_metrics().unwrap();
        assert!(page.contains("pbs_class_up 0.0\n"));
        assert!(!page.contains("{cpu="));
    }

    #[test]
    fn idle_slots_are_not_utilization() {
        let text = "plan_id = 1\n[[process]]\nid = 1\ntasks = [100, 200]\n[[process]]\nid = 2\n\
                    tasks = [500]\n[[cpu]]\ncpu = 3\nslots = [1, { idle_insns = 100 }, 1]\n\
                    [[cpu]]\ncpu = 4\nslots = [2]\n";
        let plan = pbs_plan::from_toml(text).unwrap_or_else(|problems| panic!("{problems:?}"));
        assert_eq!(busy_ratio(&plan, 3), Some(0.75));
        assert_eq!(busy_ratio(&plan, 4), Some(1.0));
        assert_eq!(busy_ratio(&plan, 5), None);
    }
}
