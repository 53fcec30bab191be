// SPDX-License-Identifier: GPL-2.0
//! `pbsctl plan show` as people and scripts use it.

mod common;

use std::fs;
use std::path::Path;

use common::{directory, pbsctl, Ran};

/// Two nodes with two cores of 1000 instructions a millisecond.
const MACHINE: &str = "name = \"lab\"\n\
    [[node]]\nname = \"alice\"\nmemory_bytes = 1_000_000\nrate_insns_per_s = 1_000_000\n\
    cores = [{ name = \"c0\", cpu = 2 }, { name = \"c1\", cpu = 3 }]\n\
    [[node]]\nname = \"bob\"\nmemory_bytes = 400_000\nrate_insns_per_s = 1_000_000\n\
    cores = [\"b0\"]\n";

const JOB: &str = "name = \"pair\"\ndeadline_ns = 50_000_000\n\
    [[process]]\nid = 1\nname = \"left\"\nmemory_bytes = 500_000\ncommand = [\"left\"]\n\
    attaches = \"itself\"\ntasks = [{ name = \"begin\", insns = 10_000 }, 10_000]\n\
    [[process]]\nid = 2\nname = \"right\"\nmemory_bytes = 450_000\ntasks = [5_000]\n";

const FILES: &[(&str, &str)] = &[("lab.toml", MACHINE), ("job.toml", JOB)];

fn path(directory: &Path, name: &str) -> String {
    directory.join(name).to_str().unwrap().to_string()
}

/// Shows the plan of jobs of the directory, of whose runs nothing is known.
fn show(directory: &Path, jobs: &[&str], arguments: &[&str]) -> Ran {
    let (machine, history) = (path(directory, "lab.toml"), path(directory, "h.db"));
    let mut all = vec!["plan", "show", "--whole-rate", "--machine", &machine];
    all.extend(["--history", &history]);
    let jobs: Vec<_> = jobs.iter().map(|job| path(directory, job)).collect();
    all.extend(jobs.iter().map(String::as_str));
    all.extend(arguments);
    pbsctl(&all, "")
}

#[test]
fn cores_have_tables_and_a_chart() {
    let directory = directory("plan-show", FILES);
    let ran = show(&directory, &["job.toml"], &[]);
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""));
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let lines: Vec<_> = ran.stdout.lines().map(words).collect();
    for line in [
        "START ms END ms PROCESS TASK INSNS MEMORY",
        "0.000 10.000 left 0 begin 10,000 488 KiB",
        "10.000 20.000 left 1 10,000 488 KiB",
        "0.000 5.000 right 2 5,000 439 KiB",
        "A left B right . idle",
    ] {
        assert!(lines.iter().any(|known| known == line), "{line}: {}", ran.stdout);
    }
    // Time runs to the right.
    let chart = |first: &str| {
        let line = ran.stdout.lines().find(|line| line.trim_start().starts_with(first));
        let line = line.unwrap_or_else(|| panic!("{first}: {}", ran.stdout));
        line.split('|').nth(1).unwrap().to_string()
    };
    let busy = chart("c0 |");
    assert!(busy.chars().all(|letter| letter == 'A'), "{busy}");
    let other = chart("c1 |");
    let (part, rest) = other.split_at(other.find('.').unwrap());
    assert!(part.chars().all(|letter| letter == 'B') && rest.chars().all(|c| c == '.'));
    // Exactly a quarter of the time, up to a cell.
    assert!(part.len().abs_diff(other.len() / 4) <= 1, "{other}");
    let charts = ran.stdout.lines().filter(|line| line.contains('|'));
    assert!(charts.clone().count() == 6 && charts.map(str::len).max() <= Some(160));
    // 950,000 of 1,000,000 bytes at first, half of it later.
    let memory = chart("memory |");
    assert!(memory.starts_with('#') && memory.ends_with(' '), "{memory}");
}

#[test]
fn json_has_the_plan() {
    let directory = directory("plan-show-json", FILES);
    let json = show(&directory, &["job.toml"], &["--json", "--seed", "7"]).json();
    assert_eq!(json["jobs"][0]["end_ns"], 20_000_000);
    assert_eq!(json["jobs"][0]["slack_ns"], 30_000_000);
    let schedule = &json["schedule"];
    assert_eq!(schedule["processes"], serde_json::json!(["left", "right"]));
    let node = &schedule["nodes"][0];
    assert_eq!(node["cores"][0]["tasks"][1]["start_ns"], 10_000_000);
    assert_eq!(
        node["reserved_bytes"],
        serde_json::json!([[0, 950_000], [5_000_000, 500_000], [20_000_000, 0]])
    );
}

#[test]
fn the_plan_that_is_written_is_valid_and_runs_in_virtual_time() {
    let directory = directory("plan-show-output", FILES);
    let output = path(&directory, "plan.toml");
    let ran = show(&directory, &["job.toml"], &["--output", &output, "--plan-id", "9"]);
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""));
    assert!(ran.stdout.contains("plan.toml: written"));
    let json = pbsctl(&["check", &output, "--json"], "").json();
    assert_eq!((&json["kind"], &json["plan"]["plan_id"]), (&"plan".into(), &9.into()));
    let cpus = json["plan"]["cpus"].as_array().unwrap();
    let cpus: Vec<_> = cpus.iter().map(|cpu| cpu["cpu"].as_u64().unwrap()).collect();
    assert_eq!(cpus, [2, 3]);
    assert_eq!(json["plan"]["cpus"][0]["planned_insns"], 20_000);
    let text = fs::read_to_string(&output).unwrap();
    assert!(text.contains("command = [\"left\"]"), "{text}");
    assert_eq!(pbsctl(&["sim", &output], "").status, 0);
}

#[test]
fn several_jobs_are_told_apart() {
    let directory = directory("plan-show-several", FILES);
    let jobs = ["job.toml", "job.toml"];
    let json = show(&directory, &jobs, &["--json"]).json();
    let names = json["schedule"]["processes"].as_array().unwrap();
    for name in ["left.0", "right.0", "left.1", "right.1"] {
        assert!(names.iter().any(|known| known == name), "{name}: {names:?}");
    }
    let csv = path(&directory, "plan.csv");
    let ran = show(&directory, &jobs, &["--csv", &csv]);
    assert_eq!(ran.status, 2);
    assert!(ran.stderr.contains("takes one job"), "{}", ran.stderr);
    assert!(!Path::new(&csv).exists());
}

#[test]
fn of_several_nodes_one_is_named() {
    let directory = directory("plan-show-nodes", FILES);
    // Each process fits on one of the nodes only.
    let job = JOB
        .replace("memory_bytes = 500_000", "memory_bytes = 900_000")
        .replace("memory_bytes = 450_000", "memory_bytes = 300_000");
    fs::write(directory.join("wide.toml"), job).unwrap();
    let output = path(&directory, "plan.toml");
    let ran = show(&directory, &["wide.toml"], &["--output", &output]);
    assert_eq!(ran.status, 2);
    assert!(ran.stderr.contains("alice, bob; name one"), "{}", ran.stderr);
    let ran = show(&directory, &["wide.toml"], &["--output", &output, "--node", "carol"]);
    assert_eq!(ran.status, 2);
    assert!(!Path::new(&output).exists());
    let ran = show(&directory, &["wide.toml"], &["--output", &output, "--node", "bob"]);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let text = fs::read_to_string(&output).unwrap();
    assert!(text.contains("right") && !text.contains("left"), "{text}");
}

#[test]
fn pictures_have_all_that_is_planned() {
    let directory = directory("plan-show-gantt", FILES);
    let svg = path(&directory, "plan.svg");
    let ran = show(&directory, &["job.toml"], &["--gantt", &svg]);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let text = fs::read_to_string(&svg).unwrap();
    for part in [
        "pair on lab",
        "left, task 0 begin: 0.000 to 10.000 ms, 10,000 instructions",
        "right, task 2: 0.000 to 5.000 ms",
        ">c0</text>",
        "928 KiB at most",
    ] {
        assert!(text.contains(part), "{part}");
    }
}

#[test]
fn what_is_declined_writes_nothing() {
    let directory = directory("plan-show-declined", FILES);
    let job = JOB.replace("50_000_000", "15_000_000");
    fs::write(directory.join("tight.toml"), &job).unwrap();
    let names = ["plan.toml", "plan.svg", "plan.csv"];
    let files = names.map(|name| path(&directory, name));
    let arguments = ["--output", &files[0], "--gantt", &files[1], "--csv", &files[2]];
    let ran = show(&directory, &["tight.toml"], &arguments);
    assert_eq!(ran.status, 6);
    assert!(
        ran.stderr.contains("level 1 (general check)") && ran.stderr.contains("20_000_000"),
        "{}",
        ran.stderr
    );
    assert!(files.iter().all(|file| !Path::new(file).exists()));
    let job = job.replace("15_000_000", "20_000_000");
    fs::write(directory.join("tight.toml"), job).unwrap();
    let ran = show(&directory, &["tight.toml"], &arguments);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert!(files.iter().all(|file| Path::new(file).exists()));
}

/// A name that promises another format, or that two options share, loses what was meant for it.
#[test]
fn each_output_has_a_name_of_its_own_and_its_format() {
    let directory = directory("plan-show-names", FILES);
    let (json, one, link) =
        (path(&directory, "x.json"), path(&directory, "x"), path(&directory, "./x"));
    for (options, words) in [
        (["--output", &json, "--node", "bob"], "written as TOML, and not as json; name a file"),
        (["--csv", &json, "--seed", "1"], "written as CSV, and not as json; name a file"),
        (["--output", &one, "--csv", &link], "--output and --csv both name"),
        (["--gantt", &one, "--csv", &one], "--gantt and --csv both name"),
    ] {
        let ran = show(&directory, &["job.toml"], &options);
        assert_eq!((ran.status, ran.stdout.as_str()), (2, ""), "{options:?}");
        assert!(ran.stderr.contains(words), "{options:?}: {}", ran.stderr);
        assert!(!Path::new(&json).exists() && !Path::new(&one).exists());
    }
}

#[test]
fn without_jobs_it_says_what_to_do() {
    let ran = pbsctl(&["plan", "show"], "");
    assert_eq!(ran.status, 2);
    assert!(ran.stderr.contains("name the jobs"), "{}", ran.stderr);
}
