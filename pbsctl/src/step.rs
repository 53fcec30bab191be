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
use crate::service::{submission, Terms};
use crate::socket::Socket;

const STEP_HELP: &str = "\
Examples:
  srun pbsctl step sort.toml               In a script of sbatch, once on each node
  srun --nodes=1 --nodelist=n2 pbsctl step sort.toml    ... on one of them
  srun pbsctl step sort.toml --output sort.log          ... with what programs print there

The job is planned on the cores that Slurm has given to the job on the node, by the
service pbsd there, and followed to its end; a signal cancels it. Every node runs the same
file. Where the job's name has %n, that is the number of the node, and each has a history
of its own. Programs know by SLURM_NODEID which they are.

Where there is no service, no class, or the service knows nothing of Slurm's job, the
programs run all the same: as ordinary ones, on those cores, in the order that the job
asks for. That is said once. One that prints does so to the output of this command then;
the service writes it to NAME-NUMBER.out.";

#[derive(Args, Debug)]
#[command(after_help = STEP_HELP)]
pub(crate) struct StepOptions {
    /// The job in TOML
    #[arg(value_name = "JOB")]
    file: PathBuf,

    /// Have programs write there that name no file
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    socket: Socket,
}

/// Waits for signals, and says on standard error what there is to be said.
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
        End::Late => (DEADLINE_MISSED, "it ended after its deadline".into()),
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
