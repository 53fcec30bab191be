// SPDX-License-Identifier: GPL-2.0
//! `pbsctl record` and `pbsctl replay` as people and scripts use them.

mod common;

use common::{pbsctl, scratch, LATE};

/// A recording of a simulation.
fn recording(name: &str) -> String {
    let file = scratch(name).to_str().unwrap().to_string();
    let ran = pbsctl(&["sim", "-", "--record", &file], LATE);
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""));
    file
}

#[test]
fn a_simulation_is_replayed_to_the_same() {
    let file = recording("same.inputs");
    let ran = pbsctl(&["replay", &file], "");
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""));
    assert!(ran.stdout.contains("CPU 0: the same, in "), "{}", ran.stdout);
    let json = pbsctl(&["--json", "replay", &file], "").json();
    assert_eq!(json["same"], true);
    assert_eq!(json["inputs"], json["recorded"]);
    assert!(json["decisions"].as_u64().unwrap() > 3);
    assert!(json.get("events").is_none());

    // The events are those of the simulation, but for what it tells itself.
    let simulated = pbsctl(&["--json", "sim", "-"], LATE).json();
    let kinds = |events: &serde_json::Value| {
        let events = events.as_array().unwrap().iter();
        let kinds = events.map(|event| event["kind"].as_str().unwrap().to_string());
        let own = ["plan_installed", "attached"];
        kinds.filter(|kind| !own.contains(&kind.as_str())).collect::<Vec<_>>()
    };
    let json = pbsctl(&["--json", "replay", &file, "--events"], "").json();
    assert_eq!(kinds(&json["events"]), kinds(&simulated["events"]));
    let text = pbsctl(&["replay", &file, "--events"], "").stdout;
    assert!(text.contains("late"), "{text}");
}

/// One bit in the file: the input whose it is is named, and that the file is damaged.
#[test]
fn one_bit_is_found() {
    let file = recording("bit.inputs");
    let mut bytes = std::fs::read(&file).unwrap();
    // The instructions of the last charge but one: kind 3 stands at byte 28 of an input.
    let charge = |input: &[u8]| input[28..30] == [3, 0] && input[30..] == [0, 0];
    let end = bytes.len() - 40;
    let mut places = (0..end / 32).map(|back| end - 32 * (back + 1));
    let mut charges = places.by_ref().filter(|&at| charge(&bytes[at..at + 32]));
    let at = charges.nth(1).unwrap();
    let left = (end - at) / 32 - 1;
    bytes[at + 8] ^= 1;
    std::fs::write(&file, &bytes).unwrap();
    let ran = pbsctl(&["replay", &file], "");
    assert_eq!(ran.status, 8, "{}", ran.stdout);
    assert!(ran.stdout.contains(" differs, at "), "{}", ran.stdout);
    assert!(ran.stdout.contains("recorded: charge process "), "{}", ran.stdout);
    assert!(ran.stdout.contains("replayed: charge process "), "{}", ran.stdout);
    assert!(ran.stdout.contains("The file is damaged at byte "), "{}", ran.stdout);
    let json = pbsctl(&["--json", "replay", &file], "").json();
    let cpu = &json["cpus"][0];
    let recorded = json["recorded"].as_u64().unwrap();
    assert_eq!(cpu["difference"]["number"], recorded - 1 - left as u64);
    assert_eq!(cpu["difference"]["recorded"]["kind"], "charge");
    assert_eq!(cpu["after"], left as u64 + 1);
}

#[test]
fn what_is_cut_short_is_told() {
    let file = recording("short.inputs");
    let bytes = std::fs::read(&file).unwrap();
    std::fs::write(&file, &bytes[..bytes.len() - 60]).unwrap();
    let ran = pbsctl(&["replay", &file], "");
    assert_eq!(ran.status, 4, "{}", ran.stdout);
    assert!(ran.stdout.contains("cut short"), "{}", ran.stdout);
}

#[test]
fn other_files_are_refused() {
    let file = scratch("plan-no-recording.toml");
    std::fs::write(&file, LATE).unwrap();
    let ran = pbsctl(&["replay", file.to_str().unwrap()], "");
    assert_eq!(ran.status, 1);
    assert!(ran.stderr.contains("no recording of inputs"), "{}", ran.stderr);
}

#[test]
fn where_nothing_can_be_recorded_that_is_told() {
    let file = scratch("none.inputs").to_str().unwrap().to_string();
    let arguments = ["record", "--inputs", "/nonexistent/pbs_inputs", "-o", &file, "--", "false"];
    let ran = pbsctl(&arguments, "");
    assert_eq!(ran.status, 1);
    assert!(ran.stderr.contains("/nonexistent/pbs_inputs"), "{}", ran.stderr);
}

#[test]
fn a_replay_stops_at_an_event_and_prints_the_state() {
    let file = recording("until.inputs");
    let until = |moment: &str| {
        pbsctl(&["--json", "node", "replay", &file, "--events", "--until", moment], "")
    };
    let late = until("late").json();
    let event = late["events"].as_array().unwrap().iter().find(|event| event["kind"] == "late");
    let event = event.unwrap();
    let node = &late["held"][0];
    assert_eq!(node["now_ns"], event["time_ns"]);
    let processes = node["processes"].as_array().unwrap();
    let process = processes.iter().find(|process| process["id"] == event["process"]).unwrap();
    assert_eq!(process["task"], event["task"]);
    assert_eq!(process["retired_insns"], event["retired_insns"]);
    assert_eq!(process["lateness_insns"], event["lateness_insns"]);
    assert!(late["inputs"].as_u64() < late["recorded"].as_u64(), "{late}");
    // The number of the event, and its time, are the same moment.
    for moment in [event["seq"].to_string(), format!("{} ns", event["time_ns"])] {
        assert_eq!(until(&moment).json()["held"], late["held"], "{moment}");
    }
    let text = pbsctl(&["node", "replay", &file, "--until", "late"], "").stdout;
    assert!(text.contains("CPU 0 after "), "{text}");
    for (moment, status, words) in [
        ("never", 2, "write the number of an event, a time with a unit, or one of "),
        ("9999999", 1, "the recording has no event 9999999; write a number from "),
        ("early", 1, "the recording has no event of the kind early"),
    ] {
        let ran = until(moment);
        assert_eq!(ran.status, status, "{moment}");
        assert!(ran.stderr.contains(words), "{}", ran.stderr);
    }
}

/// The replay of a recording that begins in the middle has the last events of the whole one.
#[test]
fn a_recording_begins_with_a_snapshot() {
    let plan = pbsctl(&["plan", "generate", "rogue-task", "--seed", "1"], "").stdout;
    let file = scratch("from.inputs").to_str().unwrap().to_string();
    let replay = |options: &[&str]| {
        let arguments = [&["--json", "sim", "-", "--record", &file][..], options].concat();
        let ran = pbsctl(&arguments, &plan);
        assert_eq!((ran.status, ran.stderr.as_str()), (0, ""));
        let ran = pbsctl(&["--json", "node", "replay", &file, "--events"], "");
        assert_eq!((ran.status, ran.stderr.as_str()), (0, ""));
        ran.json()
    };
    for scheduler in ["none", "stretch"] {
        let whole = replay(&["--scheduler", scheduler])["events"].take();
        let whole = whole.as_array().unwrap();
        for from in ["1ms", "20s", "90.5s"] {
            let json = replay(&["--scheduler", scheduler, "--record-from", from]);
            assert_eq!(json["same"], true, "{from}");
            assert_eq!(json["skipped"], 0, "{from}");
            assert_eq!(json["cpus"][0]["refused_snapshots"], serde_json::json!([]));
            let events = json["events"].as_array().unwrap();
            assert!(whole.ends_with(events), "{from}");
            assert!((1..whole.len()).contains(&events.len()), "{from}");
        }
    }
    // The state is that at the moment, which counts from the begin of the plan.
    replay(&["--record-from", "20s"]);
    let held = pbsctl(&["--json", "node", "replay", &file, "--until", "30s"], "").json();
    replay(&[]);
    let whole = pbsctl(&["--json", "node", "replay", &file, "--until", "30s"], "").json();
    assert_eq!(held["held"], whole["held"]);
    assert_eq!(held["held"].as_array().unwrap().len(), 1);
    assert!(held["inputs"].as_u64() < whole["inputs"].as_u64());

    replay(&["--record-from", "20s"]);
    let ran = pbsctl(&["node", "replay", &file, "--policy", "pieces"], "");
    assert_eq!(ran.status, 1);
    assert!(ran.stderr.contains("there is no beginning of a plan"), "{}", ran.stderr);
    let ran = pbsctl(&["node", "replay", &file, "--config", "thresholds=t1"], "");
    assert_eq!(ran.status, 1);
    assert!(ran.stderr.contains(" skipped, since the recording does not have"), "{}", ran.stderr);
    let late = ["sim", "-", "--record", &file, "--record-from", "20_000s"];
    let ran = pbsctl(&late, &plan);
    assert_eq!(ran.status, 2, "{}", ran.stderr);
    assert!(ran.stderr.contains("write an earlier time"), "{}", ran.stderr);
    assert_eq!(pbsctl(&["sim", "-", "--record-from", "1ms"], &plan).status, 2);
}
