// SPDX-License-Identifier: GPL-2.0
//! The commands that handle plans: load, show, import, drop.

use std::path::Path;
use std::process::ExitCode;

use pbs_node::device::{open, write};
use pbs_plan::{leppert, to_toml, wire, Plan, Slot};
use pbs_report::grouped;
use serde::Serialize;
use serde_json::json;

use crate::cli::ImportOptions;
use crate::failure::Failure;
use crate::output::{counted, Output};
use crate::{files, glass};

pub(crate) fn load(out: Output, device: &Path, file: &Path) -> Result<ExitCode, Failure> {
    let plan = files::read_plan(file)?;
    let device = open(device)?;
    write(&device, &plan, &files::name(file))?;
    let summary = Summary::new(&plan);
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
            "the kernel gave a plan that is not valid: {}",
            problem.message
        ))
    })?;
    hand_over(out, None, ("toml", to_toml(&plan)), &plan, json!({}))?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn import(out: Output, options: &ImportOptions) -> Result<ExitCode, Failure> {
    if options.file.is_dir() {
        return glass::import(out, options);
    }
    if options.machine.is_some() || options.job.is_some() || options.name.is_some() {
        return Err(Failure::Usage(
            "--machine, --job and --name are for the files of Glaß's prototype; name their \
             directory instead of a file"
                .into(),
        ));
    }
    let text = files::read(&options.file)?;
    let (plan_id, cpu) = (options.plan_id.unwrap_or(1), options.cpu.unwrap_or(0));
    let plan = leppert::import(&text, plan_id, cpu).map_err(|problems| Failure::Invalid {
        file: files::name(&options.file),
        problems,
    })?;
    let toml = ("toml", to_toml(&plan));
    hand_over(out, options.output.as_deref(), toml, &plan, json!({}))?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn drop_plan(out: Output, device: &Path, cpu: u32) -> Result<ExitCode, Failure> {
    open(device)?
        .drop_plan(cpu)
        .map_err(|refused| Failure::refused(&format!("plan of CPU {cpu}"), &refused))?;
    out.print(&json!({ "dropped": cpu }), || {
        format!("The plan of CPU {cpu} is dropped.\n")
    })?;
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
    let summary = Summary::new(plan);
    facts["plan"] = json!(summary);
    match file {
        Some(file) => {
            files::write(file, &text)?;
            facts["written"] = json!(file);
            out.print(&facts, || {
                format!("{}: written\n{}", file.display(), summary.text())
            })
        }
        None => {
            facts[form] = json!(text);
            out.print(&facts, || text)
        }
    }
}

/// A plan in a few numbers.
#[derive(Serialize)]
pub(crate) struct Summary {
    plan_id: u64,
    cpus: Vec<CpuSummary>,
}

#[derive(Serialize)]
struct CpuSummary {
    cpu: u32,
    processes: usize,
    slots: usize,
    idle_slots: usize,
    planned_insns: u64,
    idle_insns: u64,
}

impl Summary {
    pub(crate) fn new(plan: &Plan) -> Self {
        let cpus = plan.cpus.iter().map(|cpu| {
            let placed: Vec<_> = plan.place(cpu).collect();
            let idle = || placed.iter().filter(|slot| slot.task.is_none());
            CpuSummary {
                cpu: cpu.cpu,
                processes: plan.processes_on(cpu).len(),
                slots: cpu.slots.len(),
                idle_slots: cpu
                    .slots
                    .iter()
                    .filter(|slot| matches!(slot, Slot::Idle { .. }))
                    .count(),
                planned_insns: placed.iter().map(|slot| slot.length_insns).sum(),
                idle_insns: idle().map(|slot| slot.length_insns).sum(),
            }
        });
        Self {
            plan_id: plan.plan_id,
            cpus: cpus.collect(),
        }
    }

    pub(crate) fn text(&self) -> String {
        let lines = self.cpus.iter().map(|cpu| {
            format!(
                "  CPU {}: {}, {} of which {} idle, {} instructions of which {} idle\n",
                cpu.cpu,
                counted(cpu.processes as u64, "process", "processes"),
                counted(cpu.slots as u64, "slot", "slots"),
                grouped(cpu.idle_slots as u64),
                grouped(cpu.planned_insns),
                grouped(cpu.idle_insns)
            )
        });
        lines.collect()
    }
}
