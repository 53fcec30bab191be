// SPDX-License-Identifier: GPL-2.0
//! Task graphs under plans: what their tasks run as is decided for all of them, and their
//! lanes run on several CPUs in the order that the node enforces.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::evolving::MACHINE;
use crate::harness::{Context, Verdict};
use crate::jobs::{ask, prepare, DIR};
use crate::{check, check_eq, service};

/// The accelerator is one that is made up: the process on CPU 3 retires as long as it would
/// take.
const DEVICE: &str = r#"
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
    fs::write(format!("{DIR}/machine.toml"), [MACHINE, DEVICE].concat()).context("machine.toml")?;
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
        // A task that need not wait when the one before it ends late goes on in the same slot,
        // without a grant of its own.
        let before = edge["task"].as_u64().and_then(|task| task.checked_sub(1));
        let begun = at("grant", &edge["process"], &edge["task"])
            .or_else(|| at("task_ended", &edge["process"], &Value::from(before?)));
        let (Some(ended_ns), Some(begun_ns)) = (ended, begun) else {
            return Err(format!("no events of {edge}"));
        };
        check!(ended_ns <= begun_ns, "{edge}: ended {ended_ns}, begun {begun_ns}");
        let cpu = |key: &str| cpu_of.get(&edge[key].as_u64());
        across += usize::from(cpu("process") != cpu("after_process"));
    }
    // Of each of two steps both lanes wait for the other lane of the one before.
    check!(across >= 4, "edges between CPUs: {across} of {}", edges.len());

    // What the variants took decides the next time.
    let again = ask(&[&["run", "--cosched"], &files[..]].concat())?;
    check_eq!(again.status, Some(0), "status: {}", again.stderr);
    let expected = |run: &Value| run["cosched"]["makespan_ns"].as_u64();
    let (first, second) = (expected(&run.json), expected(&again.json));
    check!(second > first, "expected {first:?}, then {second:?}");

    // Without the word nothing is decided.
    let refused = ask(&[&["run"], &files[..]].concat())?;
    check_eq!(refused.status, Some(2), "status: {}", refused.stderr);
    check!(refused.stderr.contains("add --cosched"), "{}", refused.stderr);
    Ok(())
}

/// Lanes of decided graphs are jobs, which any user leaves to the service: they run where it was
/// decided.
pub fn service_runs_decided_graphs() -> Verdict {
    service::with_log(service_runs_inner)
}

fn service_runs_inner() -> Verdict {
    const LANES: [&str; 2] = ["lanes/either.toml", "lanes/threads.toml"];
    service::prepare()?;
    for (name, text) in [("either", EITHER), ("threads", THREADS)] {
        fs::write(format!("{}/{name}.toml", service::DIR), text).context(name)?;
    }
    let machine = [MACHINE, DEVICE].concat();
    fs::write(format!("{}/machine.toml", service::DIR), machine).context("machine.toml")?;
    let (_service, mut client) = service::serve()?;
    let pbsctl = |arguments: &[&str]| -> Verdict {
        let run = Command::new("pbsctl").args(arguments).current_dir(service::DIR).output();
        let run = run.context("pbsctl")?;
        check!(run.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&run.stderr));
        Ok(())
    };
    service::as_user(service::ANN, || {
        let files = ["either.toml", "threads.toml", "--machine", "machine.toml"];
        pbsctl(
            &[&["cosched", "plan", "--jobs", "lanes", "--history", "own.db"], &files[..]].concat(),
        )?;
        pbsctl(&[&["submit", "--socket", service::SOCKET], &LANES[..]].concat())
    })?;
    let jobs = service::all_over(&mut client)?;
    check_eq!(jobs.len(), 2, "jobs: {jobs:?}");
    for job in &jobs {
        check_eq!(job.uid, Some(service::ANN), "owner: {job:?}");
        check_eq!(job.outcome.as_deref(), Some("complete"), "outcome: {job:?}");
        check_eq!(job.kept, Some(true), "deadline: {job:?}");
    }
    // The first graph has given way to the accelerator, and the second has both threads.
    for (file, processes) in LANES.iter().zip([1, 2]) {
        let text = fs::read_to_string(format!("{}/{file}", service::DIR)).context(file)?;
        let confined = text.matches("\ncpus = [").count();
        check_eq!(confined, processes, "{file}: {text}");
    }
    Ok(())
}

fn numbers(list: &Value) -> Vec<u64> {
    let list = list.as_array().into_iter().flatten();
    list.filter_map(Value::as_u64).collect()
}

/// Job of two programs that are bound by memory, one on each CPU, and two that compute.
const PAIR: &str = r#"
name = "NAME"
deadline_ns = "60s"
[[process]]
id = 1
name = "NAME"
memory_bytes = 4_000_000
cpus = [CPU]
command = ["pbs_retire", "INSNS"]
tasks = [24_000_000]
"#;

/// Two memory-bound programs slow each other to less than half.
const SLOWDOWNS: &str = r#"
[[slowdown]]
victim = "m1"
beside = ["m2"]
slowdown_permille = 2_300

[[slowdown]]
victim = "m2"
beside = ["m1"]
slowdown_permille = 2_300
"#;

/// Programs that slow each other are not planned at the same time: one CPU computes first.
pub fn who_slows_whom_is_planned() -> Verdict {
    let jobs = [("m1", 1), ("c1", 1), ("m2", 2), ("c2", 2)];
    let files = jobs.map(|(name, _)| format!("{name}.toml"));
    let mut arguments = vec!["run"];
    arguments.extend(files.iter().map(String::as_str));
    // Without slow-downs a plan may begin with the programs that come first.
    arguments.extend(["--machine", "machine.toml", "--config", "dispatch=thesis"]);
    for (slowdowns, at_once) in [(None, true), (Some("slowdowns.toml"), false)] {
        // Without a history: all four are as long as their files say.
        prepare("")?;
        fs::write(format!("{DIR}/machine.toml"), [MACHINE, DEVICE].concat())
            .context("machine.toml")?;
        fs::write(format!("{DIR}/slowdowns.toml"), SLOWDOWNS).context("slowdowns.toml")?;
        for (name, cpu) in jobs {
            let text = PAIR.replace("NAME", name);
            let text = text.replace("CPU", &cpu.to_string());
            // Who slows whom is known of programs, and what is executed tells them apart.
            let insns = if name.starts_with('m') { "20000000" } else { "20000001" };
            let text = text.replace("INSNS", insns);
            fs::write(format!("{DIR}/{name}.toml"), text).context(name)?;
        }
        let mut arguments = arguments.clone();
        arguments.extend(slowdowns.into_iter().flat_map(|file| ["--slowdowns", file]));
        let run = ask(&arguments)?;
        check_eq!(run.status, Some(0), "status: {}", run.stderr);
        let tasks = run.json["tasks"].as_array().ok_or("tasks")?;
        let begun = |name: &str| -> Result<u64, String> {
            let is_it = |task: &&Value| {
                let label = task["process_name"].as_str().unwrap_or_default();
                label.split('.').next() == Some(name)
            };
            let task = tasks.iter().find(is_it);
            let begun_ns = task.and_then(|task| task["started_ns"].as_u64());
            begun_ns.ok_or_else(|| format!("{name} has not begun: {tasks:?}"))
        };
        // How long each takes there says nothing: QEMU's counters count all CPUs.
        let first = begun("m1")? < begun("c1")?;
        let second = begun("m2")? < begun("c2")?;
        check_eq!(first == second, at_once, "told: {}", run.stderr);
        check_eq!(
            run.stderr.contains("with slow-downs considered, all jobs end after"),
            !at_once,
            "told: {}",
            run.stderr
        );
    }
    Ok(())
}
