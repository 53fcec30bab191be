// SPDX-License-Identifier: GPL-2.0
//! The command that says whether a plan, a job or a machine is valid.

use std::path::Path;
use std::process::ExitCode;

use pbs_job::{Job, Machine};
use pbs_report::{bytes, grouped};
use serde::Serialize;
use serde_json::json;

use crate::failure::Failure;
use crate::files::{self, Kind};
use crate::jobs::{job_of, machine_of};
use crate::output::{counted, Output};
use crate::planning::nanoseconds;
use crate::plans::Summary;

pub(crate) fn check(out: Output, file: &Path) -> Result<ExitCode, Failure> {
    let text = files::read(file)?;
    let name = files::name(file);
    match Kind::of(&text) {
        Kind::Plan => {
            let plan = files::plan_of(&text, file)?;
            let summary = Summary::new(&plan);
            out.print(
                &json!({ "valid": true, "problems": [], "kind": "plan", "plan": summary }),
                || format!("{name}: valid plan\n{}", summary.text()),
            )
        }
        Kind::Job => {
            let submission = job_of(text, file)?;
            let summary = JobSummary::new(&submission.job);
            out.print(
                &json!({ "valid": true, "problems": [], "kind": "job", "job": summary }),
                || format!("{name}: valid job\n{}", summary.text()),
            )
        }
        Kind::Machine => {
            let machine = machine_of(&text, file)?;
            let summary = MachineSummary::new(&machine);
            out.print(
                &json!({ "valid": true, "problems": [], "kind": "machine", "machine": summary }),
                || format!("{name}: valid machine\n{}", summary.text()),
            )
        }
    }?;
    Ok(ExitCode::SUCCESS)
}

/// A job in a few numbers.
#[derive(Serialize)]
pub(crate) struct JobSummary {
    name: String,
    processes: usize,
    tasks: usize,
    insns: u64,
    /// Of all processes together.
    memory_bytes: u64,
    start_ns: u64,
    deadline_ns: u64,
}

impl JobSummary {
    pub(crate) fn new(job: &Job) -> Self {
        let sum = |figures: &mut dyn Iterator<Item = u64>| figures.fold(0, u64::saturating_add);
        Self {
            name: job.name.clone(),
            processes: job.processes.len(),
            tasks: job.tasks.len(),
            insns: sum(&mut job.tasks.iter().map(|task| task.insns)),
            memory_bytes: sum(&mut job.processes.iter().map(|process| process.memory_bytes)),
            start_ns: job.start_ns,
            deadline_ns: job.deadline_ns,
        }
    }

    pub(crate) fn text(&self) -> String {
        format!(
            "  job {}: {}, {}, {} instructions, {} of memory, deadline {}\n",
            self.name,
            counted(self.processes as u64, "process", "processes"),
            counted(self.tasks as u64, "task", "tasks"),
            grouped(self.insns),
            bytes(self.memory_bytes),
            nanoseconds(self.deadline_ns)
        )
    }
}

/// A machine in a few numbers.
#[derive(Serialize)]
pub(crate) struct MachineSummary {
    name: Option<String>,
    nodes: Vec<NodeSummary>,
}

#[derive(Serialize)]
struct NodeSummary {
    node: String,
    cores: usize,
    memory_bytes: u64,
    /// Of all of its cores together.
    rate_insns_per_s: u64,
}

impl MachineSummary {
    pub(crate) fn new(machine: &Machine) -> Self {
        let nodes = machine.nodes.iter().map(|node| NodeSummary {
            node: node.name.clone(),
            cores: node.cores.len(),
            memory_bytes: node.memory_bytes,
            rate_insns_per_s: node
                .cores
                .iter()
                .fold(0, |sum, core| sum.saturating_add(core.rate_insns_per_s)),
        });
        Self {
            name: machine.name.clone(),
            nodes: nodes.collect(),
        }
    }

    pub(crate) fn text(&self) -> String {
        let lines = self.nodes.iter().map(|node| {
            format!(
                "  node {}: {}, {} of memory, {} instructions a second together\n",
                node.node,
                counted(node.cores as u64, "core", "cores"),
                bytes(node.memory_bytes),
                grouped(node.rate_insns_per_s)
            )
        });
        lines.collect()
    }
}
