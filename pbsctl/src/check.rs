// SPDX-License-Identifier: GPL-2.0
//! The command that says whether a plan, a job, a task graph or a machine is valid.

use std::path::Path;
use std::process::ExitCode;

use serde_json::json;

use crate::failure::Failure;
use crate::files::{self, Kind};
use crate::hints::report_hints;
use crate::jobs::{graph_of, job_of, machine_of};
use crate::output::Output;
use crate::summary::{GraphSummary, JobSummary, MachineSummary, PlanSummary};

pub(crate) fn check(out: Output, file: &Path) -> Result<ExitCode, Failure> {
    let text = files::read(file)?;
    let (name, kind) = (files::name(file), Kind::of(&text));
    if matches!(kind, Kind::Job | Kind::Graph | Kind::Machine) {
        report_hints(out, &text, &name);
    }
    match kind {
        Kind::Plan => {
            let plan = files::plan_of(&text, file)?;
            let summary = PlanSummary::new(&plan);
            out.print(
                &json!({ "valid": true, "problems": [], "kind": "plan", "plan": summary,
                         "normalized": pbs_plan::to_json(&plan) }),
                || format!("{name}: valid plan\n{}", summary.text()),
            )
        }
        Kind::Job => {
            let submission = job_of(text, file)?;
            let summary = JobSummary::new(&submission.job);
            out.print(
                &json!({ "valid": true, "problems": [], "kind": "job", "job": summary,
                         "normalized": pbs_job::job_to_json(&submission.job) }),
                || format!("{name}: valid job\n{}", summary.text()),
            )
        }
        Kind::Graph => {
            let graph = graph_of(&text, file)?;
            let summary = GraphSummary::new(&graph);
            out.print(
                &json!({ "valid": true, "problems": [], "kind": "graph", "graph": summary,
                         "normalized": pbs_job::graph_to_json(&graph) }),
                || format!("{name}: valid task graph\n{}", summary.text()),
            )
        }
        Kind::Machine => {
            let machine = machine_of(&text, file)?;
            let summary = MachineSummary::new(&machine);
            out.print(
                &json!({ "valid": true, "problems": [], "kind": "machine", "machine": summary,
                         "normalized": pbs_job::machine_to_json(&machine) }),
                || format!("{name}: valid machine\n{}", summary.text()),
            )
        }
    }?;
    Ok(ExitCode::SUCCESS)
}
