// SPDX-License-Identifier: GPL-2.0
//! The command that says whether a plan, a job, a task graph or a machine is valid.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use crate::failure::Failure;
use crate::files::{self, Kind};
use crate::hints::report_hints;
use crate::jobs::{graph_of, job_of, machine_of};
use crate::output::Output;
use crate::summary::{GraphSummary, JobSummary, MachineSummary, PlanSummary};
use crate::task_net;

const CHECK_HELP: &str = "\
Examples:
  pbsctl job check job.toml
  pbsctl job check job.toml --net net.svg                      Draw its task net as well
  pbsctl job check job.toml --net net.svg --machine lab.toml   ... with the durations of its tasks";

#[derive(Args, Debug)]
#[command(after_help = CHECK_HELP)]
pub(crate) struct CheckOptions {
    /// The file, in TOML or JSON; - reads standard input
    file: PathBuf,

    /// Draw the task net of a job, or a task graph, to FILE, as SVG
    #[arg(long, value_name = "FILE", value_parser = files::picture())]
    net: Option<PathBuf>,

    /// Machine on whose fastest core the tasks of a job have their durations in the net
    #[arg(long, value_name = "FILE", requires = "net")]
    machine: Option<PathBuf>,

    /// Kind of a file that shows none.
    #[arg(skip = Kind::Plan)]
    otherwise: Kind,
}

impl CheckOptions {
    /// The check of a file, without a picture.
    pub(crate) fn of(file: PathBuf) -> Self {
        Self { file, net: None, machine: None, otherwise: Kind::Plan }
    }

    /// The check that takes a file for a job if it shows no kind.
    pub(crate) fn of_job(self) -> Self {
        Self { otherwise: Kind::Job, ..self }
    }
}

pub(crate) fn check(out: Output, options: &CheckOptions) -> Result<ExitCode, Failure> {
    let file = &options.file;
    let text = files::read(file)?;
    let (name, kind) = (files::name(file), Kind::of(&text, options.otherwise));
    if options.net.is_some() && !matches!(kind, Kind::Job | Kind::Graph) {
        return Err(Failure::Usage(format!(
            "--net draws the task net of a job or a task graph, and {name} has none; name the file \
             of a job, or leave out --net"
        )));
    }
    if options.machine.is_some() && kind == Kind::Graph {
        return Err(Failure::Usage(
            "--machine is for durations of the tasks of a job, and variants have their own; leave \
             it out"
                .into(),
        ));
    }
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
            files::expect(kind, &text, file)?;
            let submission = job_of(text, file)?;
            if let Some(net) = &options.net {
                let machine = options.machine.as_ref();
                let machine = machine.map(|path| machine_of(&files::read(path)?, path));
                files::write(
                    net,
                    &task_net::of_job(&submission.job, machine.transpose()?.as_ref()),
                )?;
            }
            let summary = JobSummary::new(&submission.job);
            out.print(
                &json!({ "valid": true, "problems": [], "kind": "job", "job": summary,
                         "normalized": pbs_job::job_to_json(&submission.job) }),
                || format!("{name}: valid job\n{}", summary.text()),
            )
        }
        Kind::Graph => {
            let graph = graph_of(&text, file)?;
            if let Some(net) = &options.net {
                files::write(net, &task_net::of_graph(&graph))?;
            }
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
