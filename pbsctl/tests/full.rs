// SPDX-License-Identifier: GPL-2.0
//! A full disk, a reader that has gone and a write that fails: one line, an exit
//! status, and what was there is still there.

mod common;

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::pipe;
use std::os::unix::fs::{symlink, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use common::{pbsctl, LATE, VERBS};

const JOB: &str = "name = \"sort\"\ndeadline_ns = 1_000_000_000\n\
                   [[process]]\nid = 1\nmemory_bytes = 1_048_576\n\
                   command = [\"true\"]\ntasks = [{ id = 1, insns = 5_000_000 }]\n";
const GRAPH: &str = "name = \"pair\"\ndeadline_ns = 100_000_000\n\
                     [[task]]\nname = \"one\"\n\
                     [[task.variant]]\nmodel = \"cpu\"\nruntime_ns = 1_000_000\n";
const MACHINE: &str = "[[node]]\nname = \"n\"\nmemory_bytes = 67_108_864\n\
                       cores = [{ name = \"c\", rate_insns_per_s = 1_000_000_000 }]\n";

/// Command lines that print something on any machine, for every command. Those that
/// need the device are told that it is missing, which `--json` prints, too.
const PRINTING: [(&str, &[&str]); 80] = [
    ("check", &["check", "plan.toml"]),
    ("check", &["check", "job.toml"]),
    ("check", &["check", "nothing.toml"]),
    ("load", &["load", "plan.toml"]),
    ("run", &["run", "true.toml"]),
    ("run", &["run", "job.toml", "--machine", "lab.toml"]),
    ("profile", &["profile", "job.toml"]),
    ("submit", &["submit", "job.toml", "--machine", "lab.toml"]),
    ("step", &["step", "job.toml"]),
    ("withdraw", &["withdraw", "99"]),
    ("jobs", &["jobs"]),
    ("job", &["job", "7"]),
    ("cancel", &["cancel", "99"]),
    ("hold", &["hold", "7"]),
    ("release", &["release", "7"]),
    ("alter", &["alter", "7", "--priority", "1"]),
    ("watch", &["watch"]),
    ("drain", &["drain"]),
    ("resume", &["resume"]),
    ("status", &["status"]),
    ("sim", &["sim", "plan.toml"]),
    ("record", &["record", "-o", "none.inputs", "--for", "1ms"]),
    ("replay", &["replay", "run.inputs"]),
    ("report", &["report", "run.json", "--chart", "gantt"]),
    ("report", &["report", "run.json", "-o", "page.html"]),
    ("trace", &["trace", "run.json"]),
    ("trace", &["trace"]),
    ("study", &["study", "deadlines", "--plans", "1"]),
    ("study", &["study", "idle", "--plans", "1"]),
    ("study", &["study", "compare", "--plans", "1"]),
    ("study", &["study", "deviations", "--plans", "1"]),
    ("study", &["study", "strategies", "--plans", "1"]),
    ("study", &["study", "evolving", "--figure", "3", "--meshes", "1"]),
    (
        "interference",
        &[
            "interference",
            "measure",
            "--rounds",
            "1",
            "--hogs",
            "compute",
            "--seconds-per-round",
            "5ms",
        ],
    ),
    ("study", &["study", "cosched", "--only", "claims"]),
    ("interference", &["interference", "show"]),
    ("rms", &["rms", "requests", "--socket", "none.sock"]),
    ("apps", &["apps", "run", "psa", "--socket", "none.sock"]),
    ("cosched", &["cosched", "plan", "graph.toml"]),
    ("cosched", &["cosched", "explain", "graph.toml"]),
    ("cosched", &["cosched", "sim", "graph.toml"]),
    ("cosched", &["cosched", "compare", "graph.toml"]),
    ("csi", &["csi", "list", "--directory", "."]),
    ("csi", &["csi", "clean", "--directory", "."]),
    ("events", &["events"]),
    ("top", &["top", "--count", "1"]),
    ("explain", &["explain", "job.toml", "--machine", "lab.toml"]),
    ("plan", &["plan", "show", "job.toml", "--machine", "lab.toml"]),
    ("history", &["history"]),
    ("stat", &["stat"]),
    ("show", &["show", "--cpu", "0"]),
    ("import", &["import", "leppert.txt"]),
    ("gen", &["gen", "--processes", "1", "--tasks", "2"]),
    ("gen", &["gen", "--list"]),
    ("cluster", &["cluster", "check", "site.toml"]),
    ("cluster", &["cluster", "replay", "trace.swf", "--cores", "4"]),
    ("cluster", &["cluster", "doctor", "--conf", "slurm.conf"]),
    ("cluster", &["cluster", "workload", "--jobs", "5"]),
    ("cluster", &["cluster", "site", "site.toml"]),
    ("cluster", &["cluster", "alloc", "--res", "rset=ncpus=1"]),
    ("cluster", &["cluster", "reserve", "--res", "rset=ncpus=1"]),
    ("cluster", &["cluster", "alter", "1", "-t", "2h"]),
    ("cluster", &["cluster", "info"]),
    ("cluster", &["cluster", "info", "1"]),
    ("cluster", &["cluster", "why", "1"]),
    ("cluster", &["cluster", "node"]),
    ("cluster", &["cluster", "limits"]),
    ("cluster", &["cluster", "plan"]),
    ("cluster", &["cluster", "stat"]),
    ("cluster", &["cluster", "systems"]),
    ("cluster", &["cluster", "advance", "+1s"]),
    ("cluster", &["cluster", "extend", "1", "1s"]),
    ("cluster", &["cluster", "kill", "99"]),
    ("cluster", &["cluster", "whole", "--jobs", "2"]),
    ("drop", &["drop", "--cpu", "0"]),
    ("configure", &["node", "configure", "--cpu", "0", "idle_policy=pieces"]),
    ("schema", &["schema", "plan"]),
    ("completions", &["completions", "bash"]),
    ("man", &["man", "man"]),
    ("help", &["help"]),
];

const TRUE: &str = "[[process]]\nid = 1\ncommand = [\"true\"]\ntasks = [1_000]\n\
                    [[cpu]]\ncpu = 0\nslots = [1]\n";

/// A directory with one file of each kind.
fn directory(name: &str) -> PathBuf {
    let files = [
        ("plan.toml", LATE),
        ("true.toml", TRUE),
        ("job.toml", JOB),
        ("lab.toml", MACHINE),
        ("graph.toml", GRAPH),
        ("site.toml", "[[nodes]]\nname = \"n\"\nhas = \"ncpus=4\"\n"),
        ("slurm.conf", "NodeName=n\nPartitionName=plan Nodes=n\n"),
        ("trace.swf", "1 0 -1 60 2 -1 -1 2 90 -1 1 1 1 -1 -1 -1 -1 -1\n"),
        ("leppert.txt", "1;0,9000;;;0,4,1200,1150;-1,-1,300,310;\n"),
    ];
    let directory = common::directory(name, &files);
    let plan = directory.join("plan.toml");
    let recording = pbsctl(&["--json", "sim", plan.to_str().unwrap()], "").stdout;
    fs::write(directory.join("run.json"), recording).unwrap();
    for arguments in [
        &["sim", "plan.toml", "--record", "run.inputs"][..],
        &["cluster", "new", "--site", "site.toml"],
        &["cluster", "alloc", "--res", "rset=ncpus=4", "-t", "1h"],
    ] {
        let ran = command(&directory, arguments).output().unwrap();
        assert!(ran.status.success(), "{arguments:?}: {ran:?}");
    }
    directory
}

fn command(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pbsctl"));
    command
        .args(arguments)
        .current_dir(directory)
        .env("PBS_DEVICE", "/nonexistent/pbs_plan")
        .env("PBS_HISTORY", directory.join("history.db"))
        .env("PBS_INPUTS", "/nonexistent/pbs_inputs")
        .env("PBS_SOCKET", "/nonexistent/pbs.sock")
        .stdin(Stdio::null());
    command
}

/// Returns the standard error, which must be one line and no panic.
#[track_caller]
fn one_line(ran: &Output, what: &[&str]) -> String {
    let text = String::from_utf8(ran.stderr.clone()).unwrap();
    assert!(!text.contains("panicked"), "{what:?}: {text}");
    assert_eq!(text.lines().count(), 1, "{what:?}: {text}");
    text
}

#[test]
fn every_command_is_walked() {
    for command in VERBS.into_iter().chain(["help"]) {
        let mut walked = PRINTING.iter();
        assert!(walked.any(|(name, _)| *name == command), "{command}");
    }
}

/// Output that can't be written is told in one line, unless another line has told
/// already what went wrong before. A reader that has gone needs no message.
#[test]
fn a_full_disk_is_told_and_a_closed_pipe_is_not() {
    let directory = directory("full-stdout");
    // So that there is one to look into.
    assert!(command(&directory, &["submit", "job.toml", "--machine", "lab.toml"])
        .output()
        .unwrap()
        .status
        .success());
    for (_, arguments) in PRINTING {
        for json in [false, true] {
            let mut arguments = arguments.to_vec();
            if json {
                arguments.insert(0, "--json");
            }
            let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
            let (reader, closed) = pipe().unwrap();
            drop(reader);
            for (out, words) in
                [(Stdio::from(full), Some("No space left on device")), (Stdio::from(closed), None)]
            {
                let whole = command(&directory, &arguments).output().unwrap();
                let ran = command(&directory, &arguments).stdout(out).output().unwrap();
                if let (true, None) = (whole.status.success(), words) {
                    assert!(ran.stderr.is_empty(), "{arguments:?}: {ran:?}");
                    assert_eq!(ran.status.code(), Some(141), "{arguments:?}");
                    continue;
                }
                let line = one_line(&ran, &arguments);
                if let (true, Some(words)) = (whole.status.success(), words) {
                    let told = format!("pbsctl: standard output: {words}");
                    assert!(line.starts_with(&told), "{arguments:?}: {line}");
                    assert_eq!(ran.status.code(), Some(1), "{arguments:?}");
                } else {
                    // What failed first is what is told.
                    assert_eq!(ran.stderr, whole.stderr, "{arguments:?}");
                    assert_eq!(ran.status, whole.status, "{arguments:?}");
                }
            }
        }
    }
}

/// A completed action stays completed.
#[test]
fn a_run_is_withdrawn_though_nobody_hears_of_it() {
    let directory = directory("full-withdraw");
    let submit = ["submit", "job.toml", "--machine", "lab.toml"];
    assert!(command(&directory, &submit).output().unwrap().status.success());
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let ran = command(&directory, &["withdraw", "1"]).stdout(full).output().unwrap();
    let line = one_line(&ran, &["withdraw"]);
    assert!(line.starts_with("pbsctl: standard output: "), "{line}");
    let again = command(&directory, &["withdraw", "1"]).output().unwrap();
    let line = one_line(&again, &["withdraw"]);
    assert!(line.contains("is not waiting"), "{line}");
}

/// No message can be printed then, but the exit status is the usual one.
#[test]
fn standard_error_may_be_full_too() {
    let directory = directory("full-stderr");
    for (_, arguments) in PRINTING {
        let whole = command(&directory, arguments).output().unwrap();
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let ran = command(&directory, arguments).stderr(full).output().unwrap();
        assert_eq!(ran.status, whole.status, "{arguments:?}");
    }
}

/// Every option that names a file to write.
const WRITING: [&[&str]; 10] = [
    &["report", "run.json", "-o", "out"],
    &["report", "run.json", "--chart", "gantt", "-o", "out"],
    &["trace", "run.json", "-o", "out"],
    &["import", "leppert.txt", "-o", "out"],
    &["gen", "-o", "out"],
    &["plan", "show", "job.toml", "--machine", "lab.toml", "-o", "out"],
    &["plan", "show", "job.toml", "--machine", "lab.toml", "--gantt", "out"],
    &["plan", "show", "job.toml", "--machine", "lab.toml", "--csv", "out"],
    &["cosched", "plan", "graph.toml", "-o", "out.svg"],
    &["man", "."],
];

/// Files can't become longer than a few bytes: as on a full disk, a write fails when
/// the file is open already.
fn with_little_room(directory: &Path, arguments: &[&str]) -> Output {
    let script = format!("trap '' XFSZ; ulimit -f 0; exec {} \"$@\"", env!("CARGO_BIN_EXE_pbsctl"));
    let mut command = Command::new("sh");
    command.args(["-c", &script, "sh"]).args(arguments);
    command.current_dir(directory).stdin(Stdio::null());
    command.output().unwrap()
}

#[test]
fn a_write_that_fails_leaves_the_file_that_was_there() {
    let directory = directory("full-file");
    for arguments in WRITING {
        for json in [false, true] {
            let mut arguments = arguments.to_vec();
            if json {
                arguments.insert(0, "--json");
            }
            let name = match arguments.last() {
                Some(&name) if name != "." => name,
                _ => "pbsctl-job-check.1",
            };
            let file = directory.join(name);
            fs::write(&file, "what was there").unwrap();
            fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
            let names = |at: &Path| -> Vec<_> {
                let entries = fs::read_dir(at).unwrap();
                let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
                names.sort();
                names
            };
            let before = names(&directory);

            let ran = with_little_room(&directory, &arguments);
            one_line(&ran, &arguments);
            assert_eq!(ran.status.code(), Some(1), "{arguments:?}");
            assert_eq!(fs::read_to_string(&file).unwrap(), "what was there", "{arguments:?}");
            assert_eq!(names(&directory), before, "{arguments:?}");

            // With room it is another file, of the same permissions.
            let ran = command(&directory, &arguments).output().unwrap();
            assert!(ran.status.success(), "{arguments:?}: {ran:?}");
            assert_ne!(fs::read_to_string(&file).unwrap(), "what was there", "{arguments:?}");
            let mode = fs::metadata(&file).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o640, "{arguments:?}");
        }
    }
}

#[test]
fn what_a_link_leads_to_is_written() {
    let directory = directory("full-link");
    fs::write(directory.join("real"), "old").unwrap();
    symlink("real", directory.join("link")).unwrap();
    let ran = command(&directory, &["gen", "-o", "link"]).output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
    assert!(fs::symlink_metadata(directory.join("link")).unwrap().is_symlink());
    assert_ne!(fs::read_to_string(directory.join("real")).unwrap(), "old");
}

/// A pipe and a device are written to, not replaced.
#[test]
fn what_is_no_file_is_written_to() {
    let directory = directory("full-device");
    let ran = command(&directory, &["gen", "-o", "/dev/full"]).output().unwrap();
    let line = one_line(&ran, &["gen"]);
    assert!(line.starts_with("pbsctl: /dev/full: No space left on device"), "{line}");
    let ran = command(&directory, &["gen", "-o", "/dev/stdout"]).output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
    assert!(String::from_utf8_lossy(&ran.stdout).contains("[[cpu]]"));
    File::open("/dev/full").unwrap();
    let (reader, closed) = pipe().unwrap();
    drop(reader);
    let ran = command(&directory, &["gen", "-o", "/dev/stdout"]).stdout(closed).output().unwrap();
    assert_eq!((ran.status.code(), &*ran.stderr), (Some(141), &b""[..]));
}
