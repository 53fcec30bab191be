// SPDX-License-Identifier: GPL-2.0
//! The command that makes a page of a recording.

use std::process::ExitCode;

use pbs_plan::from_toml;
use pbs_report::{Opened, Page, Selection};
use serde_json::json;

use crate::cli::ReportOptions;
use crate::failure::Failure;
use crate::files::{self, Form};
use crate::output::{counted, Output};

pub(crate) fn report(out: Output, options: &ReportOptions) -> Result<ExitCode, Failure> {
    let text = files::read(&options.file)?;
    let name = files::name(&options.file);
    let failed = |message: String| Failure::Failed(format!("{name}: {message}"));
    let form = Form::of(&text);
    if form == Form::Leppert || (form == Form::Toml && from_toml(&text).is_ok()) {
        return Err(failed(format!(
            "this is a plan, not a recording of one; make one first: \
             pbsctl --json sim {} > run.json",
            options.file.display()
        )));
    }
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
                let svg = page.chart(chart).map_err(Failure::Usage)?;
                out.print(&json!({ "chart": chart, "svg": svg }), || svg.clone())?;
                Ok(ExitCode::SUCCESS)
            }
            None if out.json => {
                out.print(&page, String::new)?;
                Ok(ExitCode::SUCCESS)
            }
            None => Err(Failure::Usage(
                "say where the page goes: --output report.html; or ask for numbers: --json".into(),
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
