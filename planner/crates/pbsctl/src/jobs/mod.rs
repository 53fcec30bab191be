// SPDX-License-Identifier: GPL-2.0
//! Jobs from files, with what is known of them, and the machine that they are
//! planned for.

mod machine;
mod predict;
mod saved;

use std::cmp::Reverse;
use std::path::Path;

use pbs_history::JobHistory;
use pbs_job::{job_from_toml, Job, Problem};

use crate::failure::Failure;
use crate::files;

pub(crate) use machine::MachineFile;
use predict::expected;

pub(crate) use predict::{predict, Forecast};
pub(crate) use saved::Saved;

/// From the call that makes the plan of jobs until it is in force: on the CPU of a
/// plan pbsctl itself has the CPU for a few milliseconds in a hundred.
pub(crate) const LEAD_NS: u64 = 100_000_000;

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
    /// Reads a job and checks all of it.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        Self::from_text(files::read(path)?, path)
    }

    /// The same, where the file was read already.
    pub(crate) fn from_text(request: String, path: &Path) -> Result<Self, Failure> {
        let file = files::name(path);
        match job_from_toml(&request) {
            Ok(job) => Ok(Self { file, request, job }),
            Err(problems) => Err(Failure::Invalid { file, problems }),
        }
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
