// SPDX-License-Identifier: GPL-2.0
//! Sections of a command's page besides its options: exit statuses, environment, files, and other
//! pages.

use clap::{Arg, Command};
use pbs_text::append_line;

use super::format::FORMATS;
use crate::cli::STATUSES;
use crate::complete::VARIABLE;

/// Groups of commands that refer to each other.
const RELATED: [&[&str]; 6] = [
    &[
        "job submit",
        "job list",
        "job show",
        "job cancel",
        "job checkpoint",
        "job hold",
        "job release",
        "job alter",
        "job watch",
        "job withdraw",
    ],
    &[
        "job submit",
        "job list",
        "service drain",
        "service resume",
        "service set-resource",
        "service status",
    ],
    &["plan check", "plan load", "plan run", "plan dump", "plan drop", "sim"],
    &["run", "job profile", "job submit", "job explain", "plan show", "job history"],
    &["node events", "node top", "node stat", "node trace", "report"],
    &["plan import", "plan generate", "study", "sim", "report"],
];

/// Commands that read or write files of a format.
const READS: [(&str, &[&str]); 3] = [
    (
        "pbs-job",
        &[
            "job check",
            "job run",
            "run",
            "job profile",
            "job submit",
            "job alter",
            "job explain",
            "plan show",
            "plan import",
        ],
    ),
    (
        "pbs-machine",
        &[
            "job check",
            "run",
            "job profile",
            "job submit",
            "job explain",
            "plan show",
            "plan import",
        ],
    ),
    (
        "pbs-plan",
        &[
            "plan check",
            "plan load",
            "plan run",
            "run",
            "sim",
            "plan dump",
            "plan show",
            "plan import",
            "plan generate",
            "node trace",
        ],
    ),
];

/// Commands that print times, or read times in the local zone.
const TIMES: [&str; 5] = ["job list", "job show", "job history", "job watch", "service status"];

/// The sections.
pub(super) fn sections(command: &Command) -> String {
    let name = own_name(command);
    let mut page = String::new();
    exit_status(&name, &mut page);
    environment(command, &name, &mut page);
    files(command, &mut page);
    see_also(command, &name, &mut page);
    page
}

/// Name of the command without `pbsctl`, such as `plan show`; empty for `pbsctl` itself.
fn own_name(command: &Command) -> String {
    let words: Vec<&str> = whole_name(command).split_whitespace().skip(1).collect();
    words.join(" ")
}

fn whole_name(command: &Command) -> &str {
    command.get_bin_name().unwrap_or(command.get_name())
}

fn exit_status(name: &str, page: &mut String) {
    page.push_str(".SH \"EXIT STATUS\"\n");
    let verb = name.rsplit(' ').next().unwrap_or_default();
    for (status, commands, meaning) in STATUSES {
        if commands.is_empty() || commands.contains(&verb) {
            entry(&status.to_string(), meaning, page);
        } else if name.is_empty() {
            let of = commands.join(", ");
            entry(&status.to_string(), &format!("{of}: {meaning}"), page);
        }
    }
}

fn environment(command: &Command, name: &str, page: &mut String) {
    page.push_str(".SH ENVIRONMENT\n");
    for argument in shown(command) {
        if let Some(variable) = argument.get_env() {
            let option = argument.get_long().unwrap_or_default();
            let text = format!("{} (--{option})", help(argument));
            entry(&variable.to_string_lossy(), &text, page);
        }
    }
    if TIMES.contains(&name) {
        entry("TZ", "Time zone of printed times, instead of that of the system", page);
    }
    if name == "completions" {
        let text = "Set by the completion script of a shell to request candidates";
        entry(VARIABLE, text, page);
    }
}

fn files(command: &Command, page: &mut String) {
    page.push_str(".SH FILES\n");
    for argument in shown(command) {
        for path in argument.get_default_values() {
            let path = path.to_string_lossy();
            if path.starts_with('/') {
                entry(&path, &help(argument), page);
            }
        }
    }
}

fn see_also(command: &Command, name: &str, page: &mut String) {
    let mut pages: Vec<String> = Vec::new();
    let mut add = |name: String, section: u8| {
        let page = format!(".BR {} ({section})", name.replace('-', "\\-"));
        if !pages.contains(&page) {
            pages.push(page);
        }
    };
    if !name.is_empty() {
        add("pbsctl".into(), 1);
    }
    let whole = whole_name(command).replace(' ', "-");
    let below = command.get_subcommands().filter(|it| !it.is_hide_set());
    for below in below {
        add(format!("{whole}-{}", below.get_name()), 1);
    }
    let groups = RELATED.iter().filter(|group| group.contains(&name));
    for other in groups.copied().flatten().filter(|other| **other != name) {
        add(format!("pbsctl-{}", other.replace(' ', "-")), 1);
    }
    for format in &FORMATS {
        let reads = READS.iter().find(|(reads, _)| *reads == format.name);
        if name.is_empty() || reads.is_some_and(|(_, by)| by.contains(&name)) {
            add(format.name.into(), 5);
        }
    }
    append_line!(page, ".SH \"SEE ALSO\"\n{}", pages.join(",\n"));
}

/// The arguments that a page has.
fn shown(command: &Command) -> impl Iterator<Item = &Arg> {
    command.get_arguments().filter(|argument| !argument.is_hide_set())
}

fn help(argument: &Arg) -> String {
    // An argument without a help has an empty one; a test finds it.
    argument.get_help().map(ToString::to_string).unwrap_or_default()
}

fn entry(term: &str, text: &str, page: &mut String) {
    let escaped = |text: &str| text.replace('\\', "\\e").replace('-', "\\-");
    append_line!(page, ".TP\n\\fB{}\\fR\n{}", escaped(term), escaped(text));
}
