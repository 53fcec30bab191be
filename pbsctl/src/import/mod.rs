// SPDX-License-Identifier: GPL-2.0
//! The command that converts plans and jobs of the prototypes, and workflows.

mod glass;
mod workflow;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use pbs_plan::{leppert, to_toml};
use pbs_text::Problem;
use serde_json::json;

use crate::failure::Failure;
use crate::files;
use crate::output::Output;
use crate::plans::hand_over;
use crate::quantities;

const IMPORT_HELP: &str = "\
The grammar of plans is that of Leppert 2021, 4.3.1, on one line:

  PROCESSES;ID,BUFFER;...;;PROCESS,TASK,PLANNED,REAL;...

The table for people that the simulation prints after that line may follow. Process -1 is an
idle slot. The real lengths become real_insns.

A directory becomes a job: job_details_N.csv, job_processes_N.csv and job_tasks_N.txt (Glaß
2024, 5.1.2). With --machine, machine_details.csv becomes a machine. A unit of time becomes a
second, a unit of memory a byte.

A workflow in WfFormat (WfCommons, JSON) or DOT becomes a task graph. With --rate it becomes a job
with a process for each task. In DOT, a task has label, runtime (seconds), cores and memory (bytes),
an arrow has bytes. Parts that the result can't have are named on standard error.

Examples:
  pbsctl plan import sim.log > plan.toml
  pbsctl plan import sim.log --cpu 3 --plan-id 12 --output plan.toml
  pbsctl plan import glass/ --output job.toml --machine machine.toml
  pbsctl plan show job.toml --machine machine.toml --whole-rate
  pbsctl plan import montage.json --output graph.toml
  pbsctl plan import flow.dot --runtime 10s --rate 1G --output job.toml";

#[derive(Args, Debug)]
#[command(after_help = IMPORT_HELP)]
pub(crate) struct ImportOptions {
    /// File with the plan on one line, workflow, or directory of a job; - reads standard input
    #[arg(value_name = "FILE|DIRECTORY")]
    pub(crate) file: PathBuf,

    /// CPU that the plan is for, instead of 0
    #[arg(long, value_name = "N")]
    pub(crate) cpu: Option<u32>,

    /// Number of the plan, instead of 1
    #[arg(long, value_name = "N")]
    pub(crate) plan_id: Option<u64>,

    /// Number N of the job, if the directory has several
    #[arg(long, value_name = "N")]
    pub(crate) job: Option<u64>,

    /// Name of the job, instead of glass-N or that of the workflow
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// Write the machine of the directory to FILE
    #[arg(long, value_name = "FILE", value_parser = files::toml_file())]
    pub(crate) machine: Option<PathBuf>,

    /// Make a job of a workflow, for a machine of so many instructions per second
    #[arg(long, value_name = "N", value_parser = quantities::rate_per_s)]
    pub(crate) rate: Option<u64>,

    /// Run time of a workflow's tasks that have none, in seconds or with a unit, such as 500ms
    #[arg(long, value_name = "TIME", value_parser = quantities::seconds)]
    pub(crate) runtime: Option<u64>,

    /// Write to FILE instead of standard output
    #[arg(long, short, value_name = "FILE", value_parser = files::toml_file())]
    pub(crate) output: Option<PathBuf>,
}

pub(crate) fn import(out: Output, options: &ImportOptions) -> Result<ExitCode, Failure> {
    files::refuse_same(&[
        ("--output", options.output.as_deref()),
        ("--machine", options.machine.as_deref()),
    ])?;
    if options.file.is_dir() {
        return glass::import(out, options);
    }
    let text = files::read(&options.file)?;
    if let Some(format) = workflow::Format::of(&text) {
        let of_plan = options.cpu.is_some() || options.plan_id.is_some();
        if options.machine.is_some() || options.job.is_some() || of_plan {
            return Err(Failure::Usage(
                "--machine, --job, --cpu and --plan-id are for the files of the prototypes, and \
                 this is a workflow; leave them out"
                    .into(),
            ));
        }
        return workflow::import(out, options, &text, format);
    }
    if options.rate.is_some() || options.runtime.is_some() {
        return Err(Failure::Usage(format!(
            "--rate and --runtime are for workflows, and {} is none in WfFormat or DOT",
            files::name(&options.file)
        )));
    }
    if options.machine.is_some() || options.job.is_some() {
        return Err(Failure::Usage(
            "--machine and --job are for the files of Glaß's prototype; name their directory \
             instead of a file"
                .into(),
        ));
    }
    if options.name.is_some() {
        return Err(Failure::Usage(format!(
            "--name is for jobs: for workflows, and for the directories of Glaß's prototype; {} \
             is neither, leave --name out",
            files::name(&options.file)
        )));
    }
    if !text.contains(";;") {
        let what = if text.trim().is_empty() { "it is empty" } else { "it is none of these" };
        let message = format!(
            "{what}; name a file with a plan on one line (PROCESSES;ID,BUFFER;...;;...), a workflow \
             in WfFormat (JSON with \"workflow\") or in DOT (digraph), or the directory of a job"
        );
        let problems = vec![Problem { line: None, message }];
        return Err(Failure::Invalid { file: files::name(&options.file), problems });
    }
    let (plan_id, cpu) = (options.plan_id.unwrap_or(1), options.cpu.unwrap_or(0));
    let plan = leppert::import(&text, plan_id, cpu)
        .map_err(|problems| Failure::Invalid { file: files::name(&options.file), problems })?;
    let toml = ("toml", to_toml(&plan));
    hand_over(out, options.output.as_deref(), toml, &plan, json!({}))?;
    Ok(ExitCode::SUCCESS)
}
