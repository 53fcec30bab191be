// SPDX-License-Identifier: GPL-2.0
//! A question about one job beside a plan that stays.
//!
//! The answer decides whether the job is admitted, and the CPU of each of its processes. The
//! built-in planner then reserves the time there, and thereby keeps the promises to all jobs.

use pbs_job::Job;
use pbs_plan::Plan;

use super::check::{check_work, WantedProcess};
use super::question::{AdmissionAnswer, AdmissionQuestion};
use crate::SchedulerCommand;

/// CPUs of the processes of a job, by their indices in the job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice(pub Vec<(usize, u32)>);

/// Decision about a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The job is admitted on these CPUs, if there is time for it.
    Admitted(Choice),
    /// The job is declined, with the reason.
    Declined(String),
    /// The built-in planner decides.
    BuiltIn,
}

impl Decision {
    /// CPUs that were chosen for the job.
    pub(crate) fn cpus(&self) -> Vec<u32> {
        match self {
            Self::Admitted(Choice(chosen)) => chosen.iter().map(|&(_, cpu)| cpu).collect(),
            Self::Declined(_) | Self::BuiltIn => Vec::new(),
        }
    }
}

impl Choice {
    /// Confines the processes of a job to the CPUs that were chosen.
    pub fn confine(&self, job: &mut Job) {
        for &(process, cpu) in &self.0 {
            if let Some(process) = job.processes.get_mut(process) {
                process.cpus = vec![cpu];
            }
        }
    }
}

/// Work that the answer must have.
#[derive(Debug)]
pub(crate) struct Beside {
    before: Vec<WantedProcess>,
    new: Vec<(usize, WantedProcess)>,
}

impl Beside {
    pub(crate) fn new(question: &AdmissionQuestion<'_>) -> Self {
        Self {
            before: question.plan.map(WantedProcess::of_plan).unwrap_or_default(),
            new: WantedProcess::of_job(question.job, question.first_id()),
        }
    }

    /// Decision by an answer.
    ///
    /// # Errors
    ///
    /// The answer cannot be used, and why, as words that follow the command.
    pub(crate) fn decision(
        &self,
        answer: AdmissionAnswer,
        machine: &pbs_job::Machine,
    ) -> Result<Decision, String> {
        let plan: Plan = match answer {
            AdmissionAnswer::Declined(why) => return Ok(Decision::Declined(why)),
            AdmissionAnswer::Plan(plan) => *plan,
        };
        let wanted = self.before.iter().chain(self.new.iter().map(|(_, wanted)| wanted));
        let cpus = check_work(&plan, wanted, machine)?;
        let chosen = self.new.iter();
        let chosen = chosen.filter_map(|(index, wanted)| Some((*index, *cpus.get(&wanted.id)?)));
        Ok(Decision::Admitted(Choice(chosen.collect())))
    }
}

/// Asks a command about a job beside a plan that stays, and waits for its answer.
///
/// # Errors
///
/// There is no usable answer, and why, as words that follow the command.
pub fn admit_by_command(
    command: &SchedulerCommand,
    question: &AdmissionQuestion<'_>,
) -> Result<Decision, String> {
    let answer = question.ask(command)?;
    Beside::new(question).decision(answer, question.machine)
}
