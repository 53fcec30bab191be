// SPDX-License-Identifier: GPL-2.0
//! Planning without a node that runs: jobs one after the other on an empty
//! machine, with times that count from 0.

mod options;
mod view;

use std::path::Path;

use pbs_history::{Error, JobHistory};
use pbs_job::Job;
use pbs_node::device::rate_insns_per_ms;
use pbs_node::{Forecast, Submission};
use pbs_planner::{
    admit, earliest_deadline, lower_bound, validate, Bound, Declined, Options, Planned, Rejection,
    Request, Run, RunId, Store, Validation,
};

use crate::failure::Failure;

pub(crate) use options::PlanningOptions;
pub(crate) use view::{nanoseconds, AttemptView, MachineView, NodeView};

/// Plans jobs one after the other.
pub(crate) struct Planning {
    pub(crate) store: Store,
    validation: Validation,
    options: Options,
    history: Known,
}

/// What is known of runs before.
enum Known {
    /// There is no such file yet.
    Nothing(String),
    Runs(String, Box<pbs_history::Store>),
}

/// A job with what became of it.
pub(crate) struct Answered {
    pub(crate) submission: Submission,
    /// The job as it was planned, with what its runs predict.
    pub(crate) job: Job,
    pub(crate) forecasts: Vec<Forecast>,
    pub(crate) run: RunId,
    pub(crate) answer: Result<Planned, Declined>,
}

impl Planning {
    /// `device` is asked for the rate of this node where no machine is named.
    pub(crate) fn new(options: &PlanningOptions, device: &Path) -> Result<Self, Failure> {
        let planner_options = options.planner_options()?;
        let machine = options.machine.read(|| rate_insns_per_ms(device))?;
        Ok(Self {
            store: Store::with_capacity(machine, options.balancing(), options.capacity()),
            validation: options.validation(),
            options: planner_options,
            history: Known::open(&options.history.path)?,
        })
    }

    /// Admits the job or not. Its plan stays reserved for those after it.
    pub(crate) fn admit(&mut self, submission: Submission) -> Result<Answered, Failure> {
        let history = self.history.of(&submission.job.name)?;
        let (job, forecasts) = submission.predicted(&history, 0)?;
        let run = RunId(self.store.runs().count() as u64);
        let request = Request::new(run, &job);
        let answer = admit(&mut self.store, &request, &self.validation, &self.options);
        Ok(Answered {
            submission,
            job,
            forecasts,
            run,
            answer,
        })
    }

    /// The earliest deadline with which a job that was declined would be
    /// admitted beside those before it.
    pub(crate) fn earliest_deadline_ns(&mut self, declined: &Answered) -> Option<u64> {
        let request = Request::new(declined.run, &declined.job);
        earliest_deadline(&mut self.store, &request, &self.validation, &self.options)
    }

    /// What a level of the validation finds no room for, whatever became of the job.
    pub(crate) fn estimate(&mut self, answered: &Answered) -> Option<Rejection> {
        let request = Request::new(answered.run, &answered.job);
        validate(&mut self.store, &request, &self.validation).err()
    }

    /// No plan of the job ends earlier.
    pub(crate) fn bound(&self, answered: &Answered) -> Bound {
        lower_bound(&self.store, &Request::new(answered.run, &answered.job))
    }

    /// What is reserved for a job that was admitted.
    pub(crate) fn run(&self, answered: &Answered) -> Option<&Run> {
        self.store.run(answered.run)
    }

    /// Where figures come from, in a line.
    pub(crate) fn history_text(&self) -> String {
        match &self.history {
            Known::Nothing(file) => {
                format!("No run is known ({file} is not there): figures are those of the jobs.\n")
            }
            Known::Runs(file, _) => format!("Runs are known from {file}.\n"),
        }
    }

    /// The file of the runs, if there is one.
    pub(crate) fn history_file(&self) -> Option<&str> {
        match &self.history {
            Known::Nothing(_) => None,
            Known::Runs(file, _) => Some(file),
        }
    }
}

impl Known {
    fn open(file: &Path) -> Result<Self, Failure> {
        let name = file.display().to_string();
        match pbs_history::Store::open_read_only(file, pbs_history::Options::DEFAULT) {
            Ok(store) => Ok(Self::Runs(name, Box::new(store))),
            Err(Error::Missing(_)) => Ok(Self::Nothing(name)),
            Err(error) => Err(error.into()),
        }
    }

    fn of(&self, job: &str) -> Result<JobHistory, Failure> {
        match self {
            Self::Nothing(_) => Ok(JobHistory::default()),
            Self::Runs(_, store) => Ok(store.history(job)?),
        }
    }
}
