// SPDX-License-Identifier: GPL-2.0
//! The runs that were submitted and wait. All of them stand in the history, as runs
//! without a reservation.

use std::fs;
use std::path::Path;

use pbs_control::{Controller, Options as ControlOptions};
use pbs_history::{
    Kind, NewRun, Options, Order, Outcome, Run, RunFigures, RunId, RunUsage, State, Store, Takeover,
};
use pbs_job::{Job, Machine};
use serde::Serialize;

use crate::admitting::{admit_by_command, AdmissionQuestion, Decision};
use crate::clock::unix_ns;
use crate::orders::{Noted, UNREADABLE};
use crate::result::{decisive, reason_of};
use crate::saved::Saved;
use crate::settings::LEAD_NS;
use crate::{Declined, Error, SchedulerCommand, Submission};

/// A job that was submitted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Submitted {
    /// Number of the run.
    pub run: u64,
    /// The job's name.
    pub job: String,
    /// If it began now.
    pub planned_end_ns: u64,
    /// From now on.
    pub deadline_ns: u64,
    /// Whether the job runs as best effort: the deadline is not promised.
    pub best_effort: bool,
}

/// A run, as far as it has come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RunSummary {
    /// Number of the run.
    pub run: RunId,
    /// The job's name.
    pub job: String,
    /// Purpose of the run.
    pub kind: Kind,
    /// "held", "waiting", "planned", "running" or "over".
    pub state: &'static str,
    /// Time of submission.
    pub submitted_unix_ns: u64,
    /// End of the run.
    pub ended_unix_ns: Option<u64>,
    /// Kind of its end.
    pub outcome: Option<Outcome>,
    /// Number of tasks about which figures exist.
    pub tasks: usize,
    /// And how many of them have ended.
    pub tasks_ended: usize,
    /// The user who wants it, if one was asked.
    pub uid: Option<u32>,
    /// Priority of the run.
    pub priority: Option<u32>,
    /// Whether it is run as best effort, without a promise; `None`: that is not known.
    pub best_effort: Option<bool>,
    /// The CPUs that it is confined to, ascending; `None`: it is not.
    pub cpus: Option<Vec<u32>>,
    /// The allocation that it is in.
    pub allocation: Option<u32>,
    /// Reason for which the run waits, or did not complete.
    pub reason: Option<String>,
    /// Deadline of the run.
    pub deadline_unix_ns: Option<u64>,
    /// Planned start.
    pub expected_start_unix_ns: Option<u64>,
    /// Planned end.
    pub expected_end_unix_ns: Option<u64>,
    /// Time at which its programs were released.
    pub started_unix_ns: Option<u64>,
    /// Time of its first instruction in a slot.
    pub begun_unix_ns: Option<u64>,
    /// Whether it did all that it was to do before its deadline, once it is over.
    pub kept: Option<bool>,
    /// Exit status of the program that decided the outcome, if it exited.
    pub exit_code: Option<i32>,
    /// Name of the signal that killed the program that decided the outcome.
    pub signal: Option<String>,
}

impl RunSummary {
    /// Returns the summary of a run about which nothing else is known yet.
    pub(crate) fn begun(run: RunId, job: &str, submitted_unix_ns: u64) -> Self {
        Self {
            run,
            job: job.into(),
            kind: Kind::Plan,
            state: "waiting",
            submitted_unix_ns,
            ended_unix_ns: None,
            outcome: None,
            tasks: 0,
            tasks_ended: 0,
            uid: None,
            priority: None,
            best_effort: None,
            cpus: None,
            allocation: None,
            reason: None,
            deadline_unix_ns: None,
            expected_start_unix_ns: None,
            expected_end_unix_ns: None,
            started_unix_ns: None,
            begun_unix_ns: None,
            kept: None,
            exit_code: None,
            signal: None,
        }
    }

    /// Returns the summary of a run as the history records it, if it does not wait.
    pub(crate) fn new(figures: RunFigures, order: Option<&Order>) -> Self {
        let RunFigures { run, processes, .. } = figures;
        let tasks = processes.iter().flat_map(|process| &process.tasks);
        let ended = tasks.clone().filter(|task| task.outcome == Outcome::Complete);
        let noted = order.and_then(Noted::of);
        let is_unreadable = order.is_some() && noted.is_none();
        let ending = noted.as_ref().map(|noted| &noted.ending);
        let told = ending.and_then(|ending| ending.why.clone());
        let of_program = matches!(run.outcome, Some(Outcome::Failed | Outcome::Killed));
        let decisive = ending.filter(|_| of_program).and_then(|ending| decisive(&ending.programs));
        Self {
            kind: run.kind,
            state: run.state.name(),
            ended_unix_ns: run.ended_unix_ns,
            outcome: run.outcome,
            tasks: tasks.count(),
            tasks_ended: ended.count(),
            uid: order.map(|order| order.uid),
            priority: noted.as_ref().and_then(|noted| noted.terms.priority),
            best_effort: ending.and_then(|ending| ending.best_effort),
            cpus: ending.and_then(|ending| confined(&ending.cpus)),
            allocation: noted.as_ref().and_then(|noted| noted.terms.allocation),
            reason: if is_unreadable {
                Some(UNREADABLE.into())
            } else {
                told.or_else(|| run.outcome.and_then(reason_of).map(Into::into))
            },
            deadline_unix_ns: ending.and_then(|ending| ending.deadline_unix_ns),
            started_unix_ns: ending.and_then(|ending| ending.started_unix_ns),
            begun_unix_ns: ending.and_then(|ending| ending.begun_unix_ns),
            kept: ending.and_then(|ending| ending.kept),
            exit_code: decisive.and_then(|end| end.code),
            signal: decisive.and_then(|end| end.signal).map(pbs_text::signal),
            ..Self::begun(run.id, &run.job, run.submitted_unix_ns)
        }
    }
}

/// The CPUs of a job, if it is confined to some.
pub(crate) fn confined(cpus: &[u32]) -> Option<Vec<u32>> {
    (!cpus.is_empty()).then(|| cpus.to_vec())
}

/// Opens the history, or makes it and the directory that it is in.
pub fn open(path: &Path) -> Result<Store, Error> {
    open_with(path, Options::DEFAULT)
}

/// Opens the history with other options.
pub(crate) fn open_with(path: &Path, options: Options) -> Result<Store, Error> {
    if let Some(directory) = path.parent().filter(|path| !path.as_os_str().is_empty()) {
        fs::create_dir_all(directory).map_err(|error| Error::file(directory, error))?;
    }
    Ok(Store::open(path, options)?)
}

/// Queues jobs to be run on an otherwise empty machine, behind waiting jobs of the same importance.
/// The most important job must come first. Either all jobs are queued or none. `admission`: a
/// command is asked about each job first; `told` receives the job about which it gives no usable
/// answer, and why, as words that follow the command.
///
/// # Errors
///
/// Fails if a job is declined, with the reason; no job is queued then.
pub fn submit(
    store: &mut Store,
    machine: Machine,
    submissions: Vec<Submission>,
    admission: Option<&SchedulerCommand>,
    told: &mut dyn FnMut(&str, &str),
) -> Result<Vec<Submitted>, Error> {
    let least = submissions.last().map_or(0, |last| last.job.priority);
    let mut controller = with_waiting(store, &machine, least)?;
    let mut admitted = Vec::with_capacity(submissions.len());
    for submission in submissions {
        let history = store.history(&submission.job.name)?;
        let (job, _) = submission.predicted(&history, 0)?;
        let planned_end_ns =
            admit(&mut controller, &submission.file, &job, &machine, admission, told)?;
        admitted.push((submission, planned_end_ns, job));
    }
    let mut submitted = Vec::with_capacity(admitted.len());
    for (submission, planned_end_ns, job) in admitted {
        let id = store.begin_run(&NewRun {
            job: &job.name,
            kind: Kind::Plan,
            submitted_unix_ns: unix_ns(),
            request: &submission.request,
            reservation: "",
            order: None,
        })?;
        submitted.push(Submitted {
            run: id.0,
            job: job.name,
            planned_end_ns,
            deadline_ns: job.deadline_ns,
            best_effort: job.best_effort,
        });
    }
    Ok(submitted)
}

/// The plan of all jobs that wait and are at least that important.
fn with_waiting(store: &Store, machine: &Machine, least: u32) -> Result<Controller, Error> {
    let control = ControlOptions { lead_ns: LEAD_NS, ..ControlOptions::default() };
    let mut controller = Controller::new(machine.clone(), control, 1, 1);
    for (id, ago_ns, request) in waiting(store)? {
        // One that can't be run any more is in nobody's way, nor one that is less
        // important.
        let before = Submission::from_text(request, format!("run {id}")).ok();
        if let Some(before) = before.filter(|before| before.job.priority >= least) {
            let history = store.history(&before.job.name)?;
            let (job, _) = before.waited(ago_ns).predicted(&history, 0)?;
            // A job that has no place in the plan takes none from the new jobs.
            let _ = controller.admit(job, 0);
        }
    }
    Ok(controller)
}

/// Admits a job, as a command decides if there is one. Returns its planned end.
fn admit(
    controller: &mut Controller,
    file: &str,
    job: &Job,
    machine: &Machine,
    admission: Option<&SchedulerCommand>,
    told: &mut dyn FnMut(&str, &str),
) -> Result<u64, Error> {
    let declined = |why, earliest_deadline_ns| {
        let (file, job) = (file.into(), job.name.clone());
        Error::Declined(Declined { file, job, why, earliest_deadline_ns })
    };
    let decision = match admission {
        Some(command) => by_command(command, controller, job, machine),
        None => Ok(Decision::BuiltIn),
    };
    let decision = decision.unwrap_or_else(|why| {
        told(&job.name, &why);
        Decision::BuiltIn
    });
    match decision {
        Decision::Declined(why) => return Err(declined(why, None)),
        Decision::BuiltIn => {}
        Decision::Admitted(choice) => {
            let mut chosen = job.clone();
            choice.confine(&mut chosen);
            match controller.admit(chosen, 0) {
                Ok(run) => return Ok(run.planned.end_ns),
                // The built-in planner chooses below.
                Err(why) => {
                    let why = why.describe(job, 0);
                    told(&job.name, &format!("chose CPUs without time for it: {why}"));
                }
            }
        }
    }
    let admitted = controller.admit(job.clone(), 0);
    admitted.map(|run| run.planned.end_ns).map_err(|why| {
        let earliest_ns = controller.earliest_deadline_ns(job, 0);
        declined(why.describe(job, 0), earliest_ns)
    })
}

/// The decision of a command about a job, beside the plan of those before it.
fn by_command(
    command: &SchedulerCommand,
    controller: &mut Controller,
    job: &Job,
    machine: &Machine,
) -> Result<Decision, String> {
    let plan = controller.plan(0).map_err(|problems| {
        let problems: Vec<_> = problems.into_iter().map(|problem| problem.message).collect();
        format!("is not asked, as the jobs that wait have no plan: {}", problems.join("; "))
    })?;
    let question = AdmissionQuestion { job, machine, plan: plan.as_ref(), lead_ns: LEAD_NS };
    admit_by_command(command, &question)
}

/// Withdraws a waiting run from the queue.
///
/// # Errors
///
/// Fails if there is no such run, or if it does not wait.
pub fn withdraw(store: &mut Store, id: RunId) -> Result<Run, Error> {
    let run = store.run(id)?;
    let takeover = store.takeover(id)?;
    if !takeover.is_some_and(|takeover| is_submitted(&run, &takeover)) {
        return Err(Error::DoesNotWait(id, run.job));
    }
    store.finish_run(id, unix_ns(), Outcome::Cancelled, &[])?;
    Ok(run)
}

/// All runs, the oldest first; of those that are over only the last ones, if so many are
/// enough.
pub fn runs(store: &Store, last: Option<usize>) -> Result<Vec<RunSummary>, Error> {
    let runs = store.runs(None)?;
    let over = runs.iter().filter(|run| run.state == State::Over).count();
    let mut passed_over = last.map_or(0, |last| over.saturating_sub(last));
    let mut summaries = Vec::new();
    for run in runs {
        if run.state == State::Over && passed_over > 0 {
            passed_over -= 1;
            continue;
        }
        let takeover = store.takeover(run.id)?;
        let request = takeover.as_ref().map(|takeover| takeover.request.clone());
        let saved = takeover.as_ref().and_then(|takeover| Saved::from_text(&takeover.reservation));
        let submitted = takeover.is_some_and(|takeover| is_submitted(&run, &takeover));
        let order = store.order(run.id)?;
        let mut summary = RunSummary::new(store.figures_of(run.id)?, order.as_ref());
        // The state in the history is that of its programs, which wait for their slots.
        if let Some(saved) = saved.filter(|_| summary.state == State::Running.name()) {
            let unix_ns = |ns| saved.unix_ns(ns, summary.submitted_unix_ns);
            summary.started_unix_ns = Some(unix_ns(saved.started_ns));
            summary.begun_unix_ns = saved.begun_ns.map(unix_ns);
            if saved.begun_ns.is_none() {
                summary.state = State::Planned.name();
            }
        }
        // Of one that is not over the request is known.
        let job = request.and_then(|text| Submission::from_text(text, String::new()).ok());
        if let Some(Submission { job, .. }) = job {
            let asked =
                order.as_ref().and_then(Noted::of).is_some_and(|noted| noted.terms.best_effort);
            summary.best_effort = Some(job.best_effort || asked);
            let deadline_unix_ns = summary.submitted_unix_ns.checked_add(job.deadline_ns);
            let of_queue = deadline_unix_ns.filter(|_| submitted && order.is_none());
            summary.deadline_unix_ns = summary.deadline_unix_ns.or(of_queue);
        }
        summaries.push(match (submitted, &order) {
            // What the history has of those that wait is that they are planned.
            (true, Some(order)) if Noted::of(order).is_some_and(|noted| noted.terms.hold) => {
                RunSummary { state: "held", ..summary }
            }
            (true, _) => RunSummary { state: "waiting", ..summary },
            (false, _) => summary,
        });
    }
    Ok(summaries)
}

/// Returns the summary of a run as the history records it, without its processes.
pub fn recorded(store: &Store, run: &Run) -> Result<RunSummary, pbs_history::Error> {
    let figures =
        RunFigures { run: run.clone(), processes: Vec::new(), usage: RunUsage::default() };
    Ok(RunSummary::new(figures, store.order(run.id)?.as_ref()))
}

/// The runs that are not over, the oldest first.
pub(crate) fn open_runs(store: &Store) -> Result<Vec<(Run, Takeover)>, Error> {
    let mut open = Vec::new();
    for run in store.open_runs()? {
        if let Some(takeover) = store.takeover(run.id)? {
            open.push((run, takeover));
        }
    }
    Ok(open)
}

/// The runs that were submitted and wait, the oldest first: number, how long ago that
/// was, and the job as it was requested.
pub(crate) fn waiting(store: &Store) -> Result<Vec<(RunId, u64, String)>, Error> {
    let now_ns = unix_ns();
    let open = open_runs(store)?.into_iter();
    let waiting = open.filter(|(run, takeover)| is_submitted(run, takeover));
    let waiting = waiting.map(|(run, takeover)| {
        let ago_ns = now_ns.saturating_sub(run.submitted_unix_ns);
        (run.id, ago_ns, takeover.request)
    });
    Ok(waiting.collect())
}

/// Whether a run waits, as it stands in the history.
pub(crate) fn is_submitted(run: &Run, takeover: &Takeover) -> bool {
    run.state == State::Planned && takeover.reservation.is_empty()
}
