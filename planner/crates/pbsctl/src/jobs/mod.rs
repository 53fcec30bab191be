// SPDX-License-Identifier: GPL-2.0
//! Jobs from files, with what is known of them, and the machine that they are
//! planned for.

mod machine;
mod predict;
mod saved;

use std::cmp::Reverse;
use std::path::{Path, PathBuf};

use clap::Args;
use pbs_history::JobHistory;
use pbs_job::{job_from_toml, Job, Problem};

use crate::failure::Failure;
use crate::files;
use crate::history::HistoryFile;

use predict::expected;

pub(crate) use machine::{machine_of, MachineFile};
pub(crate) use predict::{predict, Forecast};
pub(crate) use saved::Saved;

/// From the call that makes the plan of jobs until it is in force: on the CPU of a
/// plan pbsctl itself has the CPU for a few milliseconds in a hundred.
pub(crate) const LEAD_NS: u64 = 100_000_000;

/// Jobs from files, and what they are planned with.
#[derive(Args, Debug)]
pub(crate) struct JobFiles {
    /// Jobs in TOML; - reads standard input
    #[arg(required = true, value_name = "JOB")]
    pub(crate) jobs: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) machine: MachineFile,

    #[command(flatten)]
    pub(crate) history: HistoryFile,
}

/// Reads jobs and checks all of them. The order is that of [`by_priority`].
pub(crate) fn read(paths: &[PathBuf]) -> Result<Vec<Submission>, Failure> {
    let jobs = paths.iter().map(|path| Submission::read(path));
    let mut jobs: Vec<_> = jobs.collect::<Result<_, _>>()?;
    by_priority(&mut jobs, |submission| &submission.job);
    Ok(jobs)
}

/// The most important first, and of those as they came.
pub(crate) fn by_priority<T>(jobs: &mut [T], job: impl Fn(&T) -> &Job) {
    jobs.sort_by_key(|one| Reverse(job(one).priority));
}

/// A job that somebody wants to have run.
#[derive(Clone, Debug)]
pub(crate) struct Submission {
    /// What its file is called in messages.
    pub(crate) file: String,
    /// As it was requested: the file itself.
    pub(crate) request: String,
    /// The job with the user's figures. Its times count from its submission.
    pub(crate) job: Job,
}

impl Submission {
    fn read(path: &Path) -> Result<Self, Failure> {
        Self::from_text(files::read(path)?, path)
    }

    /// The job of a file that was read; all of it is checked.
    pub(crate) fn from_text(request: String, path: &Path) -> Result<Self, Failure> {
        let file = files::name(path);
        match job_from_toml(&request) {
            Ok(job) => Ok(Self { file, request, job }),
            Err(problems) => Err(Failure::Invalid { file, problems }),
        }
    }

    /// The job as it is after it has waited for so long.
    pub(crate) fn waited(mut self, ns: u64) -> Self {
        self.job.start_ns = self.job.start_ns.saturating_sub(ns);
        self.job.deadline_ns = self.job.deadline_ns.saturating_sub(ns);
        self
    }

    /// The job as the runs before predict it, with its times of the planner's
    /// clock, which says `now_ns`.
    pub(crate) fn predicted(
        &self,
        history: &JobHistory,
        now_ns: u64,
    ) -> Result<(Job, Vec<Forecast>), Failure> {
        let (job, forecasts) = predict(&self.job, history);
        let job = job.submitted_at(now_ns).ok_or_else(|| Failure::Invalid {
            file: self.file.clone(),
            problems: vec![Problem::at(
                None,
                "its start or its deadline is later than the clock can say; write earlier ones",
            )],
        })?;
        Ok((job, forecasts))
    }
}
