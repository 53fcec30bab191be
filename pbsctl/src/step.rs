// SPDX-License-Identifier: GPL-2.0
//! The command that runs a step of a Slurm job.

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use pbs_launch::signals::{wait_for, Signals};
use pbs_slurm_step::{End, Error, Request, SlurmStep, Waits};
use serde_json::json;

use crate::failure::{Failure, DEADLINE_MISSED, INCOMPLETE, INTERRUPTED};
use crate::jobs::job_of;
use crate::output::{report, Output};
use crate::service::submission;
use crate::socket::Socket;
use crate::terms::Terms;

const STEP_HELP: &str = "\
Examples:
  srun pbsctl job step sort.toml             In a script of sbatch, once on each node
  srun --nodes=1 --nodelist=n2 pbsctl job step sort.toml    ... on one of them
  srun pbsctl job step sort.toml --output sort.log          ... with the output of programs there

The service pbsd of the node plans the job on the cores that Slurm has allocated to the job
there, and follows it to its end; a signal cancels it. Every node runs the same file. %n in the
name of the job becomes the number of the node, and each such name has its own history. Programs
find the number of their node in SLURM_NODEID.

Without a service or the class, or if the service does not know the job of Slurm, the programs
still run: as ordinary processes, on these cores, in the order of the job. This is reported once.
Programs without a file for their output then write to the output of this command; the service
writes it to NAME-NUMBER.out.";

#[derive(Args, Debug)]
#[command(after_help = STEP_HELP)]
pub(crate) struct StepOptions {
    /// Job in TOML or JSON
    #[arg(value_name = "JOB")]
    file: PathBuf,

    /// File for the output of programs that name no file
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    socket: Socket,
}

/// Waits for signals, and prints messages on standard error.
struct Waiting(Signals);

impl Waits for Waiting {
    fn wait(&mut self, time: Duration) -> bool {
        let ms = i32::try_from(time.as_millis()).unwrap_or(i32::MAX);
        // Where that fails there is nothing to wait for, and it is looked again.
        let _ = wait_for([self.0.as_fd()], ms);
        self.0.want_stop().unwrap_or(false)
    }

    fn tell(&mut self, what: &str) {
        report(&format!("pbsctl: {what}"));
    }
}

pub(crate) fn step(out: Output, device: &Path, options: &StepOptions) -> Result<ExitCode, Failure> {
    let step = SlurmStep::of(|name| std::env::var(name).ok()).map_err(Failure::Usage)?;
    let terms = Terms::with_output(options.output.clone());
    let mut submission = submission(&options.file, &terms)?;
    let read = job_of(submission.request.clone(), &options.file)?;
    let name = step.name(&read.job.name);
    submission.name.clone_from(&name);
    submission.allocation = Some(step.job);
    let signals = Signals::new().map_err(|error| Failure::file("signals", &error))?;
    let request = Request {
        socket: &options.socket.path,
        device,
        submission,
        job: &read.job,
        // With JSON nothing but pbsctl's own may be on standard output.
        output_to_error: out.json,
    };
    let end = pbs_slurm_step::run(request, &mut Waiting(signals)).map_err(|error| match error {
        Error::Refused(failure) => failure.into(),
        Error::Invalid(why) => Failure::Failed(why),
    })?;
    let (code, outcome) = match &end {
        End::Well => (0, "complete".into()),
        End::Late => (DEADLINE_MISSED, "it missed its deadline".into()),
        End::Program(code) => (*code, format!("a program failed: status {code}")),
        End::Cancelled => (INTERRUPTED, "it was cancelled".into()),
        End::NotComplete(how) => (INCOMPLETE, how.clone()),
    };
    let name = name.unwrap_or(read.job.name);
    // Standard output is that of programs, or of JSON.
    if end != End::Well {
        report(&format!("pbsctl: job {name}: {outcome}"));
    }
    let SlurmStep { job, node, .. } = step;
    let answer = json!({ "allocation": job, "node": node, "job": name, "outcome": outcome });
    out.print(&answer, String::new)?;
    Ok(ExitCode::from(code))
}
