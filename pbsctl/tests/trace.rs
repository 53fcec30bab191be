// SPDX-License-Identifier: GPL-2.0
//! `pbsctl trace` as people and scripts use it.

mod common;

use common::{pbsctl, scratch, LATE};
use serde_json::Value;

fn recording() -> String {
    let ran = pbsctl(&["--json", "sim", "-"], LATE);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    ran.stdout
}

/// The recording in the form of `pbsctl --json events`.
fn event_lines(recording: &str) -> String {
    let recording: Value = serde_json::from_str(recording).unwrap();
    let events = recording["events"].as_array().unwrap().iter();
    events.map(|event| format!("{event}\n")).collect()
}

fn slices(trace: &Value, category: &str) -> Vec<String> {
    let events = trace["traceEvents"].as_array().unwrap().iter();
    let slices = events.filter(|event| event["ph"] == "X" && event["cat"] == category);
    slices.map(|slice| format!("{} {}", slice["name"].as_str().unwrap(), slice["ts"])).collect()
}

#[test]
fn a_simulation_becomes_a_trace() {
    let file = scratch("trace.json");
    let name = file.to_str().unwrap();
    let ran = pbsctl(&["trace", "-", "-o", name], &recording());
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""));
    assert!(ran.stdout.starts_with(name), "{}", ran.stdout);
    let trace: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(
        slices(&trace, "planned"),
        ["far 0 0.0", "process 2 task 0 50000.0", "far 1 70000.0"]
    );
    assert_eq!(slices(&trace, "slot")[0], "far 0 0.0");
    // The same on standard output.
    let printed = pbsctl(&["trace", "-"], &recording());
    assert_eq!(printed.json(), trace);
    let json = pbsctl(&["--json", "trace", "-", "-o", name], &recording()).json();
    assert_eq!(json["plans"], serde_json::json!([7]));
    assert_eq!(json["trace_events"], trace["traceEvents"].as_array().unwrap().len());
}

#[test]
fn events_and_their_plan_say_the_same_as_a_recording() {
    let recording = recording();
    let plan = scratch("trace-plan.toml");
    std::fs::write(&plan, LATE).unwrap();
    let events = event_lines(&recording);
    let plan = plan.to_str().unwrap();
    let of_events = pbsctl(&["trace", "-", "--plan", plan, "--rate", "1000000"], &events);
    assert_eq!(of_events.status, 0, "{}", of_events.stderr);
    let of_recording = pbsctl(&["trace", "-"], &recording).json();
    assert_eq!(of_events.json()["traceEvents"], of_recording["traceEvents"]);
    // At half the rate the plan takes twice as long.
    let slower = pbsctl(&["trace", "-", "--plan", plan, "--rate", "500000"], &events).json();
    assert_eq!(slices(&slower, "planned")[1], "process 2 task 0 100000.0");
}

#[test]
fn what_is_missing_is_asked_for() {
    let recording = recording();
    let events = event_lines(&recording);
    let cases: [(&[&str], &str, i32, &str); 6] = [
        (&["trace", "-"], &events, 2, "add --rate"),
        (&["trace", "-", "--rate", "5"], &events, 2, "add each plan with --plan"),
        (&["trace", "-", "--rate", "5"], &recording, 2, "are only for events"),
        (&["trace", "-"], "{}", 1, "pbsctl --json sim"),
        (&["trace", "-", "--follow"], "", 2, "cannot be used with"),
        (&["--device", "/none", "trace"], "", 1, "this kernel has no SCHED_PBS"),
    ];
    for (arguments, stdin, status, words) in cases {
        let ran = pbsctl(arguments, stdin);
        assert_eq!(ran.status, status, "{arguments:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(words), "{arguments:?}: {}", ran.stderr);
    }
}
