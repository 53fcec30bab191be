// SPDX-License-Identifier: GPL-2.0
//! `pbsctl history` as people and scripts use it.

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::{pbsctl, scratch, Ran};
use pbs_history::{Fingerprint, Kind, NewRun, Options, Outcome, ProcessRun, Store, TaskRun};

/// The 22nd of November 2026.
const DAY_NS: u64 = 1_795_305_600_000_000_000;

fn file(name: &str) -> PathBuf {
    let directory = scratch(name);
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).unwrap();
    directory.join("history.db")
}

fn history(file: &Path, arguments: &[&str]) -> Ran {
    let file = file.to_str().unwrap();
    let mut all = vec!["history", "--history", file];
    all.extend(arguments);
    pbsctl(&all, "")
}

/// A run with what was planned and retired for one task.
fn record(store: &mut Store, job: &str, command: &str, planned_insns: u64, retired_insns: u64) {
    let id = store
        .begin_run(&NewRun {
            job,
            kind: Kind::Plan,
            submitted_unix_ns: DAY_NS,
            request: "",
            reservation: "",
            order: None,
        })
        .unwrap();
    let task = TaskRun {
        task: 3,
        name: Some("merge".into()),
        planned_insns,
        retired_insns,
        peak_memory_bytes: 3 << 20,
        preemptions: 1,
        outcome: Outcome::Complete,
    };
    let process = ProcessRun {
        process: 1,
        name: Some("sort".into()),
        fingerprint: Fingerprint::of([command]),
        outcome: Outcome::Complete,
        ran_ns: 2_000_000,
        tasks: vec![task],
    };
    store.finish_run(id, DAY_NS + 1, Outcome::Complete, &[process]).unwrap();
}

fn filled(name: &str) -> PathBuf {
    let file = file(name);
    let mut store = Store::open(&file, Options::DEFAULT).unwrap();
    record(&mut store, "nightly", "sort", 500_000, 1_000_000);
    record(&mut store, "nightly", "sort", 980_000, 1_000_000);
    record(&mut store, "nightly", "sort", 1_000_000, 1_000_000);
    record(&mut store, "other, odd", "cat", 10, 10);
    file
}

/// The words of the line that begins with that word.
fn line<'a>(text: &'a str, first: &str) -> Vec<&'a str> {
    let mut lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let found = lines.find(|words| words.first() == Some(&first));
    found.unwrap_or_else(|| panic!("{first}: {text}"))
}

#[test]
fn jobs_are_listed() {
    let file = filled("history-jobs");
    let ran = history(&file, &[]);
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""));
    assert_eq!(
        line(&ran.stdout, "nightly"),
        ["nightly", "2026-11-22T00:00:00+00:00", "3", "3", "0"]
    );
    let json = history(&file, &["--json"]).json();
    assert_eq!(json["jobs"][0]["job"], "nightly");
    assert_eq!(json["jobs"][1]["runs"], 1);
}

#[test]
fn the_error_of_the_plan_falls_and_tasks_are_predicted() {
    let file = filled("history-job");
    let ran = history(&file, &["nightly"]);
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""));
    for (run, error) in [("1", "100.0"), ("2", "2.0"), ("3", "0.0")] {
        let words = line(&ran.stdout, run);
        assert_eq!(words[words.len() - 2..], [error, "%"]);
        assert_eq!(words[2..7], ["plan", "complete", "-", "-", "1"]);
    }
    let words = line(&ran.stdout, "sort");
    assert_eq!(words[1..5], ["3", "merge", "3", "1,000,000"]);
    assert_eq!(words[7..], ["1,000,000", "1,000,000", "3.0", "MiB"]);
    assert!(!ran.stdout.contains("another command"));

    let json = history(&file, &["nightly", "--json"]).json();
    assert_eq!(json["runs"][0]["plan_error_permille"], 1000);
    assert_eq!(json["runs"][0]["run"]["outcome"], "complete");
    assert!(json["runs"][0]["reason"].is_null());
    let retired = &json["runs"][2]["processes"][0]["tasks"][0]["retired_insns"];
    assert_eq!(*retired, 1_000_000);
    let task = &json["tasks"][0];
    assert_eq!((&task["process"], &task["task"]), (&1.into(), &3.into()));
    assert_eq!(task["insns"], 1_000_000);
    assert_eq!(task["source"], "history");
    assert!(task["low_insns"].as_u64() < task["insns"].as_u64());
    assert_eq!(task["peak_memory_bytes"], 3 << 20);
}

/// In two milliseconds each time.
#[test]
fn the_rate_of_a_process_is_predicted() {
    let file = filled("history-rate");
    let mut store = Store::open(&file, Options::DEFAULT).unwrap();
    for _ in 0..2 {
        record(&mut store, "nightly", "sort", 1_000_000, 1_000_000);
    }
    let ran = history(&file, &["nightly"]);
    let (_, rates) = ran.stdout.split_once("INSNS PER MS").unwrap();
    let words = line(rates, "sort");
    let rate: u64 = words[2].replace(',', "").parse().unwrap();
    assert_eq!(words[..2], ["sort", "5"]);
    assert!((480_000..=500_000).contains(&rate), "{rate}");
    let json = history(&file, &["nightly", "--json"]).json();
    assert_eq!(json["rates"][0]["process_name"], "sort");
    assert_eq!(json["rates"][0]["rate_insns_per_ms"], rate);
    assert!(json["rates"][0]["low_insns_per_ms"].as_u64() < Some(rate));
}

#[test]
fn a_changed_command_is_told() {
    let file = filled("history-changed");
    let mut store = Store::open(&file, Options::DEFAULT).unwrap();
    record(&mut store, "nightly", "sort --unique", 5, 5);
    let ran = history(&file, &["nightly"]);
    assert_eq!(line(&ran.stdout, "sort")[3..5], ["1", "5"]);
    let told = "Process sort executed another command in 3 runs, which the prediction leaves out.";
    assert!(ran.stdout.contains(told), "{}", ran.stdout);
    let json = history(&file, &["nightly", "--json"]).json();
    assert_eq!(json["tasks"].as_array().unwrap().len(), 1);
    assert_eq!(json["tasks"][0]["runs_of_others"], 3);
}

#[test]
fn csv_has_a_row_for_each_task() {
    let file = filled("history-csv");
    let one = history(&file, &["nightly", "--csv"]).stdout;
    assert_eq!(one.lines().count(), 4);
    assert!(one.starts_with("job,run,kind,"));
    let all = history(&file, &["--csv"]).stdout;
    assert_eq!(all.lines().count(), 5);
    assert!(all.lines().nth(4).unwrap().starts_with("\"other, odd\",4,plan,"));
}

#[test]
fn a_run_that_is_not_over_has_no_figures() {
    let file = file("history-open");
    let mut store = Store::open(&file, Options::DEFAULT).unwrap();
    assert_eq!(history(&file, &[]).stdout, "No run of any job is known.\n");
    let new = NewRun {
        job: "nightly",
        kind: Kind::Profile,
        submitted_unix_ns: DAY_NS,
        request: "",
        reservation: "",
        order: None,
    };
    store.begin_run(&new).unwrap();
    let ran = history(&file, &["nightly"]);
    assert_eq!((ran.status, ran.stdout.as_str()), (0, "No run of this job has ended yet.\n"));
    let words = history(&file, &[]).stdout;
    assert_eq!(line(&words, "nightly")[2..], ["0", "0", "1"]);
}

#[test]
fn what_is_wrong_is_said() {
    let sound = filled("history-wrong");
    let absent = sound.with_file_name("absent.db");
    let damaged = sound.with_file_name("damaged.db");
    let mut bytes = fs::read(&sound).unwrap();
    bytes.truncate(8192);
    fs::write(&damaged, &bytes).unwrap();
    for (file, arguments, status, message) in [
        (&absent, &[][..], 1, "there is no history yet"),
        (&damaged, &[], 1, "the history is damaged ("),
        (&sound, &["sort"], 1, "no run of \"sort\" is known; pbsctl job history"),
        (&sound, &["--csv", "--json"], 2, "write one of them"),
    ] {
        let ran = history(file, arguments);
        assert_eq!(ran.status, status, "{arguments:?}");
        assert!(ran.stderr.contains(message), "{}", ran.stderr);
    }
    let json = history(&damaged, &["--json"]).json();
    assert!(json["error"].as_str().unwrap().contains("nothing was changed"));
    assert_eq!(fs::read(&damaged).unwrap(), bytes);
    assert!(!absent.exists());
}
