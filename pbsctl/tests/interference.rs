// SPDX-License-Identifier: GPL-2.0
//! `pbsctl interference`: what is measured is told; how large it is depends on the
//! machine and is not looked at.

mod common;

use common::{directory, pbsctl, scratch, slowed, Ran};
use pbs_interference::slowdowns_from_toml;

const SHORT: [&str; 8] =
    ["interference", "measure", "--rounds", "2", "--seconds-per-round", "5ms", "--cache", "64KiB"];

/// More memory than a machine can spare is refused, not cut.
#[test]
fn a_cache_beyond_all_caches_is_refused() {
    for cache in ["1073741825", "99999999999999"] {
        let ran = pbsctl(&["interference", "measure", "--cache", cache], "");
        assert_eq!(ran.status, 2);
        assert!(ran.stderr.contains("at most 1GiB"), "{}", ran.stderr);
    }
}

#[test]
fn measure_reports_each_pair_in_both_directions() {
    let file = scratch("measured.toml");
    let hogs = ["--hogs", "compute,cache", "--disturbed", "--output", file.to_str().unwrap()];
    let ran = pbsctl(&[&["--json"], &SHORT[..], &hogs].concat(), "");
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert_eq!(ran.stderr, "");
    let json = ran.json();
    let pairs = json["pairs"].as_array().unwrap();
    let names = pairs.iter().map(|pair| {
        let name = |key: &str| pair[key].as_str().unwrap().to_string();
        (name("victim"), name("aggressor"))
    });
    let names: Vec<_> = names.collect();
    let (cache, compute) = ("cache".to_string(), "compute".to_string());
    let all = [&cache, &compute];
    let all = all.iter().flat_map(|&one| all.map(|other| (one.clone(), other.clone())));
    assert_eq!(names, all.collect::<Vec<_>>());
    let told = &json["makespans"];
    assert_eq!(told.as_array().map(Vec::len), Some(3));
    assert_eq!(json["cache_bytes"], 65536);

    // The file has the same figures.
    let text = std::fs::read_to_string(&file).unwrap();
    let entries = slowdowns_from_toml(&text).unwrap();
    assert_eq!(entries.len(), 4);
    for (entry, pair) in entries.iter().zip(pairs) {
        assert_eq!(entry.victim, pair["victim"].as_str().unwrap());
        // Who did not come on at all beside another is slowed by more than any number.
        let slowdown = pair["slowdown"].as_f64().unwrap_or(f64::INFINITY);
        let bounded = slowdown.clamp(0.1, 1000.0);
        assert!((entry.slowdown - bounded).abs() < 0.001, "{entry:?} {pair}");
    }
}

#[test]
fn measure_prints_tables() {
    let ran = pbsctl(&[&SHORT[..], &["--hogs", "compute"]].concat(), "");
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""));
    for part in ["VICTIM", "compute + compute", "MEASURED/PREDICTED", "2 rounds of 5 ms"] {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.stdout);
    }
}

#[test]
fn what_cannot_be_measured_is_told() {
    for (arguments, words) in [
        (&["--cpus", "0"][..], "write two different CPUs"),
        (&["--cpus", "0,0"], "write two different CPUs"),
        (&["--cpus", "0,4000"], "may not use CPU 4000"),
        (&["--hogs", "disk"], "there is no hog disk; write one of memory, cache, compute"),
        (&["--rounds", "0"], "0 is not in 1..=10000"),
        (&["--output", "/nonexistent/s.toml", "--disturbed"], "/nonexistent/s.toml"),
        (&["--disturbed"], "--output <FILE>"),
    ] {
        let quick = ["--hogs", "compute"];
        let quick = match arguments[0] {
            "--output" => &quick[..],
            _ => &[],
        };
        let all = match arguments[0] {
            "--rounds" => [&["interference", "measure"], arguments].concat(),
            _ => [&SHORT[..], quick, arguments].concat(),
        };
        let ran = pbsctl(&all, "");
        assert_ne!(ran.status, 0, "{arguments:?}");
        assert!(ran.stderr.contains(words), "{arguments:?}: {}", ran.stderr);
        // What took long to measure is told all the same.
        let told = ran.stdout.contains("compute + compute");
        assert_eq!(told, arguments[0] == "--output", "{arguments:?}");
    }
}

/// Programs on all CPUs, for as long as it lives.
struct Busy(Vec<std::process::Child>);

impl Busy {
    fn new() -> Self {
        let cpus = std::thread::available_parallelism().unwrap().get();
        let one = |_| {
            let mut command = std::process::Command::new("sh");
            command.args(["-c", "while :; do :; done"]).spawn().unwrap()
        };
        Self((0..cpus).map(one).collect())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[test]
fn a_file_is_only_written_on_a_quiet_machine() {
    let file = scratch("disturbed.toml");
    let _ = std::fs::remove_file(&file);
    let output = ["--hogs", "compute", "--output", file.to_str().unwrap()];
    let _busy = Busy::new();
    let ran = pbsctl(&[&SHORT[..], &output].concat(), "");
    assert_eq!((ran.status, ran.stdout.as_str()), (1, ""));
    for words in ["other programs use ", "needs 10 % at most", "with --disturbed"] {
        assert!(ran.stderr.contains(words), "{words}: {}", ran.stderr);
    }
    assert!(!file.exists());
    let ran = pbsctl(&[&["--json"], &SHORT[..], &output, &["--disturbed"]].concat(), "");
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let json = ran.json();
    assert_eq!(json["is_disturbed"], true);
    assert!(json["load_before"].as_f64().unwrap() > 0.1, "{json}");
    let text = std::fs::read_to_string(&file).unwrap();
    let disturbed = format!("disturbed = {}\n", json["pairs"][0]["disturbed"]);
    assert!(text.ends_with(&disturbed), "{text}");
    assert_eq!(slowdowns_from_toml(&text).unwrap().len(), 1);
}

fn of_history(name: &str, arguments: &[&str]) -> Ran {
    let file = directory(name, &[]).join("history.db");
    slowed(&file);
    let mut all = vec!["interference"];
    all.extend(arguments);
    all.extend(["--history", file.to_str().unwrap()]);
    pbsctl(&all, "")
}

#[test]
fn show_names_victim_and_cause() {
    let file = scratch("shown.toml");
    let ran = of_history("shown", &["show", "--output", file.to_str().unwrap()]);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let rows: Vec<Vec<_>> =
        ran.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows.len(), 3, "{}", ran.stdout);
    assert_eq!(rows[1][..3], ["backup-job:backup/0", "render-job:render/4", "(llc)"]);
    assert_eq!(rows[2][..3], ["render-job:render/4", "backup-job:backup/0", "(llc)"]);
    let slowdown = |row: usize| rows[row][3].parse::<f64>().unwrap();
    assert!((slowdown(1) - 1.0).abs() < 0.01, "{}", ran.stdout);
    assert!((slowdown(2) - 1.5).abs() < 0.01, "{}", ran.stdout);
    assert_eq!((rows[1][6], rows[2][6]), ("10", "10"));

    let entries = slowdowns_from_toml(&std::fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(entries.len(), 2);
    assert_eq!(entries[1].victim, "render-job:render/4");
    assert!((entries[1].slowdown - slowdown(2)).abs() < 0.002);
    assert!(entries[1].low <= entries[1].slowdown && entries[1].slowdown <= entries[1].high);
}

#[test]
fn predict_names_the_source_of_a_number() {
    let predicted = |name: &str, arguments: &[&str]| {
        let ran = of_history(name, &[&["predict"], arguments, &["--json"]].concat());
        assert_eq!(ran.status, 0, "{}", ran.stderr);
        let all = ran.json()["predictions"].clone();
        assert_eq!(all.as_array().unwrap().len(), 1);
        let told = all[0].clone();
        let source = told["source"].as_str().unwrap().to_string();
        (told["slowdown"].as_f64().unwrap(), source, told)
    };
    for (name, victim, beside) in [
        ("process", "render", "backup"),
        ("task", "render/4", "backup/0"),
        ("job", "render-job:render/4", "backup-job:backup"),
    ] {
        let (slowdown, source, told) = predicted(name, &[victim, "--beside", beside]);
        assert!((slowdown - 1.5).abs() < 0.01, "{told}");
        assert_eq!((source.as_str(), &told["samples"]), ("measured", &10.into()));
        assert_eq!(told["beside"][0]["level"], "llc");
    }
    let twice = ["render", "--beside", "backup", "backup"];
    let (slowdown, source, told) = predicted("twice", &twice);
    assert!((slowdown - 2.0).abs() < 0.02, "{told}");
    assert_eq!(source, "sum");
    let (slowdown, source, _) = predicted("unknown", &["render", "--beside", "index"]);
    assert_eq!((slowdown, source.as_str()), (1.0, "unknown"));
    let elsewhere = ["render", "--beside", "backup", "--level", "smt"];
    let (_, source, told) = predicted("elsewhere", &elsewhere);
    assert_ne!(source, "measured");
    assert_eq!(told["beside"][0]["level"], "smt");
}

#[test]
fn unknown_slowdowns_are_reported() {
    let nobody = of_history("nobody", &["predict", "nobody", "--beside", "backup"]);
    assert_eq!(nobody.status, 1);
    assert!(nobody.stderr.contains("no task is called \"nobody\""), "{}", nobody.stderr);
    let level = of_history("level", &["predict", "render", "--beside", "backup", "--level", "l4"]);
    assert_eq!(level.status, 2);
    assert!(level.stderr.contains("smt, l2, llc, node"), "{}", level.stderr);
    let missing = pbsctl(&["interference", "show", "--history", "none.db"], "");
    assert!(missing.stderr.contains("there is no history yet"), "{}", missing.stderr);
}
