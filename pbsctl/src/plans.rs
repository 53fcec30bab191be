// SPDX-License-Identifier: GPL-2.0
//! The commands that handle plans: load, show, drop.

use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use pbs_node::device::{open, write};
use pbs_plan::{to_toml, wire, Plan};
use serde_json::json;

use crate::failure::Failure;
use crate::files;
use crate::output::Output;
use crate::summary::PlanSummary;

/// A CPU whose plan is meant.
#[derive(Args, Debug)]
pub(crate) struct OfCpu {
    /// The CPU
    #[arg(long, value_name = "N")]
    pub(crate) cpu: u32,
}

pub(crate) fn load(out: Output, device: &Path, file: &Path) -> Result<ExitCode, Failure> {
    let plan = files::read_plan(file)?;
    let device = open(device)?;
    write(&device, &plan, &files::name(file))?;
    let summary = PlanSummary::new(&plan);
    out.print(&json!({ "loaded": true, "plan": summary }), || {
        format!("Plan {} is in force\n{}", plan.plan_id, summary.text())
    })?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn show(out: Output, device: &Path, cpu: u32) -> Result<ExitCode, Failure> {
    let bytes = open(device)?
        .get_plan(cpu)
        .map_err(|refused| Failure::refused(&format!("plan of CPU {cpu}"), &refused))?;
    let plan = wire::decode(&bytes).map_err(|problem| {
        Failure::Failed(format!(
            "the kernel returned a plan that is not valid: {}; use the pbsctl \
                                 of this kernel's release",
            problem.message
        ))
    })?;
    hand_over(out, None, ("toml", to_toml(&plan)), &plan, json!({}))?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn drop_plan(out: Output, device: &Path, cpu: u32) -> Result<ExitCode, Failure> {
    open(device)?
        .drop_plan(cpu)
        .map_err(|refused| Failure::refused(&format!("plan of CPU {cpu}"), &refused))?;
    out.print(&json!({ "dropped": cpu }), || format!("The plan of CPU {cpu} is dropped.\n"))?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the text of a plan to a file, or prints it. In JSON it stands under
/// the name of its form, beside what else is said of the plan in `facts`.
pub(crate) fn hand_over(
    out: Output,
    file: Option<&Path>,
    (form, text): (&str, String),
    plan: &Plan,
    mut facts: serde_json::Value,
) -> Result<(), Failure> {
    let summary = PlanSummary::new(plan);
    facts["plan"] = json!(summary);
    match file {
        Some(file) => {
            files::write(file, &text)?;
            facts["written"] = json!(file);
            out.print(&facts, || format!("{}: written\n{}", file.display(), summary.text()))
        }
        None => {
            facts[form] = json!(text);
            out.print(&facts, || text)
        }
    }
}
