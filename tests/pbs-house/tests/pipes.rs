// SPDX-License-Identifier: GPL-2.0
//! Commands of a script's pipes read all that comes, where a pipe fails with each of its commands:
//! who writes to one that has ended early fails, or does not, by chance.

use pbs_house::tree;

/// Whether pipes of a script fail with each of their commands: it says so, or is read by those
/// that do.
fn has_such_pipes(text: &str) -> bool {
    let is_own = text.starts_with("#!/bin/bash") && text.contains("pipefail");
    is_own || text.lines().take(3).any(|it| it.contains("shell=bash"))
}

/// Whether a command behind a pipe may end before it has read all.
fn may_end_early(command: &str) -> bool {
    let mut words = command.split_whitespace();
    let first = words.next();
    let mut options = words.take_while(|word| word.starts_with('-'));
    match first {
        Some("head") => true,
        Some("grep") => options.any(|it| !it.starts_with("--") && it.contains(['q', 'm'])),
        _ => false,
    }
}

/// The lines of a script where such a command begins.
fn found(text: &str) -> Vec<usize> {
    let mut lines = Vec::new();
    let mut is_behind_pipe = false;
    for (number, line) in text.lines().enumerate() {
        let code = line.replace("||", "\n");
        for (part_number, part) in code.split('|').enumerate() {
            if (part_number > 0 || is_behind_pipe) && may_end_early(part) {
                lines.push(number + 1);
            }
        }
        let is_comment = line.trim_start().starts_with('#');
        is_behind_pipe = !is_comment && code.trim_end_matches([' ', '\t', '\\']).ends_with('|');
    }
    lines
}

#[test]
fn pipes_are_read_to_their_end() {
    let read = |path: &String| tree::read(path.as_ref());
    let scripts: Vec<(String, String)> = tree::files("")
        .into_iter()
        .filter_map(|path| read(&path).map(|text| (path, text)))
        .filter(|(_, text)| has_such_pipes(text))
        .collect();
    assert!(scripts.len() > 40, "only {} scripts were found", scripts.len());
    let of = |(path, text): &(String, String)| {
        found(text).into_iter().map(|line| format!("{path}:{line}")).collect::<Vec<_>>()
    };
    let wrong: Vec<String> = scripts.iter().flat_map(of).collect();
    assert!(
        wrong.is_empty(),
        "commands that end before they have read their pipe; write sed -n 1,10p for head, and \
         grep -q PATTERN <<<\"$text\":\n{}",
        wrong.join("\n")
    );
}

#[test]
fn a_pipe_that_is_left_early_is_found() {
    assert_eq!(found("sort file | head -n 10"), [1]);
    assert_eq!(found("names |\n\thead -n 1 | wc -l"), [2]);
    assert_eq!(found("names | \\\n\tgrep -aq x ||\n\tdie"), [2]);
    assert_eq!(found("names | grep -m1 x"), [1]);
    assert_eq!(found("head -n 1 file | grep -c q || head -n 1 other"), [0_usize; 0]);
    assert_eq!(found("names | sed -n 1,10p; grep -q x <<<\"$names\""), [0_usize; 0]);
    assert_eq!(found("# names |\nhead -n 1 file"), [0_usize; 0]);
}
