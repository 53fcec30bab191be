// SPDX-License-Identifier: GPL-2.0
//! Answers about jobs of the service are valid under their JSON Schemas.

mod common;

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::thread::{self, JoinHandle};

use common::schemas::Schemas;
use common::{directory, pbsctl};
use serde_json::{json, Value};

const JOB: &str =
    "name = \"sort\"\ndeadline_ns = 9_000_000_000\nvalue = 1_500\n[[process]]\nid = 1\n\
                   memory_bytes = 4_000_000\ncommand = [\"true\"]\ntasks = [1_000_000]\n";

/// A job with a value for each key.
fn full_job() -> Value {
    json!({
        "number": 3, "name": "sort", "uid": 1000, "state": "over", "reason": "failed (exit 3)",
        "outcome": "failed", "priority": 2, "best_effort": false, "cpus": [0, 1],
        "allocation": 7, "submitted_unix_ns": 5, "deadline_unix_ns": 9,
        "expected_start_unix_ns": 6, "expected_end_unix_ns": 8, "started_unix_ns": 6,
        "begun_unix_ns": 6, "ended_unix_ns": 8, "kept": false, "exit_code": 3,
        "signal": "SIGKILL",
    })
}

/// Parameters of the service's reply to a method.
fn reply(method: &str) -> Value {
    let sparse = json!({ "number": 4, "name": "pack", "state": "held", "submitted_unix_ns": 5 });
    match method {
        "Submit" | "List" => json!({ "jobs": [full_job(), sparse] }),
        "Drain" | "Resume" | "SetResource" | "Status" => json!({
            "version": "0.1.0", "state": "draining", "kernel": "7.1.0",
            "rate_insns_per_ms": 1_000_000, "since_unix_ns": 3, "waiting": 1, "planned": 0,
            "running": 2, "recorded": true,
            "resources": [{ "name": "matlab", "amount": 1, "declared": 2, "promised": 2 }],
        }),
        "Checkpoint" => json!({ "processes": 2 }),
        "Watch" => json!({ "unix_ns": 4, "job": 3, "kind": "over", "text": "is over" }),
        "Metrics" => json!({
            "open_jobs": [{ "state": "held", "jobs": 1 }],
            "users": [{
                "uid": 1000, "submitted": 2, "ended": [{ "outcome": "complete", "jobs": 1 }],
                "deadlines_kept": 1, "deadlines_missed": 0,
                "budgets": [{ "resource": "jobs", "used": 1, "limit": 9 }],
            }],
            "methods": [{
                "method": "List", "calls": 1, "refused": 0, "answer_ns": 7,
                "answers": [{ "within_ns": 1_000, "calls": 1 }],
            }],
        }),
        _ => json!({
            "job": full_job(), "request": JOB,
            "processes": [{
                "number": 1, "name": null, "outcome": "complete", "tasks": 1, "ended_tasks": 1,
                "planned_insns": 5, "retired_insns": 6, "peak_memory_bytes": 7,
            }],
            "programs": [{ "process": 1, "program": "true", "code": 3, "signal": null,
                           "error": null }],
            "usage": {
                "cpu_ns": 3_400_000_000_u64, "programs_cpu_ns": 200_000_000,
                "others_cpu_ns": 3_200_000_000_u64, "peak_memory_bytes": 88_080_384,
                "memory_source": "group", "advice": "make them processes of the job",
            },
        }),
    }
}

/// A service that answers this number of connections.
fn serve(socket: &Path, connections: usize) -> JoinHandle<()> {
    serve_by(socket, connections, |method, _| reply(method))
}

/// A service that answers this number of connections so: by the method and its parameters.
fn serve_by(
    socket: &Path,
    connections: usize,
    mut reply: impl FnMut(&str, &Value) -> Value + Send + 'static,
) -> JoinHandle<()> {
    let listener = UnixListener::bind(socket).unwrap();
    thread::spawn(move || {
        for _ in 0..connections {
            let (mut connection, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(connection.try_clone().unwrap());
            let mut call = Vec::new();
            while reader.read_until(0, &mut call).is_ok_and(|length| length > 0) {
                call.pop();
                let called: Value = serde_json::from_slice(&call).unwrap();
                let method = called["method"].as_str().unwrap().rsplit('.').next().unwrap();
                let answer = json!({ "parameters": reply(method, &called["parameters"]) });
                // A client that has gone asks no more.
                let _ = connection.write_all(format!("{answer}\0").as_bytes());
                call.clear();
            }
        }
    })
}

#[test]
fn answers_of_the_service_are_valid() {
    let directory = directory("answers-service", &[("job.toml", JOB)]);
    let socket = directory.join("pbs.sock");
    let at = socket.to_str().unwrap();
    let job = directory.join("job.toml");
    let job = job.to_str().unwrap();
    let commands = [
        ("submit", &["job", "submit", job][..]),
        ("jobs", &["job", "list", "--all"]),
        ("job", &["job", "show", "3"]),
        ("cancel", &["job", "cancel", "3"]),
        ("checkpoint", &["job", "checkpoint", "3"]),
        ("hold", &["job", "hold", "3"]),
        ("release", &["job", "release", "3"]),
        ("alter", &["job", "alter", "3", "--priority", "1"]),
        ("watch", &["job", "watch", "3"]),
        ("status", &["service", "status"]),
        ("drain", &["service", "drain"]),
        ("resume", &["service", "resume"]),
        ("set-resource", &["service", "set-resource", "matlab", "1"]),
        ("metrics", &["node", "metrics", "--device", "/nonexistent"]),
    ];
    let serving = serve(&socket, commands.len());
    let schemas = Schemas::read();
    for (name, arguments) in commands {
        let ran = pbsctl(&[&["--json"], arguments, &["--socket", at]].concat(), "");
        let line: Value = match name {
            "watch" => serde_json::from_str(ran.stdout.lines().next().unwrap()).unwrap(),
            _ => serde_json::from_str(&ran.stdout)
                .unwrap_or_else(|_| panic!("{arguments:?}: {}", ran.stderr)),
        };
        assert_eq!(line["schema"], format!("pbs.{name}/1"), "{}{line}", ran.stderr);
        assert_eq!(schemas.answer_problem(&line), None, "{arguments:?}");
    }
    serving.join().unwrap();
    std::fs::remove_dir_all(&directory).unwrap();
}

/// The owner of a job and operators, who get its file, see its value.
#[test]
fn the_value_of_a_job_is_shown_with_its_file() {
    let directory = directory("answers-value", &[]);
    let socket = directory.join("pbs.sock");
    let serving = serve(&socket, 1);
    let ran = pbsctl(&["job", "show", "3", "--socket", socket.to_str().unwrap()], "");
    let rows = "Value          1,500\nPenalty        0\n";
    assert!(ran.stdout.contains(rows), "{}{}", ran.stderr, ran.stdout);
    serving.join().unwrap();
    std::fs::remove_dir_all(&directory).unwrap();
}

/// Options of value and penalty become keys of the job file, and its other lines stay as they were.
#[test]
fn options_of_worth_change_the_job_file_of_a_waiting_job() {
    let directory = directory("answers-worth", &[("job.toml", JOB)]);
    let (socket, job) = (directory.join("pbs.sock"), directory.join("job.toml"));
    let at = ["--socket", socket.to_str().unwrap()];
    let run = |arguments: &[&str], state: &'static str, is_own: bool| {
        let (sender, requests) = std::sync::mpsc::channel();
        let serving = serve_by(&socket, 1, move |method, parameters| {
            let sent = match method {
                "Submit" => &parameters["jobs"][0]["request"],
                _ => &parameters["alteration"]["request"],
            };
            // The test may have seen enough.
            let _ = sender.send(sent.as_str().map(str::to_owned));
            let mut reply = reply(method);
            if method == "Show" {
                reply["job"]["state"] = state.into();
                reply["request"] = if is_own { JOB.into() } else { Value::Null };
            }
            reply
        });
        let ran = pbsctl(&[arguments, &at].concat(), "");
        serving.join().unwrap();
        std::fs::remove_file(&socket).unwrap();
        (ran, requests.iter().flatten().last())
    };
    let worth = ["--value", "7", "--penalty", "2_000"];
    let changed = format!("penalty = 2000\n{}", JOB.replace("1_500", "7"));
    let submit = [&["job", "submit", job.to_str().unwrap()], &worth[..]].concat();
    assert_eq!(run(&submit, "waiting", true).1.unwrap(), changed);
    let alter = [&["job", "alter", "3"], &worth[..]].concat();
    for state in ["waiting", "held"] {
        let (ran, request) = run(&alter, state, true);
        assert_eq!((ran.status, request), (0, Some(changed.clone())), "{}", ran.stderr);
    }
    let with_file = [&alter[..], &["--file", job.to_str().unwrap()]].concat();
    assert_eq!(run(&with_file, "waiting", false).1.unwrap(), changed);
    for (state, is_own, why) in [
        ("running", true, "job 3 is running; its value can be changed only while it waits"),
        ("waiting", false, "job 3 is another user's; only its owner can change its value"),
    ] {
        let (ran, request) = run(&alter, state, is_own);
        assert_eq!((ran.status, request), (1, None));
        assert!(ran.stderr.contains(why), "{}", ran.stderr);
    }
    let ran = pbsctl(&["job", "alter", "3", "--value", "1_000_000_000_001"], "");
    assert_eq!(ran.status, 2);
    let why = "'1_000_000_000_001' for '--value <N>': it must be between 0 and 1_000_000_000_000";
    assert!(ran.stderr.contains(why), "{}", ran.stderr);
    let ran = pbsctl(&["job", "alter", "3"], "");
    assert!(ran.stderr.contains("add --deadline, --priority, --value, --penalty or --file"));
    std::fs::remove_dir_all(&directory).unwrap();
}

/// A user sees what processes have used that the programs of a job have started, and what to do.
#[test]
fn processes_outside_of_the_plan_are_shown_with_a_remedy() {
    let directory = directory("answers-others", &[]);
    let socket = directory.join("pbs.sock");
    let serving = serve(&socket, 1);
    let ran = pbsctl(&["job", "show", "3", "--socket", socket.to_str().unwrap()], "");
    let rows = "CPU time       3.4 s, 3.2 s of it outside of the plan\n\
                Memory         84.0 MiB (control group, with file cache)\n";
    assert!(ran.stdout.contains(rows), "{}{}", ran.stderr, ran.stdout);
    let remedy = "\nJob 3: make them processes of the job.\n";
    assert!(ran.stdout.ends_with(remedy), "{}", ran.stdout);
    serving.join().unwrap();
    std::fs::remove_dir_all(&directory).unwrap();
}
