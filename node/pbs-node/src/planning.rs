// SPDX-License-Identifier: GPL-2.0
//! Planning without a node that runs: jobs one after the other on an empty
//! machine, with times that count from 0.

use std::path::Path;

use pbs_history::JobHistory;
use pbs_job::Job;
use pbs_plan::{Config, Dispatch};
use pbs_planner::{
    admit_beside, earliest_deadline_beside, lower_bound, reserve_behind, validate, Bound, Declined,
    DemandTest, EarliestDeadline, Options, Planned, Rejection, Request, Run, RunId, Store,
    Validation,
};

use crate::{Error, Forecast, Submission};

/// Plans jobs one after the other.
pub struct Planning {
    /// Reservations.
    pub store: Store,
    validation: Validation,
    options: Options,
    /// From the submission of a job until its plan is in force.
    lead_ns: u64,
    history: Known,
    /// The user whose runs predict; `None`: runs without a user.
    uid: Option<u32>,
    /// The jobs that were admitted with a promise.
    admitted: Vec<(RunId, Job)>,
    tests_demand: bool,
}

/// Knowledge about earlier runs.
enum Known {
    /// The file does not exist yet.
    Nothing(String),
    Runs(String, Box<pbs_history::Store>),
}

/// A job with what became of it.
pub struct Answered {
    /// Job as it was requested.
    pub submission: Submission,
    /// The job as it was planned, with what its runs predict.
    pub job: Job,
    /// Sources of the figures of its tasks.
    pub forecasts: Vec<Forecast>,
    /// Number of the run in the store.
    pub run: RunId,
    /// Result of planning the job, or the reason for which it was declined.
    pub answer: Result<Planned, Declined>,
}

impl Planning {
    /// Plans on what `store` has, with what the file of the history knows of runs before.
    pub fn new(
        store: Store,
        validation: Validation,
        options: Options,
        history: &Path,
    ) -> Result<Self, Error> {
        Ok(Self {
            store,
            validation,
            options,
            lead_ns: 0,
            history: Known::open(history)?,
            uid: None,
            admitted: Vec::new(),
            tests_demand: true,
        })
    }

    /// Times count from the submission of the jobs, and nothing is planned before
    /// `lead_ns`; otherwise they count from when the plan is in force.
    pub fn with_lead(self, lead_ns: u64) -> Self {
        Self { lead_ns, ..self }
    }

    /// The runs that this user has ordered from the service predict, in place of those of
    /// `pbsctl run`.
    pub fn with_runs_of(self, uid: u32) -> Self {
        Self { uid: Some(uid), ..self }
    }

    /// The search alone admits jobs.
    pub fn without_demand_test(self) -> Self {
        Self { tests_demand: false, ..self }
    }

    /// From the submission of a job until its plan is in force.
    pub fn lead_ns(&self) -> u64 {
        self.lead_ns
    }

    /// Admits the job or not. Its plan stays reserved for those after it; where tasks move,
    /// that of those before is another one then. One of best effort is behind all before.
    pub fn admit(&mut self, submission: Submission) -> Result<Answered, Error> {
        let history = self.history.of(&submission.job.name, self.uid)?;
        let (job, forecasts) = submission.predicted(&history, 0)?;
        let run = RunId(self.store.runs().count() as u64);
        let request = Request::new(run, &job).not_before(self.lead_ns);
        let answer = if job.best_effort { self.behind(&request) } else { self.beside(&request) };
        if answer.is_ok() && !job.best_effort {
            self.admitted.push((run, job.clone()));
        }
        Ok(Answered { submission, job, forecasts, run, answer })
    }

    fn beside(&mut self, request: &Request<'_>) -> Result<Planned, Declined> {
        let test = self.demand_test();
        let others = others(&self.admitted, self.lead_ns);
        let Self { store, validation, options, .. } = self;
        admit_beside(store, request, &others, validation, options, test.as_ref())
    }

    fn demand_test(&self) -> Option<DemandTest> {
        let interrupts = Config::DEFAULT.dispatch() == Dispatch::Deadline;
        let test = DemandTest::of(self.store.machine(), self.store.capacity(), interrupts);
        test.filter(|_| self.tests_demand)
    }

    fn behind(&mut self, request: &Request<'_>) -> Result<Planned, Declined> {
        let promised: Vec<RunId> = self.admitted.iter().map(|(run, _)| *run).collect();
        let mut booking = self.store.book();
        let planned = reserve_behind(&mut booking, request, promised, &self.options);
        let planned = planned.map_err(Declined::Reservation)?;
        booking.commit();
        Ok(planned)
    }

    /// The earliest deadline with which a job that was declined would be
    /// admitted beside those before it.
    pub fn earliest_deadline(&mut self, declined: &Answered) -> EarliestDeadline {
        let test = self.demand_test();
        let request = self.request(declined);
        let others = others(&self.admitted, self.lead_ns);
        let Self { store, validation, options, .. } = self;
        earliest_deadline_beside(store, &request, &others, validation, options, test.as_ref())
    }

    /// Returns the rejection by a level of the validation, if there is one, whether the job was
    /// admitted or not.
    pub fn estimate(&mut self, answered: &Answered) -> Option<Rejection> {
        let request = self.request(answered);
        validate(&mut self.store, &request, &self.validation).err()
    }

    /// No plan of the job ends earlier.
    pub fn bound(&self, answered: &Answered) -> Bound {
        lower_bound(&self.store, &self.request(answered))
    }

    fn request<'a>(&self, answered: &'a Answered) -> Request<'a> {
        Request::new(answered.run, &answered.job).not_before(self.lead_ns)
    }

    /// Returns the reservations of a job that was admitted.
    pub fn run(&self, answered: &Answered) -> Option<&Run> {
        self.store.run(answered.run)
    }

    /// The file of the runs before, and whether there is one.
    pub fn history(&self) -> (&str, bool) {
        match &self.history {
            Known::Nothing(file) => (file, false),
            Known::Runs(file, _) => (file, true),
        }
    }
}

/// Requests of the jobs that were admitted before, which may move.
fn others(admitted: &[(RunId, Job)], lead_ns: u64) -> Vec<Request<'_>> {
    let requests = admitted.iter().map(|(run, job)| Request::new(*run, job));
    requests.map(|request| request.not_before(lead_ns)).collect()
}

impl Known {
    fn open(file: &Path) -> Result<Self, Error> {
        let name = file.display().to_string();
        match pbs_history::Store::open_read_only(file, pbs_history::Options::DEFAULT) {
            Ok(store) => Ok(Self::Runs(name, Box::new(store))),
            Err(pbs_history::Error::Missing(_)) => Ok(Self::Nothing(name)),
            Err(error) => Err(error.into()),
        }
    }

    fn of(&self, job: &str, uid: Option<u32>) -> Result<JobHistory, Error> {
        match self {
            Self::Nothing(_) => Ok(JobHistory::default()),
            Self::Runs(_, store) => Ok(store.history_of(job, uid)?),
        }
    }
}
