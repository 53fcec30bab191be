// SPDX-License-Identifier: GPL-2.0
//! `pbsctl import` of the files of Glaß's prototype, and `pbsctl check` of what
//! comes of them.

mod common;

use std::fs;
use std::path::Path;

use common::{directory, pbsctl, scratch};

const DETAILS: &str = "start;deadline;total_runtime;total_needed_memory\n0;20;9;500";
const PROCESSES: &str = "process_id;approx_runtime;approx_needed_memory\n0;9;300\n1;4;200";
const TASKS: &str = "0 0 0 300 5 -> 1 0 2\n1 0 2 300 5 -> 2 0 4 -> 3 1 10\n\
    2 0 4 300 10 -> 5 0 3\n3 1 10 200 5 -> 4 1 5\n4 1 5 200 5 -- 0 -> 5 0 3\n\
    5 0 3 300 5 -> 6 0 1\n6 0 1";
const MACHINE: &str =
    "node_id;cores;total_shared_memory;instructions_pre_sec\n7;x,y;1000;5\n8;z;100;50";

const FILES: &[(&str, &str)] = &[
    ("job_details_4.csv", DETAILS),
    ("job_processes_4.csv", PROCESSES),
    ("job_tasks_4.txt", TASKS),
    ("machine_details.csv", MACHINE),
];

#[test]
fn a_directory_becomes_a_job_and_a_machine_that_can_be_planned() {
    let directory = directory("import-glass", FILES);
    let path = |name: &str| directory.join(name).to_str().unwrap().to_string();
    let (job, machine, csv) = (path("job.toml"), path("machine.toml"), path("plan.csv"));
    let from = directory.to_str().unwrap();
    let ran = pbsctl(&["import", from, "--output", &job, "--machine", &machine], "");
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""));
    assert!(ran.stdout.contains("job glass-4: 2 processes, 7 tasks"), "{}", ran.stdout);
    assert!(ran.stdout.contains("node 7: 2 cores"), "{}", ran.stdout);

    let checked = pbsctl(&["check", &job], "");
    assert_eq!(checked.status, 0);
    assert!(checked.stdout.contains("job.toml: valid job\n"), "{}", checked.stdout);
    let checked = pbsctl(&["check", &machine, "--json"], "").json();
    assert_eq!((&checked["valid"], &checked["kind"]), (&true.into(), &"machine".into()));
    assert_eq!(checked["machine"]["nodes"][0]["rate_insns_per_s"], 10);

    // 5, 5, 10 and 5 instructions one after the other, at 5 a second.
    let history = path("h.db");
    let mut arguments = vec!["plan", "show", &job, "--machine", &machine, "--history", &history];
    arguments.extend(["--whole-rate", "--csv", &csv, "--json"]);
    let ran = pbsctl(&arguments, "");
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""));
    assert_eq!(ran.json()["jobs"][0]["end_ns"].as_u64(), Some(5_000_000_000));
    let csv = fs::read_to_string(&csv).unwrap();
    assert!(csv.starts_with("node_id;core_id;task_id;start;end;mem_consumption\n7;x;0;0;1;300\n"));
    assert_eq!(csv.lines().count(), 8);
}

#[test]
fn the_job_goes_to_standard_output_alone() {
    let directory = directory("import-stdout", FILES);
    let machine = directory.join("machine.toml");
    let from = directory.to_str().unwrap();
    let arguments = ["import", from, "--name", "two", "--machine", machine.to_str().unwrap()];
    let ran = pbsctl(&arguments, "");
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert!(ran.stdout.starts_with("name = \"two\"\n"), "{}", ran.stdout);
    assert_eq!(pbsctl(&["check", "-"], &ran.stdout).status, 0);
    assert!(machine.exists());
    let json = pbsctl(&[&arguments[..], &["--json"]].concat(), "").json();
    assert_eq!(json["toml"].as_str(), Some(ran.stdout.as_str()));
    assert_eq!(json["job"]["deadline_ns"].as_u64(), Some(20_000_000_000));
}

#[test]
fn of_several_jobs_one_is_named() {
    let directory = directory("import-several", FILES);
    fs::write(directory.join("job_details_5.csv"), DETAILS).unwrap();
    let from = directory.to_str().unwrap();
    let ran = pbsctl(&["import", from], "");
    assert_eq!(ran.status, 2);
    assert!(ran.stderr.contains("the jobs 4, 5; name one"), "{}", ran.stderr);
    assert_eq!(pbsctl(&["import", from, "--job", "4"], "").status, 0);
    let ran = pbsctl(&["import", from, "--job", "5"], "");
    assert_eq!(ran.status, 1);
    assert!(ran.stderr.contains("job_processes_5.csv"), "{}", ran.stderr);
}

#[test]
fn options_of_the_other_form_are_refused() {
    let directory = directory("import-options", FILES);
    let from = directory.to_str().unwrap();
    let ran = pbsctl(&["import", from, "--cpu", "1"], "");
    assert_eq!(ran.status, 2);
    assert!(ran.stderr.contains("Leppert"), "{}", ran.stderr);
    let ran = pbsctl(&["import", "-", "--machine", "m.toml"], "1;0,10;;0,0,5,5;");
    assert_eq!(ran.status, 2);
    assert!(ran.stderr.contains("directory"), "{}", ran.stderr);
    let empty = scratch("import-empty");
    fs::create_dir_all(&empty).unwrap();
    let ran = pbsctl(&["import", empty.to_str().unwrap()], "");
    assert_eq!(ran.status, 1);
    assert!(ran.stderr.contains("the four files"), "{}", ran.stderr);
}

/// Every fault is told with its file and line, and nothing is written.
#[test]
fn faults_are_told_and_nothing_is_written() {
    let faults: [(&str, &str, &str, &[&str]); 7] = [
        (
            "job_tasks_4.txt",
            "6 0 1",
            "6 0 1 -> 1 0 2",
            &["job_tasks_4.txt:", "task 6", "nothing comes after it"],
        ),
        (
            "job_tasks_4.txt",
            "-- 0 -> 5 0 3",
            "-- 0",
            &["job_tasks_4.txt:5: task 4", "never joined; lead it to a join task"],
        ),
        (
            "job_tasks_4.txt",
            "2 0 4 300 10 -> 5 0 3",
            "2 0 4 300 10 -> 1 0 2",
            &["job_tasks_4.txt:", "wait for each other in a circle"],
        ),
        (
            "job_tasks_4.txt",
            "4 1 5 200 5 -- 0",
            "4 1 5 200 5 -- 99 0 5",
            &["job_tasks_4.txt:5:", "task 99"],
        ),
        (
            "job_processes_4.csv",
            "1;4;200",
            "1;4;-200",
            &["job_processes_4.csv:3: approx_needed_memory", "negative; write"],
        ),
        (
            "job_details_4.csv",
            "0;20;9;500",
            "0;99999999999999999999;9;500",
            &["job_details_4.csv:2: deadline", "too great"],
        ),
        (
            "machine_details.csv",
            "7;x,y;1000;5",
            "7;x,y;1000;",
            &["machine_details.csv:2: instructions_pre_sec is missing; write"],
        ),
    ];
    for (number, (file, from, to, parts)) in faults.into_iter().enumerate() {
        let directory = directory(&format!("import-fault-{number}"), FILES);
        let text = fs::read_to_string(directory.join(file)).unwrap();
        assert!(text.contains(from), "{file}: {from}");
        fs::write(directory.join(file), text.replace(from, to)).unwrap();
        let (job, machine) = (directory.join("j.toml"), directory.join("m.toml"));
        let (job_path, machine_path) = (job.to_str().unwrap(), machine.to_str().unwrap());
        let from = directory.to_str().unwrap();
        let arguments = ["import", from, "--output", job_path, "--machine", machine_path];
        let ran = pbsctl(&arguments, "");
        assert_eq!(ran.status, 3, "{file}: {}", ran.stderr);
        for part in parts {
            assert!(ran.stderr.contains(part), "{part}: {}", ran.stderr);
        }
        assert!(!Path::new(&job).exists() && !machine.exists(), "{file}");
    }
}

#[test]
fn faults_of_two_files_are_told_both() {
    let directory = directory("import-faults", FILES);
    fs::write(directory.join("job_details_4.csv"), DETAILS.replace("20", "x")).unwrap();
    fs::write(directory.join("job_processes_4.csv"), PROCESSES.replace("9;", ";")).unwrap();
    let ran = pbsctl(&["import", directory.to_str().unwrap()], "");
    assert_eq!(ran.status, 3);
    for part in ["job_details_4.csv:2: deadline", "job_processes_4.csv:2: approx_runtime"] {
        assert!(ran.stderr.contains(part), "{part}: {}", ran.stderr);
    }
}
