// SPDX-License-Identifier: GPL-2.0
//! Completions and manual pages say what the command line takes.

mod common;

use std::path::Path;
use std::process::Command;
use std::{env, fs};

use common::{commands, directory, pbsctl, scratch};

#[test]
fn every_shell_has_a_script() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ran = pbsctl(&["completions", shell], "");
        assert_eq!((ran.status, ran.stderr.as_str()), (0, ""));
        assert!(ran.stdout.contains("PBSCTL_COMPLETE"), "{}", ran.stdout);
    }
    let json = pbsctl(&["--json", "completions", "bash"], "").json();
    assert_eq!(json["shell"], "bash");
}

/// Bash's candidates for the last of the words.
fn offered(directory: &Path, line: &str) -> Vec<String> {
    let file = directory.join("completion.bash");
    fs::write(&file, pbsctl(&["completions", "bash"], "").stdout).unwrap();
    let script = format!(
        ". {}; COMP_WORDS=({line}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
         _clap_complete_pbsctl pbsctl \"${{COMP_WORDS[COMP_CWORD]}}\" x; \
         printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        file.display()
    );
    let pbsctl = Path::new(env!("CARGO_BIN_EXE_pbsctl")).parent().unwrap();
    let path = format!("{}:{}", pbsctl.display(), env::var("PATH").unwrap());
    let ran = Command::new("bash")
        .args(["-c", &script])
        .env("PATH", path)
        .env("PBS_HISTORY", directory.join("history.db"))
        .output()
        .unwrap();
    let out = String::from_utf8_lossy(&ran.stdout).into_owned();
    out.lines()
        .map(|line| line.trim_end().into())
        .filter(|line: &String| !line.is_empty())
        .collect()
}

#[test]
fn bash_completes_commands_and_what_this_node_knows() {
    let directory = directory("completion", &[]);
    let commands = commands();
    assert!(commands.len() > 10, "{commands:?}");
    let all = offered(&directory, "pbsctl ''");
    let job = offered(&directory, "pbsctl job ''");
    for command in &commands {
        match command.split_once(' ') {
            None => assert!(all.contains(command), "{command}: {all:?}"),
            Some(("job", below)) => assert!(job.iter().any(|it| it == below), "{below}: {job:?}"),
            Some((group, _)) => assert!(all.iter().any(|it| it == group), "{group}: {all:?}"),
        }
    }
    assert_eq!(offered(&directory, "pbsctl node eve"), ["events"]);
    assert_eq!(
        offered(&directory, "pbsctl sim plan.toml --config t1_"),
        ["t1_spares_last_slot=", "t1_state="]
    );
    assert_eq!(offered(&directory, "pbsctl jobs --columns run,dea"), ["run,deadline"]);
    // Without a history nobody knows a job.
    assert!(offered(&directory, "pbsctl cancel s").is_empty());

    let machine = concat!(env!("CARGO_MANIFEST_DIR"), "/../samples/machines/vm.toml");
    let history = directory.join("history.db");
    for name in ["sort", "pack"] {
        let job = format!(
            "name = \"{name}\"\ndeadline_ns = 9_000_000_000\n[[process]]\nid = 1\n\
             memory_bytes = 4_000_000\ncommand = [\"true\"]\ntasks = [1_000_000]\n"
        );
        let history = history.to_str().unwrap();
        let submit = ["submit", "--history", history, "--machine", machine, "-"];
        assert_eq!(pbsctl(&submit, &job).status, 0);
    }
    assert_eq!(offered(&directory, "pbsctl cancel s"), ["sort"]);
    let which = offered(&directory, "pbsctl alter ''");
    for job in ["1", "2", "sort", "pack"] {
        assert!(which.iter().any(|it| it == job), "{which:?}");
    }
    assert_eq!(offered(&directory, "pbsctl withdraw 2"), ["2"]);
    // Runs of it are known when it has run.
    let known = offered(&directory, "pbsctl history pa");
    assert_eq!(known, ["pack"]);
    // One that was withdrawn can't be withdrawn.
    let history = history.to_str().unwrap();
    assert_eq!(pbsctl(&["withdraw", "--history", history, "2"], "").status, 0);
    assert!(offered(&directory, "pbsctl withdraw 2").is_empty());
}

#[test]
fn every_command_has_a_page() {
    let directory = scratch("man");
    let name = directory.to_str().unwrap();
    let json = pbsctl(&["--json", "man", name], "").json();
    let pages = json["pages"].as_array().unwrap();
    for command in commands().iter().filter(|command| *command != "help") {
        let page = format!("pbsctl-{}.1", command.replace(' ', "-"));
        assert!(pages.iter().any(|name| *name == *page), "{page}");
        let text = fs::read_to_string(directory.join(page)).unwrap();
        assert!(text.contains(".SH SYNOPSIS"), "{text}");
    }
}

/// The section of a page.
fn section<'a>(page: &'a str, title: &str) -> &'a str {
    let start = page.find(&format!(".SH {title}\n"));
    let start = start.unwrap_or_else(|| panic!("{title}: {page}"));
    let rest = &page[start + 4..];
    rest.split(".SH ").next().unwrap()
}

#[test]
fn every_page_says_what_is_around_its_command() {
    let directory = directory("man-sections", &[]);
    let json = pbsctl(&["--json", "man", directory.to_str().unwrap()], "").json();
    let pages: Vec<_> = (json["pages"].as_array().unwrap().iter())
        .map(|page| page.as_str().unwrap().to_string())
        .collect();
    let read = |name: &str| fs::read_to_string(directory.join(name)).unwrap();
    for page in &pages {
        let text = read(page);
        // What is named is there.
        let also = section(&text, if page.ends_with(".1") { "\"SEE ALSO\"" } else { "SEE ALSO" });
        for line in also.lines().filter_map(|line| line.strip_prefix(".BR ")) {
            let file = line.replace("\\-", "-").replace(" (", ".").replace([')', ','], "");
            assert!(pages.contains(&file), "{page}: {file}");
            assert_ne!(*page, file);
        }
        assert!(also.contains(".BR "), "{page}");
        if page.ends_with(".1") {
            assert!(section(&text, "ENVIRONMENT").contains("PBS_DEVICE"), "{page}");
            assert!(section(&text, "FILES").contains("/dev/pbs_plan"), "{page}");
            assert!(section(&text, "\"EXIT STATUS\"").contains("\\fB2\\fR"), "{page}");
        }
    }
    let status = |page: &str| section(&read(page), "\"EXIT STATUS\"").to_string();
    assert!(status("pbsctl-run.1").contains("\\fB130\\fR\ninterrupted"));
    assert!(!status("pbsctl-job-list.1").contains("130"));
    assert!(status("pbsctl.1").contains("run, profile, step: interrupted"));
    let jobs = read("pbsctl-job-list.1");
    for variable in ["PBS_HISTORY", "PBS_SOCKET", "TZ"] {
        assert!(section(&jobs, "ENVIRONMENT").contains(variable), "{variable}");
    }
    assert!(section(&jobs, "FILES").contains("/run/pbs/pbs.sock"));
}

/// All that the documentation says of a format is in its page, and no mark of how it is
/// written there.
#[test]
fn formats_have_pages() {
    let directory = directory("man-formats", &[]);
    assert_eq!(pbsctl(&["man", directory.to_str().unwrap()], "").status, 0);
    for (page, words) in [
        ("pbs-job.5", &["deadline_ns", "The task net", "fork_end", "tasks = [95_000_000]"][..]),
        ("pbs-machine.5", &["bandwidth_bytes_per_s", "cores = [{ name"]),
        ("pbs-plan.5", &["sigma_t1_permille", "Limits: 4,194,304 slots", "idle_policy"]),
    ] {
        let text = fs::read_to_string(directory.join(page)).unwrap();
        let text = text.replace("\\-", "-").replace("THE TASK NET", "The task net");
        for words in words {
            assert!(text.contains(words), "{page}: {words}");
        }
        for mark in ["``", "::", "\n.. ", "\n===\n"] {
            assert!(!text.contains(mark), "{page}: {mark}");
        }
        let count = |what: &str| text.lines().filter(|line| line.starts_with(what)).count();
        assert_eq!(count(".RS"), count(".RE"), "{page}");
    }
    let machine = fs::read_to_string(directory.join("pbs-machine.5")).unwrap();
    assert!(!machine.contains("THE TASK NET"));
}

#[test]
fn pages_go_where_they_can() {
    let file = scratch("no-directory");
    fs::write(&file, "").unwrap();
    let ran = pbsctl(&["man", file.to_str().unwrap()], "");
    assert_eq!(ran.status, 1);
    assert!(ran.stderr.contains("no-directory"), "{}", ran.stderr);
}
