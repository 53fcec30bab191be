// SPDX-License-Identifier: GPL-2.0
//! Conversion of workflows of others: WfFormat (WfCommons, JSON) and DOT.
//!
//! A workflow becomes a task graph, or with `--rate` a job with a process for each task. What a
//! workflow has and the result has not is told, never dropped silently.

mod dot;
mod model;
mod wfformat;

use std::process::ExitCode;

use pbs_job::graph::graph_from_toml;
use pbs_job::{job_from_toml, Problem};
use pbs_text::{append, append_line, quoted, underscored};
use serde_json::json;

use super::ImportOptions;
use crate::failure::Failure;
use crate::files;
use crate::output::{write_err, Output};
use crate::summary::{GraphSummary, JobSummary};
use model::{Workflow, SECOND_NS};

/// Memory of a task of a job whose workflow does not say it.
const DEFAULT_MEMORY_BYTES: u64 = 64 << 20;

/// Which of the two a text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    WfFormat,
    Dot,
}

impl Format {
    /// Format of a text, as its beginning shows.
    pub(super) fn of(text: &str) -> Option<Self> {
        if text.trim_start().starts_with('{') && text.contains("\"workflow\"") {
            return Some(Self::WfFormat);
        }
        dot::is_it(text).then_some(Self::Dot)
    }
}

/// Names the parts of a workflow that the result has not.
fn say_left_out(file: &str, workflow: &Workflow) {
    for what in &workflow.left_out {
        write_err(&format!("{file}: {what}\n"));
    }
}

/// Converts the text of a file.
pub(super) fn import(
    out: Output,
    options: &ImportOptions,
    text: &str,
    format: Format,
) -> Result<ExitCode, Failure> {
    let file = files::name(&options.file);
    let invalid = |problems| Failure::Invalid { file: file.clone(), problems };
    let workflow = match format {
        Format::WfFormat => wfformat::read(text),
        Format::Dot => dot::read(text),
    };
    let mut workflow = workflow.map_err(invalid)?;
    if workflow.tasks.is_empty() {
        return Err(invalid(vec![Problem::at(None, "the workflow has no tasks")]));
    }
    let unknown = workflow.tasks.iter().filter(|task| task.runtime_ns.is_none()).count();
    match (unknown, options.runtime) {
        (0, _) => {}
        (_, Some(runtime_ns)) => {
            for task in &mut workflow.tasks {
                task.runtime_ns.get_or_insert(runtime_ns);
            }
        }
        (_, None) => {
            // What was left out may be the reason.
            say_left_out(&file, &workflow);
            let all = workflow.tasks.len();
            return Err(Failure::Usage(format!(
                "{file}: {unknown} of {all} tasks have no run time; add --runtime 10s for these"
            )));
        }
    }
    if let Some(name) = options.name.clone().or_else(|| workflow.name.take()) {
        workflow.name = Some(name);
    }
    let toml = match options.rate {
        Some(rate) => job_text(&mut workflow, rate),
        None => graph_text(&workflow),
    };
    // What was made of a wrong workflow is wrong as well, and says so. Lines are those of the
    // result, which nobody has seen.
    let invalid = |problems: Vec<Problem>| {
        invalid(problems.into_iter().map(|problem| Problem::at(None, problem.message)).collect())
    };
    let (key, summary, text) = if options.rate.is_some() {
        let summary = JobSummary::new(&job_from_toml(&toml).map_err(invalid)?);
        let text = summary.text();
        ("job", json!(summary), text)
    } else {
        let summary = GraphSummary::new(&graph_from_toml(&toml).map_err(invalid)?);
        let text = summary.text();
        ("graph", json!(summary), text)
    };
    say_left_out(&file, &workflow);
    if let Some(output) = &options.output {
        files::write(output, &toml)?;
    }
    let json = json!({
        key: summary,
        "toml": options.output.is_none().then_some(&toml),
        "written": options.output,
        "left_out": workflow.left_out,
    });
    out.print(&json, || match &options.output {
        Some(output) => format!("{}: written\n{text}", output.display()),
        None => toml.clone(),
    })?;
    Ok(ExitCode::SUCCESS)
}

fn name_of(workflow: &Workflow) -> String {
    quoted(workflow.name.as_deref().unwrap_or("workflow"))
}

/// A task graph: each task has one implementation on the CPU.
fn graph_text(workflow: &Workflow) -> String {
    let mut out = format!("name = {}\n", name_of(workflow));
    for task in &workflow.tasks {
        let after = task.after.iter().map(|(&before, &bytes)| {
            let name = quoted(&workflow.tasks[before].name);
            match bytes {
                0 => name,
                bytes => format!("{{ task = {name}, bytes = {} }}", underscored(bytes)),
            }
        });
        let after: Vec<_> = after.collect();
        append!(out, "\n[[task]]\nname = {}\n", quoted(&task.name));
        if !after.is_empty() {
            append_line!(out, "after = [{}]", after.join(", "));
        }
        if let Some(bytes) = task.memory_bytes {
            append_line!(out, "memory_bytes = {}", underscored(bytes));
        }
        append_line!(out, "[[task.variant]]\nmodel = \"cpu\"");
        if let Some(threads) = task.threads.filter(|&threads| threads > 1) {
            append_line!(out, "threads = {threads}");
        }
        append_line!(out, "runtime_ns = {}", underscored(task.runtime_ns.unwrap_or(0)));
    }
    out
}

/// A job: each task is a process of its own, on a machine of that rate. Its deadline is the time
/// that all tasks take one after the other.
fn job_text(workflow: &mut Workflow, rate_insns_per_s: u64) -> String {
    let sum_ns = workflow.tasks.iter().filter_map(|task| task.runtime_ns);
    let sum_ns = sum_ns.fold(0, u64::saturating_add).max(1);
    workflow
        .leave_out("the deadline is the sum of all run times; change deadline_ns in the result");
    if workflow.tasks.iter().any(|task| task.memory_bytes.is_none()) {
        workflow.leave_out("tasks without a memory size have 64 MiB");
    }
    if workflow.tasks.iter().any(|task| task.threads > Some(1)) {
        workflow
            .leave_out("tasks of several cores have one here; a task graph keeps their threads");
    }
    if workflow.tasks.iter().flat_map(|task| task.after.values()).any(|&bytes| bytes > 0) {
        workflow.leave_out("sizes of data are left out; a task graph has them");
    }
    let mut out = format!("name = {}\ndeadline_ns = {}\n", name_of(workflow), underscored(sum_ns));
    for (number, task) in workflow.tasks.iter().enumerate() {
        let after: Vec<_> =
            task.after.keys().map(|&before| quoted(&workflow.tasks[before].name)).collect();
        let after = match &after[..] {
            [] => String::new(),
            after => format!(", after = [{}]", after.join(", ")),
        };
        let ns = u128::from(task.runtime_ns.unwrap_or(0));
        let insns = ns * u128::from(rate_insns_per_s) / u128::from(SECOND_NS);
        let insns = u64::try_from(insns).unwrap_or(u64::MAX);
        let name = quoted(&task.name);
        append!(
            out,
            "\n[[process]]\nid = {}\nname = {name}\nmemory_bytes = {}\ntasks = [{{ name = {name}, \
             insns = {}{after} }}]\n",
            number + 1,
            underscored(task.memory_bytes.unwrap_or(DEFAULT_MEMORY_BYTES)),
            underscored(insns)
        );
    }
    out
}
