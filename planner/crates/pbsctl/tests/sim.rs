// SPDX-License-Identifier: GPL-2.0
//! `pbsctl sim` as people and scripts use it.

mod common;

use std::path::Path;

use common::{pbsctl, scratch};
use pbs_report::Recording;

/// A task that is far beyond t2_task, and a process beside it.
const LATE: &str = "plan_id = 7
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

const LINE: &str = "1;0,9000000;;;0,4,1200000,1150000;-1,-1,300000,310000;\n";

#[test]
fn sim_tells_what_became_of_the_plan() {
    let ran = pbsctl(&["sim", "-"], LATE);
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""));
    let words: Vec<_> = ran.stdout.split_whitespace().collect();
    let said = words.join(" ");
    for part in [
        "far 0 0 50,000,000 150,000,000 150,000,000",
        "2 0 0 20,000,000 20,000,000 20,000,000 0 72.500",
        "far MISSED 0 185.000",
        "2 kept 0 72.500",
        "CPU 0: all processes ended after 185.000 ms",
    ] {
        assert!(said.contains(part), "{part} is not in {}", ran.stdout);
    }
    assert!(!said.contains("cpu0"), "{}", ran.stdout);
    let ran = pbsctl(&["sim", "-", "--events"], LATE);
    assert!(ran.stdout.contains("cpu0"), "{}", ran.stdout);
}

#[test]
fn json_is_a_recording_with_more() {
    let ran = pbsctl(&["--json", "sim", "-", "--scheduler", "stretch"], LATE);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let opened = Recording::from_json(&ran.stdout).unwrap().open().unwrap();
    let json = ran.json();
    assert_eq!(json["source"], "simulation");
    assert_eq!(json["tasks"][0]["retired_insns"], 150_000_000);
    assert_eq!(json["processes"][0]["kept"], false);
    let late = json["counts"]["signals"]["late"]["process"]
        .as_u64()
        .unwrap();
    assert!(late > 0);
    let replans = json["replans"].as_array().unwrap();
    assert_eq!(opened.plans.len(), 1 + replans.len());
    assert_eq!(opened.plans[1].plan_id, 8);
    assert!(opened.plans[1].dealt_seq > 0);
}

#[test]
fn sim_reads_both_formats() {
    let ran = pbsctl(&["sim", "-", "--json"], LINE);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert_eq!(ran.json()["tasks"][0]["real_insns"], 1_150_000);
    let ran = pbsctl(&["sim", "-"], "1;0,9000000;;;nonsense");
    assert_eq!(ran.status, 3);
    assert!(
        ran.stderr.starts_with("standard input:1: "),
        "{}",
        ran.stderr
    );
}

#[test]
fn the_command_line_overrides_the_plan() {
    let with = format!("{}\n[config]\nstress_gain_insns = 1\n", LATE);
    for plan in [LATE, with.as_str()] {
        let options = [
            "--config",
            "thresholds=t1,info",
            "--config",
            "max_preemptions=9",
        ];
        let mut arguments = vec!["sim", "-", "--json", "--config", "idle_policy=least_slack"];
        arguments.extend(options);
        let json = pbsctl(&arguments, plan).json();
        assert!(json["counts"]["signals"]["late"].is_null());
        let toml = json["plans"][0]["toml"].as_str().unwrap();
        assert_eq!(plan == with, toml.contains("max_preemptions = 9"), "{toml}");
        assert_eq!(json["config"]["max_preemptions"], 9);
        assert_eq!(json["config"]["idle_policy"], 1);
    }
    for (wrong, words) in [
        ("max_preemptions", "write KEY=VALUE"),
        ("max_preemptions=0", "max_preemptions"),
        ("nonsense=1", "nonsense"),
        ("idle_policy=loudest", "latest"),
    ] {
        let ran = pbsctl(&["sim", "-", "--config", wrong], LATE);
        assert_eq!(ran.status, 1, "{wrong}");
        assert!(
            ran.stderr.starts_with("pbsctl: --config: "),
            "{}",
            ran.stderr
        );
        assert!(ran.stderr.contains(words), "{}", ran.stderr);
    }
}

#[test]
fn a_simulation_that_does_not_end_says_so() {
    let ran = pbsctl(&["sim", "-", "--limit", "100"], LATE);
    assert_eq!(ran.status, 4);
    assert!(
        ran.stdout
            .contains("NOT all processes ended; the simulation stopped after 100.000 ms"),
        "{}",
        ran.stdout
    );
}

#[test]
fn the_job_scheduler_is_named() {
    let ran = pbsctl(&["sim", "-", "--scheduler", "strecth"], LATE);
    assert_eq!(ran.status, 2);
    assert!(
        ran.stderr.contains("none, stretch, or \"command LINE\""),
        "{}",
        ran.stderr
    );

    let seen = scratch("question.json");
    let line = format!("command cat > '{}'", seen.display());
    let ran = pbsctl(&["sim", "-", "--scheduler", &line], LATE);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let question: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(seen).unwrap()).unwrap();
    assert!(question["failures"][0]["seq"].is_u64());

    let ran = pbsctl(&["sim", "-", "--scheduler", "command exit 3"], LATE);
    assert_eq!(ran.status, 1);
    assert!(
        ran.stderr.contains("\"exit 3\" ended with exit status: 3"),
        "{}",
        ran.stderr
    );
}

/// The plan that belongs to Leppert's simulation lies beside the project.
#[test]
fn the_plan_of_leppert_is_simulated() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let file = root.join("../shared/data/leppert-plan.log");
    if !file.exists() {
        eprintln!("{} is not there; skipped", file.display());
        return;
    }
    for resolution in ["event", "tick"] {
        let file = file.to_str().unwrap();
        let ran = pbsctl(&["sim", file, "--json", "--resolution", resolution], "");
        assert_eq!(ran.status, 0, "{}", ran.stderr);
        let json = ran.json();
        let tasks = json["tasks"].as_array().unwrap();
        assert_eq!(tasks.len(), 286);
        assert!(tasks
            .iter()
            .all(|task| task["retired_insns"] == task["real_insns"]));
        assert_eq!(json["cpus"][0]["ended"], true);
        let processes = json["processes"].as_array().unwrap();
        assert!(processes.iter().all(|process| process["kept"] == true));
    }
}
