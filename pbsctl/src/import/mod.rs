// SPDX-License-Identifier: GPL-2.0
//! The command that converts plans and jobs of the prototypes.

mod glass;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use pbs_plan::{leppert, to_toml};
use serde_json::json;

use crate::failure::Failure;
use crate::files;
use crate::output::Output;
use crate::plans::hand_over;

const IMPORT_HELP: &str = "\
The grammar of plans is that of Leppert 2021, 4.3.1, on one line:

  PROCESSES;ID,BUFFER;...;;PROCESS,TASK,PLANNED,REAL;...

The table for people that the simulation prints after that line may follow. Process -1 is an
idle slot. The real lengths become real_insns.

A directory becomes a job: job_details_N.csv, job_processes_N.csv and job_tasks_N.txt (Glaß
2024, 5.1.2). With --machine, machine_details.csv becomes a machine. A unit of time becomes a
second, a unit of memory a byte.

Examples:
  pbsctl plan import sim.log > plan.toml
  pbsctl plan import sim.log --cpu 3 --plan-id 12 --output plan.toml
  pbsctl plan import glass/ --output job.toml --machine machine.toml
  pbsctl plan show job.toml --machine machine.toml --whole-rate";

#[derive(Args, Debug)]
#[command(after_help = IMPORT_HELP)]
pub(crate) struct ImportOptions {
    /// File with the plan on one line, or directory of a job; - reads standard input
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

    /// Name of the job, instead of glass-N
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// Write the machine of the directory to FILE
    #[arg(long, value_name = "FILE")]
    pub(crate) machine: Option<PathBuf>,

    /// Write to FILE instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
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
    let plan = leppert::import(&text, plan_id, cpu)
        .map_err(|problems| Failure::Invalid { file: files::name(&options.file), problems })?;
    let toml = ("toml", to_toml(&plan));
    hand_over(out, options.output.as_deref(), toml, &plan, json!({}))?;
    Ok(ExitCode::SUCCESS)
}
