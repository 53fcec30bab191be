// SPDX-License-Identifier: GPL-2.0
//! Steps of Slurm jobs where nobody plans: a service has tests of its own.

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

fn job(name: &str, shell: &str) -> String {
    format!(
        "name = \"{name}\"\ndeadline_ns = 9_000_000_000\n[[process]]\nid = 1\n\
         memory_bytes = 4096\ncommand = ['sh', '-c', '''{shell}''']\ntasks = [10]\n"
    )
}

fn directory(name: &str, text: &str) -> PathBuf {
    common::directory(name, &[("job.toml", text)])
}

/// The command of a step on the second node of job 71.
fn step(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pbsctl"));
    command
        .args(arguments)
        .args(["step", "job.toml"])
        .current_dir(directory)
        .env("PBS_DEVICE", "/nowhere/pbs_plan")
        .env("PBS_SOCKET", "/nowhere/pbs.sock")
        .env("SLURM_JOB_ID", "71")
        .env("SLURM_NODEID", "1")
        .env("SLURM_NNODES", "2")
        .stdin(Stdio::null());
    command
}

/// The output is that of the programs, the missing plan is reported once, and the status is the
/// program's.
#[test]
fn programs_run_without_a_plan() {
    let text = job("sort-%n", "echo $SCHED_PBS_JOB_NAME $SLURM_NODEID; exit 3");
    let directory = directory("step-plain", &text);
    let ran = step(&directory, &[]).output().unwrap();
    assert_eq!(ran.status.code(), Some(3));
    assert_eq!(String::from_utf8(ran.stdout).unwrap(), "sort-1 1\n");
    let told = String::from_utf8(ran.stderr).unwrap();
    let lines: Vec<_> = told.lines().collect();
    assert_eq!(lines.len(), 2, "{told}");
    assert!(lines[0].starts_with("pbsctl: no plan: there is no /nowhere/pbs_plan"), "{told}");
    assert!(lines[1].contains("job sort-1: a program failed: status 3"), "{told}");
}

#[test]
fn json_is_the_only_text_on_standard_output() {
    let directory = directory("step-json", &job("sort", "echo said"));
    let ran = step(&directory, &["--json"]).output().unwrap();
    assert_eq!(ran.status.code(), Some(0));
    let json: serde_json::Value = serde_json::from_slice(&ran.stdout).unwrap();
    let expected = serde_json::json!({
        "schema": "pbs.step/1", "allocation": 71, "node": 1, "job": "sort",
        "outcome": "complete",
    });
    assert_eq!(json, expected);
    assert!(String::from_utf8(ran.stderr).unwrap().contains("said\n"));
}

/// Programs get signals as they would from a shell, though this command takes its own another
/// way.
#[test]
fn a_signal_ends_the_programs() {
    let shell = "trap 'echo told > told; exit 0' TERM; touch began; \
                 while :; do sleep 0.01; done";
    let directory = directory("step-signal", &job("sort", shell));
    let mut child = step(&directory, &[]).stderr(Stdio::null()).spawn().unwrap();
    while !directory.join("began").exists() {
        assert_eq!(child.try_wait().unwrap(), None, "it has ended");
        sleep(Duration::from_millis(1));
    }
    let killed = Command::new("kill").arg(child.id().to_string()).status();
    assert!(killed.unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(fs::read_to_string(directory.join("told")).unwrap(), "told\n");
}

#[test]
fn outside_slurm_a_remedy_is_given() {
    let directory = directory("step-none", &job("sort", "touch ran"));
    let ran = step(&directory, &[]).env_remove("SLURM_JOB_ID").output();
    let ran = ran.unwrap();
    assert_eq!(ran.status.code(), Some(2));
    let told = String::from_utf8(ran.stderr).unwrap();
    assert!(told.contains("SLURM_JOB_ID") && told.contains("srun"), "{told}");
    assert!(!directory.join("ran").exists());
}
