// SPDX-License-Identifier: GPL-2.0
//! What shells and `man` want to know of the command line, made from its
//! definition.

use std::fs;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use clap::CommandFactory;
use clap_complete::{generate, Shell};
use serde_json::json;

use crate::cli::Cli;
use crate::failure::Failure;
use crate::output::{counted, Output};

/// Prints the completions for a shell.
pub(crate) fn completions(out: Output, shell: Shell) -> Result<ExitCode, Failure> {
    let mut script = Vec::new();
    generate(shell, &mut Cli::command(), "pbsctl", &mut script);
    let script = String::from_utf8_lossy(&script);
    let facts = json!({ "shell": shell.to_string(), "script": script });
    out.print(&facts, || script.to_string())?;
    Ok(ExitCode::SUCCESS)
}

/// Writes a page for pbsctl and one for each of its commands to `directory`.
pub(crate) fn man(out: Output, directory: &Path) -> Result<ExitCode, Failure> {
    let failed = |error| Failure::file(directory, &error);
    fs::create_dir_all(directory).map_err(failed)?;
    clap_mangen::generate_to(Cli::command(), directory).map_err(failed)?;
    let mut pages = Vec::new();
    for entry in fs::read_dir(directory).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        let name = name.to_string_lossy().into_owned();
        if name.starts_with("pbsctl") && name.ends_with(".1") {
            keep_lines(&directory.join(&name)).map_err(failed)?;
            pages.push(name);
        }
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

/// Examples and tables stand in the last sections of a page, line by line; a reader
/// of pages would fill them like prose.
fn keep_lines(page: &Path) -> io::Result<()> {
    let text = fs::read_to_string(page)?;
    let Some((before, extra)) = text.split_once(".SH EXTRA\n") else {
        return Ok(());
    };
    let (extra, after) = extra
        .split_once(".SH ")
        .map_or((extra, None), |(a, b)| (a, Some(b)));
    let after = after.map_or_else(String::new, |after| format!(".SH {after}"));
    fs::write(page, format!("{before}.SH NOTES\n.nf\n{extra}.fi\n{after}"))
}
