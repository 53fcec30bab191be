// SPDX-License-Identifier: GPL-2.0
//! The command that makes a page of a recording.

use std::process::ExitCode;

use pbs_report::{Opened, Page, Selection};
use serde_json::json;

use crate::cli::ReportOptions;
use crate::failure::Failure;
use crate::files;
use crate::output::Output;

pub(crate) fn report(out: Output, options: &ReportOptions) -> Result<ExitCode, Failure> {
    let text = files::read(&options.file)?;
    let name = files::name(&options.file);
    let failed = |message: String| Failure::Failed(format!("{name}: {message}"));
    let opened = Opened::from_json(&text).map_err(failed)?;
    // It may be large.
    drop(text);
    let task = options.task.as_ref().map(|text| opened.task(text));
    let task = task
        .transpose()
        .map_err(|words| Failure::Usage(format!("--task: {words}")))?;
    let selection = Selection {
        task,
        ..Selection::default()
    };
    let page = Page::new(opened, selection);
    let Some(file) = &options.output else {
        return match &options.chart {
            Some(chart) => {
                let svg = page.chart(chart).map_err(failed)?;
                out.print(&json!({ "chart": chart, "svg": svg }), || svg.clone())?;
                Ok(ExitCode::SUCCESS)
            }
            None if out.json => {
                out.print(&page, String::new)?;
                Ok(ExitCode::SUCCESS)
            }
            None => Err(Failure::Failed(
                "say where the page goes: --output report.html; or ask for numbers: --json".into(),
            )),
        };
    };
    let written = match &options.chart {
        Some(chart) => page.chart(chart).map_err(failed)?,
        None => page.html(),
    };
    files::write(file, &written)?;
    let signals = page.series().signals.len();
    out.print(&page, || {
        format!(
            "{}: {} bytes, {signals} signals\n",
            file.display(),
            pbs_report::grouped(written.len() as u64)
        )
    })?;
    Ok(ExitCode::SUCCESS)
}
