// SPDX-License-Identifier: GPL-2.0
//! Completions for shells and pages for `man`, made from the definition of the command line.

mod format;
mod sections;

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use clap::{Command, CommandFactory};
use clap_complete::env::Shells;
use clap_complete::Shell;
use clap_mangen::Man;
use serde_json::json;

use crate::cli::Cli;
use crate::complete;
use crate::failure::Failure;
use crate::files;
use crate::output::{counted, Output};
use format::FORMATS;

/// Prints the script for a shell. It asks pbsctl for candidates, which include present jobs.
pub(crate) fn completions(out: Output, shell: Shell) -> Result<ExitCode, Failure> {
    let mut script = Vec::new();
    let shells = Shells::builtins();
    let completer = shells.completer(&shell.to_string());
    // There is one of each name that the command line takes.
    if let Some(completer) = completer {
        let written = completer.write_registration(
            complete::VARIABLE,
            "pbsctl",
            "pbsctl",
            "pbsctl",
            &mut script,
        );
        written.map_err(|error| Failure::file("the script", &error))?;
    }
    let script = String::from_utf8_lossy(&script);
    let facts = json!({ "shell": shell.to_string(), "script": script });
    out.print(&facts, || script.to_string())?;
    Ok(ExitCode::SUCCESS)
}

/// Writes a page for pbsctl, one for each of its commands, and one for each format of
/// files to `directory`.
pub(crate) fn man(out: Output, directory: &Path) -> Result<ExitCode, Failure> {
    let failed = |error| Failure::file(directory, &error);
    fs::create_dir_all(directory).map_err(failed)?;
    // With the options that go with every command in each page.
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    let mut pages = Vec::new();
    write_pages(&command, directory, &mut pages)?;
    for format in &FORMATS {
        let name = format!("{}.5", format.name);
        files::write(&directory.join(&name), &format.page())?;
        pages.push(name);
    }
    pages.sort_unstable();
    out.print(&json!({ "directory": directory, "pages": pages }), || {
        let directory = directory.display();
        format!(
            "{directory}: {}; read them with man -l {directory}/pbsctl.1\n",
            counted(pages.len() as u64, "page", "pages")
        )
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the page of a command and those of the commands below it.
fn write_pages(
    command: &Command,
    directory: &Path,
    pages: &mut Vec<String>,
) -> Result<(), Failure> {
    for below in command.get_subcommands().filter(|it| !it.is_hide_set()) {
        write_pages(below, directory, pages)?;
    }
    let page = Man::new(command.clone());
    let (name, mut text) = (page.get_filename(), Vec::new());
    page.render(&mut text).map_err(|error| Failure::file(directory.join(&name), &error))?;
    let text = keep_lines(&String::from_utf8_lossy(&text)) + &sections::sections(command);
    files::write(&directory.join(&name), &text)?;
    pages.push(name);
    Ok(())
}

/// Examples and tables stand in the last sections of a page, line by line; a reader
/// of pages would fill them like prose.
fn keep_lines(page: &str) -> String {
    let Some((before, extra)) = page.split_once(".SH EXTRA\n") else {
        return page.into();
    };
    let (extra, after) = extra.split_once(".SH ").map_or((extra, None), |(a, b)| (a, Some(b)));
    let after = after.map_or_else(String::new, |after| format!(".SH {after}"));
    format!("{before}.SH NOTES\n.nf\n{extra}.fi\n{after}")
}
