// SPDX-License-Identifier: GPL-2.0
//! `pbsctl node replay --config`: recorded inputs under another configuration.

mod common;

use common::{pbsctl, scratch, LATE};
use serde_json::Value;

/// Records a simulation, with these options.
fn record(name: &str, plan: &str, options: &[&str]) -> String {
    let file = scratch(name).to_str().unwrap().to_string();
    let ran = pbsctl(&[&["sim", "-", "--record", &file], options].concat(), plan);
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""));
    file
}

fn what_if(file: &str, config: &[&str]) -> Value {
    let mut arguments = vec!["--json", "node", "replay", file];
    for value in config {
        arguments.extend(["--config", value]);
    }
    let ran = pbsctl(&arguments, "");
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""));
    ran.json()
}

/// Kind, reason, process and task of events, in order; without those of the simulator itself.
fn keys(events: &Value) -> Vec<[Value; 4]> {
    let events = events.as_array().unwrap().iter();
    let events =
        events.filter(|event| event["kind"] != "plan_installed" && event["kind"] != "attached");
    let key = |event: &Value| ["kind", "reason", "process", "task"].map(|key| event[key].clone());
    events.map(key).collect()
}

/// Events without an equal one in the others.
fn without(mut these: Vec<[Value; 4]>, others: &[[Value; 4]]) -> Vec<[Value; 4]> {
    for other in others {
        if let Some(at) = these.iter().position(|event| event == other) {
            these.remove(at);
        }
    }
    these
}

fn generated(scenario: &str, seed: &str) -> String {
    let ran = pbsctl(&["plan", "generate", scenario, "--seed", seed], "");
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    ran.stdout
}

#[test]
fn the_recorded_configuration_changes_nothing() {
    for scenario in ["rogue-task", "scatter-gather", "all-slightly-late"] {
        let plan = generated(scenario, "3");
        for scheduler in ["none", "stretch"] {
            let file = record("same-world.inputs", &plan, &["--scheduler", scheduler]);
            // The default, which these plans have.
            let json = what_if(&file, &["t1_spares_last_slot=true"]);
            assert_eq!(json["partings"], Value::Array(Vec::new()), "{scenario} {scheduler}");
            let inputs = pbsctl(&["--json", "replay", &file], "").json()["inputs"].take();
            assert_eq!(json["inputs"], inputs, "{scenario} {scheduler}");
            for count in json["counts"].as_array().unwrap() {
                assert_eq!(count["recorded"], count["predicted"], "{scenario} {scheduler}");
            }
        }
    }
}

/// Without answers, thresholds that only signal change no decision: the events are those of a
/// simulation under the changed configuration, but for their numbers.
#[test]
fn a_prediction_is_what_the_simulation_does() {
    let mut different = 0;
    for (scenario, seed) in
        [("rogue-task", "1"), ("rogue-task", "2"), ("scatter-gather", "3"), ("rogue-task", "4")]
    {
        let plan = generated(scenario, seed);
        let recorded = pbsctl(&["--json", "sim", "-"], &plan).json()["events"].take();
        let file = record("predicted.inputs", &plan, &[]);
        for config in ["thresholds=t1", "sigma_t2_permille=1100", "sigma_t2_permille=3000"] {
            let what = format!("{scenario} {seed} {config}");
            let json = what_if(&file, &[config]);
            assert_eq!(json["partings"], Value::Array(Vec::new()), "{what}");
            let simulated = pbsctl(&["--json", "sim", "-", "--config", config], &plan).json();
            let (recorded, simulated) = (keys(&recorded), keys(&simulated["events"]));
            let only = |these: &[[Value; 4]], others: &[[Value; 4]]| {
                let mut only = without(these.to_vec(), others);
                only.sort_by_key(|event| format!("{event:?}"));
                only
            };
            let sorted = |events: &Value| only(&keys(events), &[]);
            assert_eq!(sorted(&json["only_recorded"]), only(&recorded, &simulated), "{what}");
            assert_eq!(sorted(&json["only_predicted"]), only(&simulated, &recorded), "{what}");
            different += usize::from(recorded.len() != simulated.len());
        }
    }
    assert!(different > 3, "{different}");
}

#[test]
fn another_decision_ends_the_prediction() {
    let file = record("other-decision.inputs", LATE, &[]);
    let json = what_if(&file, &["thresholds=none"]);
    let parting = &json["partings"][0];
    assert_eq!(parting["cause"], "decision", "{json}");
    assert_ne!(parting["recorded_process"], parting["predicted_process"]);
    assert_eq!(json["predicted_until_ns"], parting["time_ns"]);
    assert!(json["after"].as_u64() > Some(0), "{json}");
    let ran = pbsctl(&["node", "replay", &file, "--config", "thresholds=none"], "");
    assert!(ran.stdout.contains("the recorded world and the decision part"), "{}", ran.stdout);
    assert!(ran.stdout.contains("the recorded node let process "), "{}", ran.stdout);
}

#[test]
fn a_plan_after_other_signals_ends_the_prediction() {
    let file =
        record("other-plan.inputs", &generated("rogue-task", "1"), &["--scheduler", "stretch"]);
    let json = what_if(&file, &["thresholds=t1"]);
    assert_eq!(json["partings"][0]["cause"], "plan", "{json}");
}

/// A recorded change is an input of both nodes: without another value, both courses are the same.
/// With one, the other node keeps it.
#[test]
fn a_recorded_change_is_made_on_both_nodes() {
    let plan = generated("rogue-task", "1");
    let change = ["--change", "20ms:sigma_t2_permille=1100", "--change", "20ms:stress_reset=0"];
    let file = record("changed.inputs", &plan, &change);
    let replayed = pbsctl(&["--json", "node", "replay", &file, "--events"], "");
    assert_eq!(replayed.status, 0, "{}", replayed.stderr);
    let json = what_if(&file, &["t1_spares_last_slot=true"]);
    assert_eq!(json["partings"], Value::Array(Vec::new()), "{json}");
    let of_changes = |json: &Value| {
        let counts = json["counts"].as_array().unwrap();
        let count = counts.iter().find(|count| count["kind"] == "configured").unwrap();
        (count["recorded"].as_u64(), count["predicted"].as_u64())
    };
    assert_eq!(of_changes(&json), (Some(1), Some(1)));
    assert_eq!(json["only_predicted"], Value::Array(Vec::new()), "{json}");
    // t2_task stays as it is under the prediction: fewer tasks are too late.
    let json = what_if(&file, &["sigma_t2_permille=100_000"]);
    let late = |side: &str| {
        let counts = json["counts"].as_array().unwrap().iter();
        let of = counts.filter(|count| count["kind"] == "late" && count["reason"] == "task");
        of.filter_map(|count| count[side].as_u64()).sum::<u64>()
    };
    assert!(late("recorded") > late("predicted"), "{json}");
    // With t1 above the recorded t2_task, the change cannot be made.
    let json = what_if(&file, &["sigma_t1_permille=1200"]);
    assert_eq!(json["partings"][0]["cause"], "configuration", "{json}");
}

#[test]
fn a_value_that_does_not_exist_is_refused() {
    let file = record("no-value.inputs", LATE, &[]);
    let ran = pbsctl(&["node", "replay", &file, "--config", "sigma=3"], "");
    assert_eq!(ran.status, 2);
    assert!(ran.stderr.contains("sigma"), "{}", ran.stderr);
}
