// SPDX-License-Identifier: GPL-2.0
//! Jobs and machines that are not valid, through the command line: every error
//! names the file, the line and the task and says what to do, and no file is
//! written.

mod common;

use std::fs;
use std::path::Path;

use common::{directory, pbsctl, Ran};

const JOB: &str = r#"name = "job"
deadline_ns = 1_000_000_000

[[process]]
id = 1
name = "left"
memory_bytes = 1000
tasks = [
    { name = "begin", insns = 3000 },
    { action = "fork", child = "right" },
    { name = "work", insns = 3000, memory_bytes = 500 },
    { action = "join", child = "right" },
]

[[process]]
id = 2
name = "right"
memory_bytes = 1000
tasks = [{ action = "communication", insns = 10 }]
"#;

const MACHINE: &str = r#"[[node]]
name = "n"
memory_bytes = 1_000_000
rate_insns_per_s = 1_000_000
cores = [{ name = "c0", cpu = 0 }, { name = "c1", cpu = 1 }]
"#;

/// A text, its replacement, and the expected messages.
type Case = (&'static str, &'static str, &'static [&'static str]);

const JOBS: &[Case] = &[
    // Cyclic.
    (
        "[{ action = \"communication\", insns = 10 }]",
        "[{ action = \"fork\", child = \"left\" }, 5, { action = \"join\", child = \"left\" }]",
        &["tasks 7, 0, 1, 8 and 4 wait for each other in a circle", "lead one of them elsewhere"],
    ),
    (
        "{ action = \"fork\", child = \"right\" }",
        "{ action = \"fork\", child = \"left\" }",
        &["job.toml:10: task 1", "forks process left, to which it belongs"],
    ),
    // Torn.
    (
        "    { action = \"join\", child = \"right\" },\n",
        "",
        &["job.toml:18: task 3", "never joined; lead it to a join task"],
    ),
    ("    { action = \"fork\", child = \"right\" },\n", "", &["job.toml:18: task 3"]),
    // Negative, huge and missing figures.
    ("3000 }", "-3000 }", &["job.toml:9: insns is -3_000; it must be between 0 and"]),
    (
        "3000 }",
        "99999999999999999999 }",
        &["job.toml:9: insns is 99999999999999999999; it must be between 0 and"],
    ),
    (
        "3000 }",
        "999_999_999_999_999_999 }",
        &["job.toml:9:", "task 0 (begin) is 999_999_999_999_999_999; it must be between 1 and"],
    ),
    ("3000 }", "1.5 }", &["job.toml:9: insns must be a whole number"]),
    (", insns = 3000 }", " }", &["job.toml:9: a calculation takes instructions; add insns ="]),
    (
        "id = 1\nname = \"left\"\nmemory_bytes = 1000\n",
        "id = 1\nname = \"left\"\n",
        &["job.toml:4: process left has no memory size; add memory_bytes ="],
    ),
    (
        "memory_bytes = 500",
        "memory_bytes = 5_000",
        &["job.toml:11: task 2 (work) uses 5_000 bytes", "give the process as much"],
    ),
    (
        "memory_bytes = 1000",
        "memory_bytes = 9_000_000_000_000_000_000",
        &["job.toml:4: memory_bytes of process left is 9_000_000", "between 0 and"],
    ),
    // A partner that is not there, or is none.
    (
        "insns = 10 }",
        "insns = 10, to = 99 }",
        &["job.toml:19: task 4 sends a message to task 99, which is not there; name another"],
    ),
    (
        "insns = 10 }",
        "insns = 10, to = 0 }",
        &["job.toml:19: task 4 sends a message to task 0, which is no communication; name one"],
    ),
    (
        "\"fork\", child = \"right\"",
        "\"fork\", child = \"rigt\"",
        &["job.toml:10: task 1 names process rigt, which is not there; did you mean right?"],
    ),
    // Cores are not the job's to choose.
    ("id = 2\n", "id = 2\ncore = \"c9\"\n", &["job.toml:17: [[process]] has no key core"]),
    // Deadlines that are over before anything can start.
    ("1_000_000_000", "0", &["job.toml:2: deadline_ns is 0; it must be between 1 and"]),
    ("1_000_000_000", "-5", &["job.toml:2: deadline_ns is -5; it must be between 1 and"]),
    (
        "1_000_000_000",
        "9_000_000_000_000_000_000",
        &["job.toml:2: deadline_ns is 9_000_000_000_000_000_000; it must be between 1 and"],
    ),
    (
        "deadline_ns = 1_000_000_000",
        "deadline_ns = 1_000\nstart_ns = 2_000",
        &["job.toml:2: the job's deadline, 1_000, is not after its start, 2_000; put it later"],
    ),
    (
        "deadline_ns = 1_000_000_000\n",
        "",
        &["job.toml: the job has no deadline; add deadline_ns ="],
    ),
    // No TOML any more.
    ("{ name = \"begin\"", "{ name = \"begin", &["job.toml:10: this is no TOML"]),
];

const MACHINES: &[Case] = &[
    ("memory_bytes = 1_000_000\n", "", &["lab.toml:1: node n has no memory; add memory_bytes"]),
    ("cpu = 1", "cpu = -1", &["lab.toml:5: cpu is -1; it must be between 0 and"]),
    ("cpu = 1", "cpu = 0", &["lab.toml:1: cores c0 and c1", "correct one"]),
    ("rate_insns_per_s = 1_000_000", "rate_insns_per_s = 0", &["lab.toml:1:", "between 1 and"]),
    ("\"c1\"", "\"c0\"", &["lab.toml:1: core name \"c0\"", "choose another"]),
];

const FILES: &[(&str, &str)] = &[("lab.toml", MACHINE), ("job.toml", JOB)];

fn changed(text: &str, (from, to, _): &Case) -> String {
    assert!(text.contains(from), "{from}");
    text.replacen(from, to, 1)
}

/// The command with files that must not be written, where it has such.
fn tried(directory: &Path, command: &str) -> Ran {
    let path = |name: &str| directory.join(name).to_str().unwrap().to_string();
    let (job, machine, history) = (path("job.toml"), path("lab.toml"), path("h.db"));
    let (plan, svg, csv) = (path("plan.toml"), path("plan.svg"), path("plan.csv"));
    let planning = [&job, "--machine", &machine, "--history", &history];
    let arguments: Vec<&str> = match command {
        "explain" => [&["explain"][..], &planning].concat(),
        _ => {
            let files = ["--output", &plan, "--gantt", &svg, "--csv", &csv];
            [&["plan", "show"][..], &planning, &files].concat()
        }
    };
    let ran = pbsctl(&arguments, "");
    let left: Vec<_> = fs::read_dir(directory).unwrap().collect();
    let expected = if ran.status == 0 { 5 } else { 2 };
    if command != "explain" {
        assert_eq!(left.len(), expected, "{left:?}");
    }
    ran
}

fn told(ran: &Ran, (_, to, parts): &Case) {
    assert_eq!(ran.status, 3, "{to}: {}", ran.stderr);
    assert_eq!(ran.stdout, "", "{to}");
    for part in *parts {
        assert!(ran.stderr.contains(part), "{part}: {}", ran.stderr);
    }
}

#[test]
fn the_files_to_start_from_are_valid() {
    let directory = directory("bad-none", FILES);
    for command in ["explain", "plan show"] {
        assert_eq!(tried(&directory, command).status, 0);
    }
}

#[test]
fn bad_jobs() {
    let directory = directory("bad-jobs", FILES);
    let file = directory.join("job.toml");
    for case in JOBS {
        fs::write(&file, changed(JOB, case)).unwrap();
        for command in ["explain", "plan show"] {
            told(&tried(&directory, command), case);
        }
        told(&pbsctl(&["check", file.to_str().unwrap()], ""), case);
    }
}

#[test]
fn bad_machines() {
    let directory = directory("bad-machines", FILES);
    let file = directory.join("lab.toml");
    for case in MACHINES {
        fs::write(&file, changed(MACHINE, case)).unwrap();
        told(&tried(&directory, "plan show"), case);
        told(&pbsctl(&["check", file.to_str().unwrap()], ""), case);
    }
}

#[test]
fn files_that_are_none() {
    let directory = directory("bad-files", FILES);
    for (content, part) in [
        (&b""[..], "job.toml: the job has no name, under which its history is stored; add name"),
        (b"\x7fELF\x02\x01\xff\xfe\x00", "job.toml: this is not UTF-8 text"),
        (b"\x00\x00\x00\x00", "job.toml:1: this is no TOML"),
        (b"[[cpu]]\ncpu = 0\n", "job.toml:1:"),
    ] {
        fs::write(directory.join("job.toml"), content).unwrap();
        for command in ["explain", "plan show"] {
            let ran = tried(&directory, command);
            assert_eq!(ran.status, 3, "{}", ran.stderr);
            assert!(ran.stderr.contains(part), "{part}: {}", ran.stderr);
        }
    }
    fs::remove_file(directory.join("job.toml")).unwrap();
    fs::create_dir(directory.join("job.toml")).unwrap();
    let ran = tried(&directory, "plan show");
    assert_eq!(ran.status, 1);
    assert!(ran.stderr.contains("job.toml: "), "{}", ran.stderr);
}

/// A file with many problems: the first dozen are printed, and the number of the others.
#[test]
fn many_problems_are_counted() {
    let tasks = "{ planned_insns = 0 }, ".repeat(15);
    let plan = format!("[[process]]\nid = 1\ntasks = [{tasks}]\n[[cpu]]\ncpu = 0\nslots = [1]\n");
    let ran = pbsctl(&["check", "-", "--json"], &plan);
    let all = ran.json()["problems"].as_array().unwrap().len();
    assert_eq!(all, 13, "{}", ran.stderr);
    let lines: Vec<_> = ran.stderr.lines().collect();
    assert_eq!(lines.len(), 13, "{}", ran.stderr);
    assert_eq!(lines[12], "standard input: and 4 more problems");
}

#[test]
fn a_command_that_answers_has_a_line_a_time_and_a_user() {
    for (options, words) in [
        (&["--scheduler", "./planner"][..], "write \"command LINE\""),
        (&["--scheduler", "stretch"], "write \"command LINE\""),
        (&["--scheduler-timeout", "2"], "--scheduler <WHO>"),
        (&["--scheduler", "command x", "--scheduler-timeout", "0"], "write 0.001 to 3600 seconds"),
        (&["--scheduler", "command x", "--scheduler-user", "no-one"], "has no user no-one"),
    ] {
        let ran = pbsctl(&[&["run", "job.toml"], options].concat(), "");
        assert_eq!((ran.status, ran.stdout.as_str()), (2, ""), "{options:?}");
        assert!(ran.stderr.contains(words), "{}", ran.stderr);
    }
}

#[test]
fn an_empty_command_is_no_scheduler() {
    for line in ["command ", "command   "] {
        let ran = pbsctl(&["sim", "-", "--scheduler", line], common::LATE);
        assert_eq!((ran.status, ran.stdout.as_str()), (2, ""), "{line:?}");
        assert!(ran.stderr.contains("the command line is empty; write it"), "{}", ran.stderr);
    }
}

/// JSON with a mistake is JSON, whatever it was meant to be: the line of the mistake is named.
#[test]
fn a_mistake_in_json_is_named_with_its_line() {
    let directory = directory("json-mistakes", &[("bad.json", "{\n \"cpu\": [,]\n}")]);
    let (bad, good) = (directory.join("bad.json"), directory.join("job.toml"));
    std::fs::write(&good, JOB).unwrap();
    let (bad, good) = (bad.to_str().unwrap(), good.to_str().unwrap());
    for arguments in [
        &["plan", "check", bad][..],
        &["job", "check", bad],
        &["job", "explain", bad],
        &["job", "explain", good, "--machine", bad],
        &["cosched", "plan", bad],
        &["sim", bad],
        &["run", bad],
    ] {
        let ran = pbsctl(arguments, "");
        assert_eq!(ran.status, 3, "{arguments:?}: {}", ran.stderr);
        assert!(ran.stderr.contains("bad.json:2: this is no JSON: "), "{}", ran.stderr);
    }
    for (arguments, text, words) in [
        (["plan", "check", "-"], "{}", "the plan has no process; add a [[process]]"),
        (["plan", "check", "-"], "", "the plan has no process; add a [[process]]"),
        (["job", "check", "-"], "{}", "the job has no name"),
        (["job", "check", "-"], "", "the job has no deadline; add deadline_ns"),
        (["plan", "check", "-"], "{\"a\": 1}", "and no plan; write a plan in TOML or JSON"),
        (["job", "check", "-"], "{\"a\": 1}", "and no job; write a job in TOML or JSON"),
    ] {
        let ran = pbsctl(&arguments, text);
        assert_eq!(ran.status, 3, "{arguments:?} {text}");
        assert!(ran.stderr.contains(words), "{arguments:?} {text}: {}", ran.stderr);
    }
}

/// A number below 0 is the value of its option, which says what to write.
#[test]
fn numbers_below_0_are_values() {
    for (arguments, option) in [
        (&["sim", "-", "--timer-delay", "-5"][..], "--timer-delay"),
        (&["sim", "-", "--until", "-1"], "--until"),
        (&["plan", "generate", "--seed", "-1"], "--seed"),
        (&["plan", "dump", "--cpu", "-1"], "--cpu"),
        (&["job", "explain", "job.toml", "--min-mem-percentage", "-1"], "--min-mem-percentage"),
    ] {
        let ran = pbsctl(arguments, common::LATE);
        assert_eq!(ran.status, 2, "{arguments:?}");
        let words = format!("invalid value '{}' for '{option}", arguments[arguments.len() - 1]);
        assert!(ran.stderr.contains(&words), "{arguments:?}: {}", ran.stderr);
        assert!(!ran.stderr.contains("use '--"), "{arguments:?}: {}", ran.stderr);
    }
}

/// Help names both forms of the files that commands read.
#[test]
fn help_names_both_forms_of_files() {
    for command in [
        &["plan", "check"][..],
        &["job", "check"],
        &["plan", "show"],
        &["job", "explain"],
        &["job", "submit"],
        &["run"],
        &["sim"],
        &["cosched", "plan"],
    ] {
        let help = pbsctl(&[command, &["-h"]].concat(), "").stdout;
        let is_read = |line: &&str| line.contains(" in TOML") && !line.contains("Write ");
        for line in help.lines().filter(is_read) {
            assert!(line.contains("JSON"), "{command:?}: {line}");
        }
        assert!(help.contains("JSON"), "{command:?}");
    }
}
