// SPDX-License-Identifier: GPL-2.0
//! Completions and manual pages say what the command line takes.

mod common;

use std::fs;
use std::process::Command;

use common::{commands, pbsctl, scratch};

#[test]
fn completions_know_every_command() {
    let commands = commands();
    assert!(commands.len() > 10, "{commands:?}");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ran = pbsctl(&["completions", shell], "");
        assert_eq!((ran.status, ran.stderr.as_str()), (0, ""));
        for command in &commands {
            assert!(ran.stdout.contains(command.as_str()), "{shell}: {command}");
        }
    }
    let json = pbsctl(&["--json", "completions", "bash"], "").json();
    assert_eq!(json["shell"], "bash");
}

#[test]
fn bash_completes() {
    let file = scratch("completion.bash");
    fs::write(&file, pbsctl(&["completions", "bash"], "").stdout).unwrap();
    let script = format!(
        ". {}; COMP_WORDS=(pbsctl eve); COMP_CWORD=1; _pbsctl pbsctl eve pbsctl; \
         echo \"${{COMPREPLY[@]}}\"",
        file.display()
    );
    let ran = Command::new("bash").args(["-c", &script]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&ran.stdout).trim(), "events");
}

#[test]
fn every_command_has_a_page() {
    let directory = scratch("man");
    let name = directory.to_str().unwrap();
    let json = pbsctl(&["--json", "man", name], "").json();
    let pages = json["pages"].as_array().unwrap();
    for command in commands().iter().filter(|command| *command != "help") {
        let page = format!("pbsctl-{command}.1");
        assert!(pages.iter().any(|name| *name == *page), "{page}");
        let text = fs::read_to_string(directory.join(page)).unwrap();
        assert!(text.contains(".SH SYNOPSIS"), "{text}");
    }
}

#[test]
fn pages_go_where_they_can() {
    let file = scratch("no-directory");
    fs::write(&file, "").unwrap();
    let ran = pbsctl(&["man", file.to_str().unwrap()], "");
    assert_eq!(ran.status, 1);
    assert!(ran.stderr.contains("no-directory"), "{}", ran.stderr);
}
