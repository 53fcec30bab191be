// SPDX-License-Identifier: GPL-2.0
//! A step of a Slurm job that is a job of the planner, on one node.
//!
//! Slurm has given the step its cores, and its plugin has told the service of the node so.
//! Here the job goes to the service, to be planned in that allocation, and is followed to its
//! end ([`served`]). Where nobody plans, no service or no class, its programs are run all the
//! same, in the order that its net asks for ([`plain`]): a job of Slurm's does not fail for
//! want of a plan.
//!
//! Nothing is printed here and no signal is taken: who runs a step says how it waits
//! ([`Waits`]) and hears what there is to be said.

mod net;
pub mod plain;
pub mod served;
mod slurm;

use std::path::Path;
use std::time::Duration;

use pbs_job::Job;
use pbs_node_api::{Failure, Submission};

pub use slurm::SlurmStep;

/// The runner of a step, which waits and receives messages.
pub trait Waits {
    /// Waits so long, or until something has happened; whether the step is to end.
    fn wait(&mut self, time: Duration) -> bool;
    /// Receives a message about the step, in words.
    fn tell(&mut self, what: &str);
}

/// Outcome of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// All programs succeeded, in time if there was a plan.
    Well,
    /// All programs succeeded, after the deadline of the job.
    Late,
    /// The first program, of those of the job in their order, that did not succeed: its exit
    /// status, or as of a shell (128 and the signal; 127, if it could not be executed).
    Program(u8),
    /// The step was cancelled on request.
    Cancelled,
    /// Another outcome, in words.
    NotComplete(String),
}

/// A step to be run.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// Socket of the node's service.
    pub socket: &'a Path,
    /// The device of the class.
    pub device: &'a Path,
    /// The job, with its allocation.
    pub submission: Submission,
    /// The job of the submission as it was read.
    pub job: &'a Job,
    /// Whether the output of programs without a plan is kept out of the own standard output.
    pub output_to_error: bool,
}

/// Runs the job on this node to its end, with a plan if it can have one.
///
/// # Errors
///
/// The service refuses it, or there is nothing that can be run.
pub fn run(request: Request<'_>, waits: &mut dyn Waits) -> Result<End, Error> {
    let why = if request.device.exists() {
        match served::submit(request.socket, &request.submission) {
            Ok(submitted) => return Ok(submitted.follow(waits)),
            Err(Failure::Refused(pbs_node_api::Refusal::NotPermitted { what })) => what,
            Err(Failure::Connection(error)) => {
                format!("{}: {error}", request.socket.display())
            }
            Err(refused) => return Err(Error::Refused(refused)),
        }
    } else {
        format!("there is no {}", request.device.display())
    };
    plain::run(&request, &why, waits)
}

/// Reason why a step was not run.
#[derive(Debug)]
pub enum Error {
    /// The service refuses the step, or has gone while it was submitted.
    Refused(Failure),
    /// The fault of the step, in words.
    Invalid(String),
}
