// SPDX-License-Identifier: GPL-2.0
//! Admission of jobs to the plan.

use std::collections::btree_map::Entry;
use std::collections::BTreeMap;
use std::sync::Arc;

use pbs_control::{Admitted, Companions, Controller, Missed};
use pbs_history::{Fingerprint, JobHistory, Kind, Outcome};
use pbs_interference::Slowdowns;
use pbs_job::Job;
use pbs_plan::Plan;
use pbs_planner::{NotArranged, Turn};

use crate::active::ActiveJob;
use crate::candidate::Candidate;
use crate::clock::{monotonic_ns, since_1970};
use crate::jobs::Jobs;
use crate::placement::{is_small, place, Placed, Tries, MOST_TRIES};
use crate::predict::{programs, reserve_requested, Forecast};
use crate::settings::LEAD_NS;
use crate::submission::by_priority;
use crate::value::{second_order, second_results, Entrant};
use crate::Submission;
use crate::{companions, Declined, Error, Expected, Listener, Moved, News, SlowdownSource, Step};

/// A deadline for those who have none: twelve days.
const NO_DEADLINE_NS: u64 = 1 << 50;

/// Histories of jobs that a request holds at a time.
const MOST_HISTORIES: usize = 16;

/// Steps of work that the reading of a run of a task counts as.
const READ_STEPS: u64 = 4;

/// Name, user and programs of a job, by which its history is read.
type HistoryKey = (String, Option<u32>, Vec<(u32, Fingerprint)>);

/// Changes that admission would make. If a job is declined, or if there is no plan, nothing
/// changes.
pub(crate) struct Trial {
    controller: Controller,
    now_ns: u64,
    missed: Vec<Missed>,
    admitted: Vec<Taken>,
    /// `None`: each question about a job takes what the planner allows for one.
    allowance: Option<Allowance>,
    /// History of each job that was tried: it is read once.
    histories: BTreeMap<HistoryKey, JobHistory>,
    /// Number of other CPUs that may still be tried because of slow-downs.
    tries: usize,
}

/// Work that a request may take, for all jobs in it.
#[derive(Debug)]
pub(crate) struct Allowance {
    /// Steps that are left.
    steps: u64,
    /// Steps that the admission of one job may take: the other half is for the questions that
    /// follow if it is declined.
    each: u64,
    /// Jobs of the request that were not planned yet.
    jobs: usize,
}

impl Allowance {
    /// Returns the allowance of a request of so many jobs.
    pub(crate) fn new(steps: u64, jobs: usize) -> Self {
        Self { steps, each: (steps / 2).max(1), jobs }
    }

    /// Returns what is left of the allowance of a request for one more trial of it, in which each job
    /// may take as much as in the first.
    fn rest(&self) -> Self {
        Self { steps: self.steps, each: self.each, jobs: 1 }
    }

    /// Takes one of the jobs. Returns the steps that its admission may take: the jobs after it have
    /// their parts, too, and what this one leaves of its own.
    fn next(&mut self) -> u64 {
        let jobs = self.jobs.max(1) as u64;
        self.jobs = self.jobs.saturating_sub(1);
        self.each.min(self.steps / jobs).max(1)
    }

    /// Whether a further job would get less work than the first.
    fn is_spent(&self) -> bool {
        self.steps < self.each
    }
}

/// A job that fits.
struct Taken {
    candidate: Candidate,
    job: Job,
    forecasts: Vec<Forecast>,
    admitted: Admitted,
    /// Change of CPUs because of slow-downs, if there is one.
    moved: Option<Moved>,
}

impl Trial {
    fn new(
        controller: Controller,
        now_ns: u64,
        missed: Vec<Missed>,
        allowance: Option<Allowance>,
    ) -> Self {
        Self {
            controller,
            now_ns,
            missed,
            admitted: Vec::new(),
            allowance,
            histories: BTreeMap::new(),
            tries: MOST_TRIES,
        }
    }

    /// Whether a further job would get less work than the first.
    pub(crate) fn is_spent(&self) -> bool {
        self.allowance.as_ref().is_some_and(Allowance::is_spent)
    }

    /// Returns the time for which it is planned.
    pub(crate) fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Returns what is left of its work for another trial.
    pub(crate) fn rest(&self) -> Option<Allowance> {
        self.allowance.as_ref().map(Allowance::rest)
    }

    /// Returns the steps of work that are left of the allowance.
    #[cfg(test)]
    pub(crate) fn steps_left(&self) -> Option<u64> {
        self.allowance.as_ref().map(|allowance| allowance.steps)
    }

    /// Returns the steps of work that the planner may still take.
    #[cfg(test)]
    pub(crate) fn work_left(&self) -> Option<u64> {
        self.controller.work_left()
    }

    /// Returns the plan of the job that was admitted last.
    pub(crate) fn expected(&self) -> Option<Expected> {
        let taken = self.admitted.last()?;
        let state = self.controller.run(taken.admitted.run)?;
        Some(Expected {
            start_unix_ns: state.planned_start_ns.map(since_1970),
            end_unix_ns: since_1970(taken.admitted.planned.end_ns),
            moved: taken.moved.clone(),
        })
    }
}

impl Jobs {
    /// Admits all of them, or says why one was declined. They are in the next plan, in
    /// which their tasks come in the order of those steps, if there are any. The answer is
    /// the run of each of them, as they were submitted.
    pub(crate) fn admit(
        &mut self,
        submissions: Vec<Submission>,
        steps: &[Step],
        kind: Kind,
        file: &str,
        listener: &mut dyn Listener,
    ) -> Result<Vec<pbs_planner::RunId>, Error> {
        let now_ns = monotonic_ns();
        let candidates = submissions.into_iter().map(|submission| Candidate {
            submission,
            id: None,
            submitted_ns: now_ns,
            terms: None,
            kind,
        });
        let mut candidates: Vec<_> = candidates.enumerate().collect();
        by_priority(&mut candidates, |(_, candidate)| &candidate.submission.job);
        let mut trial = self.trial(now_ns);
        let mut places = Vec::with_capacity(candidates.len());
        for (place, candidate) in candidates {
            self.take(&mut trial, candidate)?;
            places.push(place);
        }
        // Each was taken, or all are refused.
        let taken = trial.admitted.iter().map(|taken| taken.admitted.run);
        let mut runs: Vec<_> = places.into_iter().zip(taken).collect();
        runs.sort_unstable_by_key(|&(place, _)| place);
        let runs: Vec<_> = runs.into_iter().map(|(_, run)| run).collect();
        if let Err(why) = trial.arrange(steps, &runs) {
            listener.news(News::NotArranged(why));
        }
        if let Some(source) = &self.slowdowns {
            match trial.beside(source, self)? {
                Ok(Some(news)) => listener.news(news),
                Ok(None) => {}
                Err(why) => listener.news(News::NotArranged(why)),
            }
        }
        let plan = trial.plan(file)?;
        self.commit(trial, plan, listener);
        Ok(runs)
    }

    /// Admits those that wait, as many as still can be.
    pub(crate) fn admit_waiting(
        &mut self,
        file: &str,
        listener: &mut dyn Listener,
    ) -> Result<(), Error> {
        let now_ns = monotonic_ns();
        let mut candidates = self.submitted(now_ns, listener)?;
        by_priority(&mut candidates, |candidate| &candidate.submission.job);
        let (mut trial, results) = self.try_orders(now_ns, &candidates);
        let mut last = None;
        for (candidate, result) in candidates.iter().zip(results) {
            let id = candidate.id;
            match result {
                Ok(()) => {}
                Err(declined @ Error::Declined(_)) => {
                    if let Some(id) = id {
                        self.ledger.close_unrun(id, Outcome::Declined, None)?;
                    }
                    if let Some(before) = last.replace(declined) {
                        listener.news(News::NotAdmitted(before));
                    }
                }
                Err(error) => return Err(error),
            }
        }
        match last {
            Some(declined) if trial.admitted.is_empty() => return Err(declined),
            Some(declined) => listener.news(News::NotAdmitted(declined)),
            None if trial.admitted.is_empty() => return Err(Error::NothingWaits),
            None => {}
        }
        let plan = trial.plan(file)?;
        self.commit(trial, plan, listener);
        Ok(())
    }

    /// Tries jobs one after the other, and once more by their value if not all can be admitted and
    /// values were declared. Returns the trial that loses less, with the result of each job. The
    /// results end with the first error that is no refusal of a job.
    pub(crate) fn try_orders(
        &self,
        now_ns: u64,
        candidates: &[Candidate],
    ) -> (Trial, Vec<Result<(), Error>>) {
        let tried = |order: &mut dyn Iterator<Item = usize>| {
            let mut trial = self.trial(now_ns);
            let mut results = Vec::with_capacity(candidates.len());
            for at in order {
                let result = self.take(&mut trial, candidates[at].clone());
                let goes_on = matches!(result, Ok(()) | Err(Error::Declined(_)));
                results.push(result);
                if !goes_on {
                    break;
                }
            }
            (trial, results)
        };
        let (trial, results) = tried(&mut (0..candidates.len()));
        let entrants = candidates.iter().map(|candidate| {
            let uid = candidate.terms.as_ref().map(|terms| terms.owner.uid);
            Entrant { job: &candidate.submission.job, uid }
        });
        let entrants: Vec<_> = entrants.collect();
        let Some(order) = second_order(&entrants, &results) else {
            return (trial, results);
        };
        let (other_trial, other_results) = tried(&mut order.iter().copied());
        match second_results(&entrants, &results, &order, other_results) {
            Some(other_results) if other_trial.has_plan() => (other_trial, other_results),
            _ => (trial, results),
        }
    }

    /// The jobs that wait in the history, but those that users have ordered from the service:
    /// they would run as the user of this process here. One that cannot be read any more is
    /// declined.
    fn submitted(
        &mut self,
        now_ns: u64,
        listener: &mut dyn Listener,
    ) -> Result<Vec<Candidate>, Error> {
        let mut candidates = Vec::new();
        for (id, ago_ns, request) in self.ledger.waiting()? {
            if self.ledger.order(id)?.is_some() {
                continue;
            }
            let submission = Submission::from_text(request, format!("run {id}"));
            match submission.and_then(Submission::with_programs) {
                Ok(submission) => candidates.push(Candidate {
                    // What was submitted before the boot has had some of its time before.
                    submission: submission.waited(ago_ns.saturating_sub(now_ns)),
                    id: Some(id),
                    submitted_ns: now_ns.saturating_sub(ago_ns),
                    terms: None,
                    kind: Kind::Plan,
                }),
                Err(error) => {
                    listener.news(News::NotAdmitted(error));
                    self.ledger.close_unrun(id, Outcome::Declined, None)?;
                }
            }
        }
        Ok(candidates)
    }

    /// Returns a copy of the present plan, to which jobs can be added.
    pub(crate) fn trial(&self, now_ns: u64) -> Trial {
        let mut controller = self.controller.clone();
        let missed = if self.runs.is_empty() { Vec::new() } else { controller.renew(now_ns) };
        Trial::new(controller, now_ns, missed, None)
    }

    /// Returns a copy of the present plan, to which the jobs of a request can be added with the
    /// work that is allowed for one. What is left of the runs is planned anew with half of it. If
    /// that takes more, they have the reservations of their last plan: late jobs of one user stop
    /// the admission of nobody's.
    pub(crate) fn trial_within(&self, now_ns: u64, mut allowance: Allowance) -> Trial {
        let mut controller = self.controller.clone();
        let mut missed = Vec::new();
        if !self.runs.is_empty() {
            let most = allowance.steps / 2;
            let steps = match controller.renew_within(now_ns, most) {
                Some((late, steps)) => {
                    missed = late;
                    steps
                }
                None => {
                    controller = self.controller.clone();
                    most
                }
            };
            allowance.steps = allowance.steps.saturating_sub(steps);
        }
        Trial::new(controller, now_ns, missed, Some(allowance))
    }

    /// Plans a job beside all others.
    ///
    /// # Errors
    ///
    /// Why it is declined; the trial goes on without it.
    pub(crate) fn take(&self, trial: &mut Trial, candidate: Candidate) -> Result<(), Error> {
        let submission = &candidate.submission;
        let uid = candidate.terms.as_ref().map(|terms| terms.owner.uid);
        if trial.histories.len() >= MOST_HISTORIES {
            trial.histories.clear();
        }
        let key = (submission.job.name.clone(), uid, programs(&submission.job).collect());
        let history = match trial.histories.entry(key) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let history = self.ledger.history(&submission.job, uid)?;
                if let Some(Allowance { steps, .. }) = &mut trial.allowance {
                    *steps = steps.saturating_sub(history.samples().saturating_mul(READ_STEPS));
                }
                new.insert(history)
            }
        };
        let (mut job, forecasts) = submission.predicted(history, candidate.submitted_ns)?;
        if self.reserves_requested {
            reserve_requested(&mut job, &submission.job);
        }
        if candidate.kind == Kind::Profile {
            job.deadline_ns = trial.now_ns.saturating_add(NO_DEADLINE_NS);
        }
        let allocation = candidate.terms.as_ref().and_then(|terms| terms.allocation);
        let bound = self.allocations.bound(&mut job, allocation, &self.machine, trial.now_ns);
        if let Err(why) = bound {
            return Err(Error::Declined(Declined {
                file: candidate.submission.file,
                job: job.name,
                why,
                earliest_deadline_ns: None,
            }));
        }
        let (controller, now_ns) = (&mut trial.controller, trial.now_ns);
        let planned = Arc::new(not_before_its_start(job.clone(), now_ns));
        // Slow-downs, and the plan without the job.
        let mut pricing = None;
        let mut each = 0;
        if let Some(allowance) = &mut trial.allowance {
            each = allowance.next();
            controller.allow_work(allowance.steps, each);
            let has_tries = trial.tries > 0 && !job.best_effort;
            let slowdowns =
                self.learned.known().filter(|_| has_tries && is_small(controller, &planned));
            pricing = slowdowns.map(|slowdowns| (slowdowns, controller.clone()));
            trial.tries -= usize::from(pricing.is_some());
        }
        let before_steps = controller.work_left().unwrap_or(0);
        let admitted = controller.admit(planned.clone(), now_ns);
        let answer = admitted
            .map_err(|declined| (controller.earliest_deadline_ns(&planned, now_ns), declined));
        if let Some(allowance) = &mut trial.allowance {
            allowance.steps = controller.work_left().unwrap_or(0);
        }
        match answer {
            Ok(admitted) => {
                let mut taken = Taken { candidate, job, forecasts, admitted, moved: None };
                if let Some((slowdowns, before)) = pricing {
                    let done = before_steps.saturating_sub(controller.work_left().unwrap_or(0));
                    let steps = each.saturating_sub(done);
                    self.place_beside(trial, &mut taken, &planned, (&slowdowns, before), steps);
                    if let Some(allowance) = &trial.allowance {
                        // What is left is for the jobs of best effort, too.
                        trial.controller.allow_work(allowance.steps, each);
                    }
                }
                trial.admitted.push(taken);
                Ok(())
            }
            Err((earliest_ns, declined)) => Err(Error::Declined(Declined {
                file: candidate.submission.file,
                job: job.name.clone(),
                why: declined.describe(&job, candidate.submitted_ns),
                earliest_deadline_ns: earliest_ns
                    .map(|ns| ns.saturating_sub(candidate.submitted_ns)),
            })),
        }
    }

    /// Places a job that was admitted on other CPUs, where that is better with slow-downs.
    /// `before`: the plan without the job. `steps`: the work that this may take.
    fn place_beside(
        &self,
        trial: &mut Trial,
        taken: &mut Taken,
        planned: &Arc<Job>,
        (slowdowns, before): (&Slowdowns, Controller),
        steps: u64,
    ) {
        let sharing = companions::sharing(&self.machine);
        let companions = Companions { slowdowns, sharing: &sharing, key: &companions::key };
        let first = Placed {
            controller: std::mem::replace(&mut trial.controller, before),
            admitted: taken.admitted.clone(),
            moved: None,
        };
        let mut tries = Tries { steps, left: &mut trial.tries };
        let now = (trial.now_ns, &mut tries);
        let placed = place(&trial.controller, first, planned, &self.machine, &companions, now);
        let done = steps - tries.steps;
        if let Some(allowance) = &mut trial.allowance {
            allowance.steps = allowance.steps.saturating_sub(done);
        }
        trial.controller = placed.controller;
        (taken.admitted, taken.moved) = (placed.admitted, placed.moved);
    }

    /// Takes over what was tried, with the plan of it.
    pub(crate) fn commit(
        &mut self,
        trial: Trial,
        plan: Option<Plan>,
        listener: &mut dyn Listener,
    ) -> usize {
        self.controller = trial.controller;
        self.next_plan = plan;
        self.tell_missed(&trial.missed, listener);
        let first = self.runs.len();
        for taken in trial.admitted {
            self.runs.push(ActiveJob::admitted(
                taken.candidate,
                taken.job,
                taken.forecasts,
                (taken.admitted, taken.moved),
            ));
        }
        first
    }

    /// Reports the jobs with other CPUs because of slow-downs, from that run on.
    pub(crate) fn tell_moved(&mut self, first: usize, listener: &mut dyn Listener) {
        for run in &mut self.runs[first..] {
            if let (Some(id), Some(moved)) = (run.id, run.moved.take()) {
                listener.moved(id, &run.job.name, &moved);
            }
        }
    }
}

/// The job as it is planned at that time. A plan is made for [`LEAD_NS`] from now on, and is in
/// force before: its slots come earlier than planned by as much. A job that has to wait for
/// its start is planned to begin later by as much.
fn not_before_its_start(mut job: Job, now_ns: u64) -> Job {
    if job.start_ns > now_ns {
        job.start_ns = job.start_ns.saturating_add(LEAD_NS);
    }
    job
}

impl Trial {
    /// Plans those that were taken anew, in the order of the steps. `runs`: those of what was
    /// submitted.
    fn arrange(&mut self, steps: &[Step], runs: &[pbs_planner::RunId]) -> Result<(), String> {
        if steps.is_empty() {
            return Ok(());
        }
        let turns = steps.iter().filter_map(|step| {
            Some(Turn { run: *runs.get(step.submission)?, task: step.task, stretch_permille: 1000 })
        });
        let turns: Vec<Turn> = turns.collect();
        let arranged = self.controller.arrange(&turns, self.now_ns);
        arranged.map_err(|why| self.describe(&why))
    }

    /// Plans those that were taken anew, in the order in which they slow each other least.
    ///
    /// # Errors
    ///
    /// The history can't be read; in words, why they stay as they are.
    fn beside(
        &mut self,
        source: &SlowdownSource,
        jobs: &Jobs,
    ) -> Result<Result<Option<News>, String>, Error> {
        let sharing = companions::sharing(&jobs.machine);
        let (slowdowns, sharing) = match source {
            SlowdownSource::History => (companions::of_runs(&jobs.ledger.coruns()?), sharing),
            SlowdownSource::File(entries) => {
                let taken: Vec<&Job> = self.admitted.iter().map(|taken| &taken.job).collect();
                let cpus: Vec<u32> = jobs.machine.cpus().collect();
                let slowdowns = companions::of_file(entries, &taken);
                (slowdowns, sharing.or_as_in(entries, &cpus))
            }
        };
        let companions =
            Companions { slowdowns: &slowdowns, sharing: &sharing, key: &companions::key };
        Ok(match self.controller.beside(&companions, self.now_ns) {
            Ok(found) => Ok(found.map(|found| News::Beside {
                unaware_ns: found.unaware_ns,
                aware_ns: found.aware_ns,
            })),
            Err(why) => Err(self.describe(&why)),
        })
    }

    fn describe(&self, why: &NotArranged) -> String {
        let taken = |run: &pbs_planner::RunId| {
            let mut taken = self.admitted.iter();
            taken.find(|taken| taken.admitted.run == *run)
        };
        let name = |run| taken(run).map_or("of another", |taken| &taken.job.name);
        match why {
            NotArranged::NotWaiting(run) => format!("job {} has begun", name(run)),
            NotArranged::Turns { run, task } => {
                format!(
                    "task {task} of job {} has no place in the order, or one too early",
                    name(run)
                )
            }
            NotArranged::Late { run, end_ns } => {
                let deadline_ns = taken(run).map_or(0, |taken| taken.job.deadline_ns);
                let late = pbs_text::span(end_ns.saturating_sub(deadline_ns));
                format!("job {} would miss its deadline by {late}", name(run))
            }
            NotArranged::NoPlace(run) => {
                format!("there is too little time or memory for job {} in this order", name(run))
            }
        }
    }

    /// Whether there is a plan of all that is admitted, and the node takes it.
    pub(crate) fn has_plan(&self) -> bool {
        matches!(self.controller.clone().plan(self.now_ns), Ok(Some(_)))
    }

    /// The plan of all that is admitted; `None`: that is nothing.
    pub(crate) fn plan(&mut self, file: &str) -> Result<Option<Plan>, Error> {
        let plan = self.controller.plan(self.now_ns);
        let plan = plan.map_err(|problems| Error::Invalid { file: file.into(), problems })?;
        match (&plan, self.admitted.is_empty()) {
            (None, false) => Err(Error::NothingToRun),
            _ => Ok(plan),
        }
    }
}
