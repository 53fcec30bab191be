// SPDX-License-Identifier: GPL-2.0
//! A node of 1 GB, and jobs that need 0.7 and 0.5 GB (Glaß 2024, 1): planned by who does not
//! look at memory, and by who does, with pages that are really there.

use std::fs;
use std::process::Command;

use pbs_vmtest::harness::{burn, now_ns, rate, Context, Verdict};
use pbs_vmtest::{check, check_eq};
use serde_json::{json, Value};

const DIR: &str = "/tmp/memory";
/// Memory in the thesis.
const NODE_BYTES: u64 = 1_000_000_000;
const JOBS_BYTES: [u64; 2] = [700_000_000, 500_000_000];
/// Instructions of each job once it has its memory.
const INSNS: u64 = 800_000_000;
/// Beside what a job asks for it has its program.
const PROGRAM_BYTES: u64 = 8_000_000;
const PAGE_BYTES: usize = 4096;

/// `pbs-vmstudy touch BYTES INSNS`: what the jobs do.
pub fn touch(mut words: impl Iterator<Item = String>) -> Verdict {
    let mut number = |what: &str| {
        let word = words.next().ok_or_else(|| format!("touch wants {what}"))?;
        word.parse::<u64>().context(&word)
    };
    let (bytes, insns) = (number("bytes")?, number("instructions")?);
    let mut memory: Vec<u8> = Vec::with_capacity(bytes as usize);
    let spare = memory.spare_capacity_mut();
    for page in spare.chunks_mut(PAGE_BYTES) {
        page[0].write(1);
    }
    burn(insns);
    // Held until here.
    std::hint::black_box(&memory);
    Ok(())
}

fn available_bytes() -> Result<u64, String> {
    let text = fs::read_to_string("/proc/meminfo").context("/proc/meminfo")?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    Ok(1024 * kib.ok_or("no MemAvailable")?)
}

/// Number of processes killed for lack of memory since the machine was booted.
fn oom_kills() -> Result<u64, String> {
    let text = fs::read_to_string("/proc/vmstat").context("/proc/vmstat")?;
    let line = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
    line.and_then(|number| number.parse().ok()).ok_or_else(|| "no oom_kill".into())
}

fn program() -> Result<String, String> {
    let path = std::env::current_exe().context("the study's program")?;
    path.into_os_string().into_string().map_err(|_| "no name of a program".into())
}

/// Time that a job takes alone.
fn alone_ns(bytes: u64) -> Result<u64, String> {
    let begun_ns = now_ns();
    let mut command = Command::new(program()?);
    let status = command.args(["touch", &bytes.to_string(), &INSNS.to_string()]).status();
    check!(status.context("touch")?.success(), "touching {bytes} bytes failed");
    Ok(now_ns() - begun_ns)
}

fn pbsctl(words: &[&str]) -> Result<(Option<i32>, Value), String> {
    let mut command = Command::new("pbsctl");
    command.arg("--json").args(words).current_dir(DIR);
    let output = command.output().context("pbsctl")?;
    let json = serde_json::from_slice(&output.stdout).map_err(|error| {
        format!("pbsctl {}: {error}: {}", words.join(" "), String::from_utf8_lossy(&output.stderr))
    })?;
    Ok((output.status.code(), json))
}

/// Plans both jobs, runs the plan, and tells what became of it.
fn planned(blind: bool) -> Result<Value, String> {
    let mut words = vec!["plan", "show", "large.toml", "small.toml", "--machine", "machine.toml"];
    words.extend(["--output", "plan.toml"]);
    words.push(if blind { "--memory-blind" } else { "--memory-order" });
    let (status, shown) = pbsctl(&words)?;
    check_eq!(status, Some(0), "both are admitted: {shown}");
    let kills = oom_kills()?;
    let (status, run) = pbsctl(&["run", "plan.toml"])?;
    let tasks = run["tasks"].as_array().ok_or_else(|| format!("no tasks: {run}"))?;
    let span = |task: &Value| Some((task["started_ns"].as_u64()?, task["ended_ns"].as_u64()?));
    let spans: Vec<_> = tasks.iter().filter_map(span).collect();
    let overlap_ns = match spans[..] {
        [a, b] => a.1.min(b.1).saturating_sub(a.0.max(b.0)),
        _ => 0,
    };
    let first_ns = spans.iter().map(|span| span.0).min().unwrap_or(0);
    let list = |key: &str| run[key].as_array().cloned().unwrap_or_default();
    let processes = list("processes");
    let has_succeeded = |process: &&Value| {
        let exits = process["exits"].as_array();
        exits.is_some_and(|exits| !exits.is_empty() && exits.iter().all(|exit| exit["code"] == 0))
    };
    let complete: Vec<&Value> = processes.iter().filter(has_succeeded).collect();
    // What was killed has ended in time, but has done nothing.
    let deadlines = list("deadlines");
    let kept = deadlines.iter().filter(|deadline| {
        let is_complete = complete.iter().any(|it| it["name"] == deadline["name"]);
        is_complete && deadline["kept"] == true
    });
    let killed = oom_kills()? - kills;
    let peak_bytes = |task: &Value| task["peak_rss_bytes"].as_u64().unwrap_or(0);
    Ok(json!({
        "planner": if blind { "memory-blind" } else { "memory-aware" },
        "status": status,
        "killed_for_memory": killed,
        "jobs_complete": complete.len(),
        "peak_rss_bytes": tasks.iter().map(peak_bytes).collect::<Vec<_>>(),
        "together_ms": overlap_ns as f64 / 1e6,
        "ended_after_ms": spans.iter().map(|span| (span.1 - first_ns) as f64 / 1e6).collect::<Vec<_>>(),
        "deadlines_kept": kept.count(),
        "exits": processes
            .iter()
            .map(|process| json!({ "process": process["name"], "exits": process["exits"] }))
            .collect::<Vec<_>>(),
    }))
}

pub fn study() -> Result<Value, String> {
    fs::create_dir_all(DIR).context(DIR)?;
    let file = |name: &str, text: String| fs::write(format!("{DIR}/{name}"), text).context(name);
    let rate_insns_per_ms = rate().insns_per_ms();
    file(
        "machine.toml",
        format!(
            "[[node]]\nname = \"vm\"\nmemory_bytes = {NODE_BYTES}\nrate_insns_per_s = {}\n\
             cores = [{{ name = \"c0\", cpu = 0 }}, {{ name = \"c1\", cpu = 1 }}]\n",
            rate_insns_per_ms * 1000
        ),
    )?;
    let available_bytes = available_bytes()?;
    let mut alone = Vec::new();
    for bytes in JOBS_BYTES {
        // The first one finds pages that are clear.
        alone_ns(bytes)?;
        alone.push(alone_ns(bytes)?);
    }
    // Both fit one behind the other, with room for a tenth more.
    let deadline_ns = alone.iter().sum::<u64>() * 5 / 4 + 500_000_000;
    for ((name, bytes), alone_ns) in ["large", "small"].iter().zip(JOBS_BYTES).zip(&alone) {
        file(
            &format!("{name}.toml"),
            format!(
                "name = \"{name}\"\ndeadline_ns = {deadline_ns}\n[[process]]\nid = 1\n\
                 name = \"{name}\"\nmemory_bytes = {}\n\
                 command = [\"{}\", \"touch\", \"{bytes}\", \"{INSNS}\"]\ntasks = [{}]\n",
                (bytes + PROGRAM_BYTES).min(NODE_BYTES),
                program()?,
                alone_ns * rate_insns_per_ms / 1_000_000
            ),
        )?;
    }
    Ok(json!({
        "node_bytes": NODE_BYTES,
        "available_bytes": available_bytes,
        "jobs_bytes": JOBS_BYTES,
        "alone_ms": alone.iter().map(|&ns| ns as f64 / 1e6).collect::<Vec<_>>(),
        "deadline_ms": deadline_ns as f64 / 1e6,
        "blind": planned(true)?,
        "aware": planned(false)?,
    }))
}
