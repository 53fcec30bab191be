// SPDX-License-Identifier: GPL-2.0
//! Task graphs under plans: what their tasks run as is decided for all of them, and their
//! lanes run on several CPUs in the order that the node enforces.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde_json::Value;

use crate::harness::{Context, Verdict};
use crate::jobs::{ask, prepare, DIR};
use crate::{check, check_eq};

/// CPU 0 is pbsctl's. The accelerator is one that is made up: the process on CPU 3 retires
/// as long as it would take.
const MACHINE: &str = r#"
[[node]]
name = "vm"
memory_bytes = 256_000_000
rate_insns_per_s = 250_000_000
cores = [{ name = "c1", cpu = 1 }, { name = "c2", cpu = 2 }, { name = "c3", cpu = 3 }]
[[device]]
kind = "gpu"
models = ["ocl"]
host_cpu = 3
"#;

/// Three tasks, one after the other, that are faster on two threads than on the accelerator.
const EITHER: &str = r#"
name = "either"
deadline_ns = "60s"
[[task]]
name = "step"
repeat = 3
memory_bytes = 4_000_000
[[task.variant]]
model = "omp"
threads = 2
insns = 20_000_000
command = ["pbs_retire", "20000000"]
[[task.variant]]
model = "ocl"
device = "gpu"
insns = 25_000_000
command = ["pbs_retire", "25000000"]
"#;

/// Three that need two threads.
const THREADS: &str = r#"
name = "threads"
deadline_ns = "60s"
[[task]]
name = "step"
repeat = 3
memory_bytes = 4_000_000
[[task.variant]]
model = "omp"
threads = 2
insns = 20_000_000
command = ["pbs_retire", "20000000"]
"#;

/// The first graph gives way to the accelerator, where both would want the threads; each
/// lane waits for all lanes of the step before.
pub fn task_graphs_run_under_plans() -> Verdict {
    prepare("")?;
    fs::write(format!("{DIR}/machine.toml"), MACHINE).context("machine.toml")?;
    fs::write(format!("{DIR}/either.toml"), EITHER).context("either.toml")?;
    fs::write(format!("{DIR}/threads.toml"), THREADS).context("threads.toml")?;
    let files = ["either.toml", "threads.toml", "--machine", "machine.toml"];
    let run = ask(&[&["run", "--cosched"], &files[..]].concat())?;
    check_eq!(run.status, Some(0), "status: {}", run.stderr);
    let decision = &run.json["cosched"];
    check_eq!(decision["accepted"], true, "decision: {decision}");
    let choices = decision["tasks"].as_array().ok_or("tasks")?;
    check_eq!(choices.len(), 6, "decision: {decision}");
    let mut threads = BTreeSet::new();
    for choice in choices {
        let (variant, cpus) = match &choice["job"] {
            job if *job == "either" => ("ocl gpu", 1),
            _ => ("omp 2", 2),
        };
        check_eq!(choice["variant"], variant, "choice: {choice}");
        let of: Vec<u64> = numbers(&choice["cpus"]);
        check_eq!(of.len(), cpus, "choice: {choice}");
        if cpus == 2 {
            threads.extend(of);
        }
    }
    for job in run.json["jobs"].as_array().ok_or("jobs")? {
        check_eq!(job["outcome"], "complete", "outcome: {job}");
        check_eq!(job["kept"], true, "deadline: {job}");
    }

    // All lanes have run, where it was decided.
    let tasks = run.json["tasks"].as_array().ok_or("tasks")?;
    check_eq!(tasks.len(), 9, "lanes: {tasks:?}");
    let mut cpu_of = BTreeMap::new();
    for task in tasks {
        let cpu = task["cpu"].as_u64().ok_or("cpu")?;
        cpu_of.insert(task["process"].as_u64(), cpu);
        check_eq!(task["ended"], true, "lane: {task}");
        let retired = task["retired_insns"].as_u64().ok_or("retired")?;
        // With several CPUs, QEMU's counter of each counts all of them.
        check!(retired >= 20_000_000, "lane: {task}");
    }

    // Who waits for a lane on another CPU has begun after it has ended.
    let events = run.json["events"].as_array().ok_or("events")?;
    let at = |kind: &str, process: &Value, task: &Value| -> Option<u64> {
        let mut found = events.iter().filter(|event| {
            event["kind"] == kind && event["process"] == *process && event["task"] == *task
        });
        found.next()?["time_ns"].as_u64()
    };
    let edges = run.json["edges"].as_array().ok_or("edges")?;
    let mut across = 0;
    for edge in edges {
        let ended = at("task_ended", &edge["after_process"], &edge["after_task"]);
        let begun = at("grant", &edge["process"], &edge["task"]);
        let (Some(ended_ns), Some(begun_ns)) = (ended, begun) else {
            return Err(format!("no events of {edge}"));
        };
        check!(
            ended_ns <= begun_ns,
            "{edge}: ended {ended_ns}, begun {begun_ns}"
        );
        let cpu = |key: &str| cpu_of.get(&edge[key].as_u64());
        across += usize::from(cpu("process") != cpu("after_process"));
    }
    // Of each of two steps both lanes wait for the other lane of the one before.
    check!(
        across >= 4,
        "edges between CPUs: {across} of {}",
        edges.len()
    );

    // Without the word nothing is decided.
    let refused = ask(&[&["run"], &files[..]].concat())?;
    check_eq!(refused.status, Some(2), "status: {}", refused.stderr);
    check!(
        refused.stderr.contains("add --cosched"),
        "{}",
        refused.stderr
    );
    Ok(())
}

fn numbers(list: &Value) -> Vec<u64> {
    let list = list.as_array().into_iter().flatten();
    list.filter_map(Value::as_u64).collect()
}
