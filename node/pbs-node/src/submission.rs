// SPDX-License-Identifier: GPL-2.0
//! Jobs that somebody wants to have run.

use std::cmp::Reverse;

use pbs_history::JobHistory;
use pbs_job::{job_from_toml, with_values, Job, Problem};
use pbs_launch::{check_programs, path_of, Surroundings};
use pbs_text::Problems;

use crate::predict::{predict, Forecast};
use crate::Error;

/// A job that somebody wants to have run.
#[derive(Clone, Debug)]
pub struct Submission {
    /// Name of its file in messages.
    pub file: String,
    /// Text of the request: the file itself.
    pub request: String,
    /// The job with the user's figures. Its times count from its submission.
    pub job: Job,
}

impl Submission {
    /// The job of a file that was read; all of it is checked. `file` is what it is
    /// called in messages.
    pub fn from_text(request: String, file: String) -> Result<Self, Error> {
        match job_from_toml(&request) {
            Ok(job) => Ok(Self { file, request, job }),
            Err(problems) => Err(Error::Invalid { file, problems }),
        }
    }

    /// The job as one of best effort, also in the request that is stored.
    pub fn as_best_effort(mut self) -> Self {
        self.request = with_values(&self.request, &[("best_effort", "true".into())]);
        self.job.best_effort = true;
        self
    }

    /// The job as it is after it has waited for so long.
    pub(crate) fn waited(mut self, ns: u64) -> Self {
        self.job.start_ns = self.job.start_ns.saturating_sub(ns);
        self.job.deadline_ns = self.job.deadline_ns.saturating_sub(ns);
        self
    }

    /// The job as the runs before predict it, with its times of the planner's
    /// clock, which says `now_ns`.
    pub fn predicted(
        &self,
        history: &JobHistory,
        now_ns: u64,
    ) -> Result<(Job, Vec<Forecast>), Error> {
        let (job, forecasts) = predict(&self.job, history);
        let job = job.submitted_at(now_ns).ok_or_else(|| Error::Invalid {
            file: self.file.clone(),
            problems: vec![Problem::at(
                None,
                "its start or deadline is too late for the clock; write earlier ones",
            )],
        })?;
        Ok((job, forecasts))
    }

    /// Whether all of its programs are there: one whose are not must not keep others
    /// from running.
    pub fn with_programs(self) -> Result<Self, Error> {
        let processes = self.job.processes.iter();
        let commands = processes.flat_map(|process| process.start.commands());
        let missing = commands.filter_map(|command| path_of(command).err());
        let mut problems = Problems::default();
        problems.extend(missing);
        match problems.none() {
            Ok(()) => Ok(self),
            Err(problems) => Err(Error::Invalid { file: self.file, problems }),
        }
    }
}

impl Submission {
    /// Whether its programs, and their files, are there for this process in those surroundings:
    /// for who submits it to a service, which does not look.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`]: what is missing, in the words of a run without a service.
    pub fn with_files(&self, at: &Surroundings<'_>) -> Result<(), Error> {
        let processes = self.job.processes.iter();
        let commands: Vec<_> = processes.flat_map(|process| process.start.commands()).collect();
        let mut problems = Problems::default();
        problems.extend(check_programs(&commands, at));
        let file = self.file.clone();
        problems.none().map_err(|problems| Error::Invalid { file, problems })
    }
}

/// A turn of a task, where jobs that are admitted together say in which order their tasks
/// come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Index of its job among those that are submitted.
    pub submission: usize,
    /// Index of the task in its job.
    pub task: usize,
}

/// The most important first, and of those as they came; all of best effort behind all
/// others.
pub fn by_priority<T>(jobs: &mut [T], job: impl Fn(&T) -> &Job) {
    jobs.sort_by_key(|one| (job(one).best_effort, Reverse(job(one).priority)));
}
