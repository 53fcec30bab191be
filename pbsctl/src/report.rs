// SPDX-License-Identifier: GPL-2.0
//! The command that makes a page of a recording.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use pbs_plan::from_toml;
use pbs_report::{Opened, Page, Selection};
use serde_json::json;

use crate::failure::Failure;
use crate::files::{self, Form};
use crate::output::{counted, Output};

const REPORT_HELP: &str = "\
Examples:
  pbsctl run plan.toml --report run.json
  pbsctl report run.json -o run.html                Write a page for any browser
  pbsctl report run.json -o run.html --task 3:7     ... with task 7 of process 3 first
  pbsctl report run.json -o run.html --task over:1  ... with task 1 of process over first
  pbsctl report run.json --chart gantt -o plan.svg  Write one of its pictures
  pbsctl --json report run.json                     Print the numbers behind the pictures

The page shows the plan and the actual run, the lateness of the node and of each process with
their thresholds, the most relevant tasks, the preemptions, and the deviations of tasks from the
plan. It needs no other file and no network, and can be printed.

Names of pictures: gantt, node-CPU, process-CPU-PROCESS, task-PROCESS-TASK, preemptions,
deviations.";

/// Message about an empty file in the place of a recording.
pub(crate) const EMPTY: &str = "this is empty; write a recording first, such as pbsctl --json sim \
                                plan.toml > run.json";

#[derive(Args, Debug)]
#[command(after_help = REPORT_HELP)]
pub(crate) struct ReportOptions {
    /// Recording written by run --report; - reads standard input
    pub(crate) file: PathBuf,

    /// Write the page, or the picture, to FILE
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// Show this task before the others: the number or name of its process, a colon, and its number
    #[arg(long, value_name = "PROCESS:TASK")]
    pub(crate) task: Option<String>,

    /// Write only this picture, as SVG
    #[arg(long, value_name = "NAME")]
    pub(crate) chart: Option<String>,
}

/// Refuses a name that promises another format than that of the page or the picture.
fn check_format(options: &ReportOptions) -> Result<(), Failure> {
    let (what, format, endings): (_, _, &[&str]) = match options.chart {
        Some(_) => ("picture is written as SVG", "svg", &["svg"]),
        None => ("page is written as HTML", "html", &["html", "htm"]),
    };
    let Some(file) = &options.output else { return Ok(()) };
    let Some(ending) = files::other_format(file, endings) else { return Ok(()) };
    let picture = if options.chart.is_none() && ending.eq_ignore_ascii_case("svg") {
        "; --chart writes one of its pictures as SVG"
    } else {
        ""
    };
    Err(Failure::Usage(format!(
        "--output: the {what}, and not as {ending}; name a file that ends in .{format}, such as \
         {}{picture}",
        file.with_extension(format).display()
    )))
}

pub(crate) fn report(out: Output, options: &ReportOptions) -> Result<ExitCode, Failure> {
    check_format(options)?;
    let text = files::read(&options.file)?;
    let name = files::name(&options.file);
    let failed = |message: String| Failure::Failed(format!("{name}: {message}"));
    if text.trim().is_empty() {
        return Err(failed(EMPTY.into()));
    }
    let form = Form::of(&text);
    if form == Form::Leppert || (form == Form::Toml && from_toml(&text).is_ok()) {
        return Err(failed(format!(
            "this is a plan, not a recording; simulate the plan first: pbsctl --json sim {} > \
             run.json",
            options.file.display()
        )));
    }
    let opened = Opened::from_json(&text).map_err(failed)?;
    // It may be large.
    drop(text);
    let task = options.task.as_ref().map(|text| opened.task(text));
    let task = task.transpose().map_err(|words| Failure::Usage(format!("--task: {words}")))?;
    let selection = Selection { task, ..Selection::default() };
    let page = Page::new(opened, selection);
    let Some(file) = &options.output else {
        return match &options.chart {
            Some(chart) => {
                let svg = page.chart(chart).map_err(Failure::Usage)?;
                out.print(&json!({ "chart": chart, "svg": svg }), || svg.clone())?;
                Ok(ExitCode::SUCCESS)
            }
            None if out.json => {
                out.print(&page, String::new)?;
                Ok(ExitCode::SUCCESS)
            }
            None => Err(Failure::Usage(
                "the page needs a file; add --output report.html, or --json for the numbers".into(),
            )),
        };
    };
    let written = match &options.chart {
        Some(chart) => page.chart(chart).map_err(Failure::Usage)?,
        None => page.html(),
    };
    files::write(file, &written)?;
    let signals = page.series().signals.len();
    out.print(&page, || {
        format!(
            "{}: {}, {}\n",
            file.display(),
            counted(written.len() as u64, "byte", "bytes"),
            counted(signals as u64, "signal", "signals")
        )
    })?;
    Ok(ExitCode::SUCCESS)
}
