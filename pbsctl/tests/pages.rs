// SPDX-License-Identifier: GPL-2.0
//! Pages of the documentation whose commands are run, and whose output is compared.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const TOP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
/// Printed by the shell after each command.
const MARK: char = '\u{1}';
/// Line of a page that stands for any number of lines of the output.
const ELLIPSIS: &str = "...";

/// One command of a page, and the output that the page shows.
struct Shown {
    command: String,
    output: Vec<String>,
}

fn page(name: &str) -> String {
    fs::read_to_string(Path::new(TOP).join("Documentation").join(name)).unwrap()
}

/// Literal blocks of a page; their lines without indentation.
fn literal_blocks(text: &str) -> Vec<Vec<&str>> {
    let mut blocks: Vec<Vec<&str>> = Vec::new();
    let mut is_block = false;
    for line in text.lines() {
        let indented = line.strip_prefix("    ");
        if is_block && (indented.is_some() || line.is_empty()) {
            blocks.last_mut().unwrap().push(indented.unwrap_or_default());
        } else {
            is_block = line.ends_with("::");
            if is_block {
                blocks.push(Vec::new());
            }
        }
    }
    blocks
}

/// Commands of a page, which begin with "$ ", in their order.
fn commands(text: &str) -> Vec<Shown> {
    literal_blocks(text).iter().flat_map(|block| commands_of(block)).collect()
}

/// Commands of a block; the lines before the first one are none.
fn commands_of(block: &[&str]) -> Vec<Shown> {
    let mut all: Vec<Shown> = Vec::new();
    let mut continues = false;
    for line in block {
        match (line.strip_prefix("$ "), all.last_mut()) {
            (Some(command), _) => {
                all.push(Shown { command: command.into(), output: Vec::new() });
                continues = command.ends_with('\\');
            }
            (None, Some(last)) if continues => {
                last.command += &format!("\n{line}");
                continues = line.ends_with('\\');
            }
            (None, Some(last)) => last.output.push(line.trim_end().into()),
            (None, None) => {}
        }
    }
    all
}

/// Lines without empty ones at the end.
fn trimmed(mut lines: Vec<String>) -> Vec<String> {
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}

/// New directory with a copy of `samples/` in it.
fn directory(name: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).unwrap();
    copy(&Path::new(TOP).join("samples"), &directory.join("samples"));
    directory
}

fn copy(from: &Path, to: &Path) {
    if !from.is_dir() {
        fs::copy(from, to).unwrap();
        return;
    }
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        copy(&entry.path(), &to.join(entry.file_name()));
    }
}

/// Shell without a service or a history of this machine, for the user anna.
fn shell(directory: &Path, script: &str) -> Command {
    let program = Path::new(env!("CARGO_BIN_EXE_pbsctl")).parent().unwrap();
    let path = std::env::var("PATH").unwrap_or_default();
    let mut shell = Command::new("sh");
    shell
        .args(["-c", script])
        .current_dir(directory)
        .env("PATH", format!("{}:{path}", program.display()))
        .env("PBS_SOCKET", directory.join("no.sock"))
        .env("PBS_HISTORY", directory.join("history.db"))
        .env("USER", "anna")
        .env("TZ", "UTC0")
        .env_remove("PBS_DEVICE")
        .env_remove("PBS_LEDGER")
        .stdin(Stdio::null());
    shell
}

/// Runs the commands in one shell and returns the output of each.
fn run(directory: &Path, shown: &[Shown]) -> Vec<Vec<String>> {
    let mut script = String::from("exec 2>&1\n");
    for Shown { command, .. } in shown {
        script += &format!("{command}\nprintf '{MARK}'\n");
    }
    let output = shell(directory, &script).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let mut parts: Vec<_> = text.split(MARK).collect();
    assert_eq!(parts.len(), shown.len() + 1, "the shell ended early: {text}");
    parts.pop();
    let lines = |part: &&str| part.lines().map(|line| line.trim_end().to_owned()).collect();
    parts.iter().map(lines).map(trimmed).collect()
}

/// Whether an output is the one that a page shows.
fn is_shown(output: &[String], shown: &[String]) -> bool {
    let Some(at) = shown.iter().position(|line| line == ELLIPSIS) else {
        return output == shown;
    };
    let (first, rest) = (&shown[..at], &shown[at + 1..]);
    output.starts_with(first) && (at..=output.len()).any(|from| is_shown(&output[from..], rest))
}

/// Each command of a page prints what the page shows.
fn check(name: &str, least: usize) {
    let shown = commands(&page(name));
    assert!(shown.len() >= least, "{name} has only {} commands", shown.len());
    let outputs = run(&directory(name.trim_end_matches(".rst")), &shown);
    for (Shown { command, output }, printed) in shown.into_iter().zip(outputs) {
        let output = trimmed(output);
        assert!(
            is_shown(&printed, &output),
            "Documentation/{name}: $ {command}\nprints:\n{}\nand not:\n{}",
            printed.join("\n"),
            output.join("\n")
        );
    }
}

#[test]
fn an_own_planner_does_what_its_page_shows() {
    check("own-planner.rst", 13);
}

#[test]
fn the_plan_of_a_job_is_what_the_page_of_the_command_shows() {
    check("pbsctl.rst", 1);
}

#[test]
fn commands_beside_those_of_slurm_print_what_their_page_shows() {
    check("from-slurm.rst", 25);
}

/// Commands of a page that are not run: literals and lines of blocks that begin with `pbsctl`.
fn mentioned(text: &str) -> Vec<String> {
    let blocks = literal_blocks(text).concat();
    let blocks = blocks.into_iter().map(str::trim).filter(|line| line.starts_with("pbsctl "));
    let words = |part: &str| part.split_whitespace().collect::<Vec<_>>().join(" ");
    let literals = text.split("``").skip(1).step_by(2).map(words);
    blocks.map(String::from).chain(literals.filter(|it| it.starts_with("pbsctl "))).collect()
}

/// Whether `pbsctl` accepts a command line; it prints help instead of executing the command.
fn is_accepted(directory: &Path, command: &str) -> bool {
    let (options, _) = command.split_once(" -- ").unwrap_or((command, ""));
    let output = shell(directory, &format!("{options} --help")).output().unwrap();
    output.status.success() && !output.stdout.is_empty()
}

#[test]
fn mentioned_commands_are_accepted() {
    let directory = directory("mentioned");
    assert!(!is_accepted(&directory, "pbsctl job list --no-such-option"));
    for (name, least) in [("from-slurm.rst", 40), ("own-planner.rst", 10)] {
        let commands = mentioned(&page(name));
        assert!(commands.len() >= least, "{name} mentions only {} commands", commands.len());
        for command in commands {
            assert!(is_accepted(&directory, &command), "Documentation/{name}: {command}");
        }
    }
}

/// The table of options of sbatch has options that the commands beside it accept.
#[test]
fn options_beside_those_of_sbatch_are_accepted() {
    let text = page("from-slurm.rst");
    let directory = directory("options");
    let (_, table) = text.split_once("\noption of sbatch").unwrap();
    let rows = table.lines().skip(2).take_while(|line| !line.starts_with("=="));
    let mut number = 0;
    for row in rows {
        let columns: Vec<&str> = row.split("  ").filter(|cell| !cell.is_empty()).collect();
        assert_eq!(columns.len(), 3, "{row}");
        let commands = ["pbsctl job submit job.toml", "pbsctl cluster alloc"];
        for (command, cell) in commands.into_iter().zip(&columns[1..]) {
            let options = cell.split("``").skip(1).step_by(2).filter(|it| it.starts_with('-'));
            for option in options {
                let command = format!("{command} {option}");
                assert!(is_accepted(&directory, &command), "from-slurm.rst: {command}");
                number += 1;
            }
        }
    }
    assert!(number >= 20, "only {number} options were found");
}

#[test]
fn functions_that_the_page_of_planners_names_exist() {
    let text = page("own-planner.rst");
    let mut number = 0;
    for row in text.lines().filter_map(|line| line.strip_prefix("``pbs_")) {
        let (name, _) = row.split_once("``").unwrap();
        let (package, rest) = name.split_once("::").unwrap();
        let package = format!("pbs-{}", package.replace('_', "-"));
        let item = rest.rsplit_once("::").map_or(rest, |(_, item)| item);
        let folder = Path::new(TOP).join("node").join(&package).join("src");
        let declared = ["fn", "struct", "trait"].map(|kind| format!("pub {kind} {item}"));
        assert!(
            is_declared(&folder, &declared),
            "Documentation/own-planner.rst: {package} has no public {item}"
        );
        number += 1;
    }
    assert!(number >= 10, "only {number} names were found");
}

/// Whether a file below a folder has one of these declarations.
fn is_declared(folder: &Path, declared: &[String]) -> bool {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.into_iter().any(|path| {
        if path.is_dir() {
            return is_declared(&path, declared);
        }
        let text = fs::read_to_string(&path).unwrap();
        declared.iter().any(|words| text.contains(words.as_str()))
    })
}
