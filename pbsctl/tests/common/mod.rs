// SPDX-License-Identifier: GPL-2.0
//! Runs the command.

#![allow(dead_code)]

pub(crate) mod schemas;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use pbs_history::{
    Corun, Fingerprint, Kind, NewRun, Options, Outcome, ProcessRun, RunEnd, Store, TaskRun,
};
use pbs_interference::{Beside, Key, Level, Neighbour, Sample};

/// A task that is far beyond t2_task, and a process beside it.
pub(crate) const LATE: &str = "plan_id = 7
[config]
no_preemption_ns = 10_000
stress_gain_ns = 400_000
t1_spares_last_slot = false
[[process]]
id = 1
name = \"far\"
tasks = [{ planned_insns = 50_000_000, real_insns = 150_000_000 }, 10_000_000]
[[process]]
id = 2
tasks = [20_000_000]
[[cpu]]
cpu = 0
slots = [\"far\", 2, \"far\"]
";

pub(crate) struct Ran {
    pub(crate) status: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|e| panic!("{e}: {}", self.stdout))
    }
}

pub(crate) fn pbsctl(arguments: &[&str], stdin: &str) -> Ran {
    pbsctl_of_bytes(arguments, stdin.as_bytes())
}

/// Runs pbsctl with standard input that need not be text.
pub(crate) fn pbsctl_of_bytes(arguments: &[&str], stdin: &[u8]) -> Ran {
    let mut child = Command::new(env!("CARGO_BIN_EXE_pbsctl"))
        .args(arguments)
        .env_remove("PBS_DEVICE")
        .env("TZ", "UTC0")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that does not read its input may be gone already.
    let _ = child.stdin.take().unwrap().write_all(stdin);
    let output = child.wait_with_output().unwrap();
    Ran {
        status: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

pub(crate) fn scratch(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// A new directory of that name, with these files.
pub(crate) fn directory(name: &str, files: &[(&str, &str)]) -> PathBuf {
    let directory = scratch(name);
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).unwrap();
    for (file, text) in files {
        fs::write(directory.join(file), text).unwrap();
    }
    directory
}

/// Every verb: each names an answer in JSON, and is a command of its own for scripts that were
/// written before there were groups.
pub(crate) const VERBS: [&str; 42] = [
    "check",
    "load",
    "run",
    "profile",
    "submit",
    "step",
    "withdraw",
    "jobs",
    "job",
    "cancel",
    "hold",
    "release",
    "alter",
    "watch",
    "drain",
    "resume",
    "status",
    "sim",
    "record",
    "replay",
    "report",
    "trace",
    "study",
    "cluster",
    "rms",
    "interference",
    "apps",
    "cosched",
    "csi",
    "events",
    "top",
    "explain",
    "plan",
    "history",
    "stat",
    "show",
    "import",
    "gen",
    "drop",
    "schema",
    "completions",
    "man",
];

/// Names of the commands that `--help` lists, and of those in its groups (`job submit`).
pub(crate) fn commands() -> Vec<String> {
    let mut all = Vec::new();
    for name in listed(&[]) {
        match name.as_str() {
            "job" | "plan" | "node" | "service" => {
                let below = listed(&[&name]).into_iter().filter(|below| below != "help");
                all.extend(below.map(|below| format!("{name} {below}")));
            }
            _ => all.push(name),
        }
    }
    all
}

/// Commands that `--help` lists below a command.
fn listed(command: &[&str]) -> Vec<String> {
    let words: Vec<&str> = command.iter().copied().chain(["--help"]).collect();
    let help = pbsctl(&words, "").stdout;
    let (_, after) = help.split_once("Commands:\n").unwrap();
    let (list, _) = after.split_once("\n\n").unwrap();
    let first_words =
        list.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = first_words.filter_map(|line| line.split_whitespace().next());
    names.map(str::to_owned).collect()
}

/// A history of two jobs whose processes have run alone and beside each other: of
/// "render", which is slowed by half, and of "backup", which is not. A third, "index", is
/// only known by its name.
pub(crate) fn slowed(file: &Path) {
    let key = |name: &str, task| Key { fingerprint: Fingerprint::of([name]).0, task, variant: 0 };
    let beside = |others: &[Key], duration_ns| Beside {
        neighbours: (others.iter()).map(|&key| Neighbour { level: Level::Llc, key }).collect(),
        duration_ns,
    };
    let mut store = Store::open(file, Options::DEFAULT).unwrap();
    let mut record = |name: &str, task: u32, coruns: &[Corun]| {
        let new = NewRun {
            job: &format!("{name}-job"),
            kind: Kind::Plan,
            submitted_unix_ns: 1,
            request: "",
            reservation: "",
            order: None,
        };
        let id = store.begin_run(&new).unwrap();
        let figures = ProcessRun {
            process: 1,
            name: Some(name.into()),
            fingerprint: Fingerprint::of([name]),
            outcome: Outcome::Complete,
            ran_ns: 1,
            tasks: vec![TaskRun {
                task,
                name: None,
                planned_insns: 1,
                retired_insns: 1,
                peak_memory_bytes: 0,
                preemptions: 0,
                outcome: Outcome::Complete,
            }],
        };
        let end = RunEnd { figures: &[figures], coruns, ..RunEnd::new(2, Outcome::Complete) };
        let done = store.end_run(id, &end);
        done.unwrap();
    };
    let (render, backup) = (key("render", 4), key("backup", 0));
    let corun = |victim, insns, parts: &[Beside]| Corun {
        sample: Sample {
            victim,
            insns,
            ran_ns: parts.iter().map(|part| part.duration_ns).sum(),
            beside: parts.to_vec(),
        },
        by_clock: false,
    };
    const MS: u64 = 1_000_000;
    for _ in 0..10 {
        let alone = corun(render, 300 * MS, &[beside(&[], 100 * MS)]);
        let parts = [beside(&[], 40 * MS), beside(&[backup], 90 * MS)];
        let both = corun(render, 300 * MS, &parts);
        record("render", 4, &[alone, both]);
        let alone = corun(backup, 100 * MS, &[beside(&[], 50 * MS)]);
        let both = corun(backup, 100 * MS, &[beside(&[render], 50 * MS)]);
        record("backup", 0, &[alone, both]);
    }
    record("index", 0, &[]);
}
