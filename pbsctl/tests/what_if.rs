// SPDX-License-Identifier: GPL-2.0
//! `pbsctl node replay --config` and `--policy`: recordings under another configuration.

mod common;

use std::collections::BTreeMap;

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

fn what_if_policy(file: &str, policy: &str) -> Value {
    let ran = pbsctl(&["--json", "node", "replay", file, "--policy", policy], "");
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""));
    ran.json()
}

/// Numbers of events by kind and reason, under one of the policies.
fn numbers(json: &Value, side: &str) -> BTreeMap<(String, String), u64> {
    let counts = json["counts"].as_array().unwrap().iter();
    let number = |count: &Value| {
        let key = (count["kind"].to_string(), count["reason"].to_string());
        (key, count[side].as_u64().unwrap())
    };
    counts.map(number).filter(|(_, number)| *number > 0).collect()
}

/// The recorded lengths are those of the plan.  Therefore the simulation under each policy is that
/// of the plan under this policy, and the first one is the recording.
#[test]
fn another_policy_does_what_its_simulation_does() {
    let mut different = 0;
    for (scenario, seed) in [("rogue-task", "1"), ("rogue-task", "3"), ("all-slightly-late", "2")] {
        let plan = generated(scenario, seed);
        let file = record("policy.inputs", &plan, &[]);
        for policy in ["pieces", "nobody", "least_slack"] {
            let what = format!("{scenario} {seed} {policy}");
            let json = what_if_policy(&file, policy);
            assert_eq!(json["planned_tasks"], 0, "{what}");
            for (side, policy) in [("recorded_policy", "latest"), ("policy", policy)] {
                assert_eq!(json[side], *policy, "{what}");
                let config = format!("idle_policy={policy}");
                let simulated = pbsctl(&["--json", "sim", "-", "--config", &config], &plan).json();
                let mut expected = BTreeMap::new();
                for event in simulated["events"].as_array().unwrap() {
                    let key = (event["kind"].to_string(), event["reason"].to_string());
                    *expected.entry(key).or_insert(0) += 1;
                }
                assert_eq!(numbers(&json, side), expected, "{what}");
                let kept = |process: &&Value| process["kept"] == true;
                let processes = simulated["processes"].as_array().unwrap();
                assert_eq!(json["kept"][side], processes.iter().filter(kept).count(), "{what}");
                for (process, simulated) in
                    json["processes"].as_array().unwrap().iter().zip(processes)
                {
                    assert_eq!(process["process"], simulated["id"], "{what}");
                    assert_eq!(process["end_ns"][side], simulated["ended_ns"], "{what}");
                    assert_eq!(process["deadline_ns"], simulated["deadline_ns"], "{what}");
                    assert_eq!(process["recorded_end_ns"], process["end_ns"]["recorded_policy"]);
                }
            }
            different += usize::from(numbers(&json, "policy") != numbers(&json, "recorded_policy"));
        }
    }
    assert!(different > 4, "{different}");
    let text =
        pbsctl(&["node", "replay", &record("policy.inputs", LATE, &[]), "--policy", "nobody"], "");
    assert!(text.stdout.contains("Deadlines kept: "), "{}", text.stdout);
    assert!(text.stdout.contains("LATEST  NOBODY"), "{}", text.stdout);
}

#[test]
fn tasks_that_did_not_end_have_their_planned_length() {
    let plan = generated("rogue-task", "1");
    let file = record("cut.inputs", &plan, &["--until", "20000"]);
    let json = what_if_policy(&file, "pieces");
    assert!(json["measured_tasks"].as_u64() > Some(0), "{json}");
    assert!(json["planned_tasks"].as_u64() > Some(0), "{json}");
    let ends = json["processes"].as_array().unwrap().iter();
    let recorded = ends.filter(|process| !process["recorded_end_ns"].is_null()).count();
    assert!(recorded < json["processes"].as_array().unwrap().len(), "{json}");
    // Plans that took over are reported, and left out.
    let file = record("plans.inputs", &plan, &["--scheduler", "stretch"]);
    let json = what_if_policy(&file, "latest");
    assert!(json["later_plans"].as_u64() > Some(0), "{json}");
    assert_eq!(numbers(&json, "policy"), numbers(&json, "recorded_policy"));
}

#[test]
fn a_recording_without_a_beginning_has_no_other_policy() {
    let file = record("no-beginning.inputs", LATE, &[]);
    let ran = pbsctl(&["node", "replay", &file, "--policy", "laziest"], "");
    assert_eq!(ran.status, 2);
    assert!(ran.stderr.contains("write one of latest, least_slack"), "{}", ran.stderr);
    // The file ends within its first plan: nothing has begun.
    let bytes = std::fs::read(&file).unwrap();
    std::fs::write(&file, &bytes[..64]).unwrap();
    let ran = pbsctl(&["node", "replay", &file, "--policy", "pieces"], "");
    assert_eq!(ran.status, 1, "{}", ran.stdout);
    assert!(ran.stderr.contains("there is no beginning of a plan"), "{}", ran.stderr);
}

/// A recording that begins with a snapshot has no input that another configuration could receive.
#[test]
fn a_recording_without_a_beginning_predicts_nothing() {
    let plan = generated("rogue-task", "1");
    let file = record("snapshot.inputs", &plan, &["--record-from", "780ms"]);
    let ran = pbsctl(&["node", "replay", &file, "--config", "thresholds=t1"], "");
    assert_eq!((ran.status, ran.stdout.as_str()), (1, ""), "{}", ran.stderr);
    let words = "inputs are skipped, since the recording does not have the beginning of their plan";
    assert!(ran.stderr.contains(words), "{}", ran.stderr);
    assert!(ran.stderr.contains("without --record-from"), "{}", ran.stderr);
}

/// The exit status is that of a replay: the prediction lacks what the recording lacks.
#[test]
fn a_prediction_from_a_part_is_incomplete() {
    let file = record("part.inputs", &generated("rogue-task", "1"), &[]);
    let bytes = std::fs::read(&file).unwrap();
    std::fs::write(&file, &bytes[..bytes.len() * 2 / 3]).unwrap();
    let config = ["--config", "t1_spares_last_slot=true"];
    let ran = pbsctl(&[&["--json", "node", "replay", &file], &config[..]].concat(), "");
    assert_eq!(ran.status, 4, "{}", ran.stderr);
    assert!(ran.json()["inputs"].as_u64() > Some(0), "{}", ran.stdout);
}

#[test]
fn a_value_that_does_not_exist_is_refused() {
    let file = record("no-value.inputs", LATE, &[]);
    let ran = pbsctl(&["node", "replay", &file, "--config", "sigma=3"], "");
    assert_eq!(ran.status, 2);
    assert!(ran.stderr.contains("sigma"), "{}", ran.stderr);
}
