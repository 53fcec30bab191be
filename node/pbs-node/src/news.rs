// SPDX-License-Identifier: GPL-2.0
//! Messages of a node while it works.

use std::fmt;

use pbs_history::{Outcome, RunId};
use pbs_plan::Plan;
use pbs_text::{bytes, span};
use pbs_uapi::Event;

use crate::result::in_words;
use crate::{Error, JobOutcome, Moved, SaveRequest};

/// Hears of what happens. Who only wants the result does with none of it.
pub trait Listener {
    /// Receives a message for people.
    fn news(&mut self, _news: News) {}

    /// An event of one of the node's own plans.
    fn event(&mut self, _event: &Event) {}

    /// The kernel took a plan: the first one, or one in the place of another.
    fn planned(&mut self, _plan: &Plan) {}

    /// The first instruction of a job was executed in a slot.
    fn begun(&mut self, _run: RunId, _job: &str) {}

    /// A job was admitted to other CPUs than without slow-downs.
    fn moved(&mut self, _run: RunId, _job: &str, _moved: &Moved) {}

    /// A job will miss its deadline, and its programs have started other processes, which used so
    /// much time of a CPU outside of the plan.
    fn started_others(&mut self, _run: RunId, _job: &str, _others_ns: u64) {}

    /// The programs of a job that is to end were asked to save their work before.
    fn asked_to_save(&mut self, _run: RunId, _job: &str, _request: &SaveRequest) {}

    /// A process of a job has more memory than was reserved for it.
    fn new_peak(&mut self, _run: RunId, _job: &str, _peak: &NewPeak) {}

    /// Whether the outcomes of jobs are to have what is predicted for the next run, for which the
    /// history of the job is read.
    fn wants_forecasts(&self) -> bool {
        true
    }

    /// A job is over.
    fn over(&mut self, _outcome: JobOutcome) {}

    /// A job that was ordered is over without having been run.
    fn not_run(&mut self, _not_run: &NotRun<'_>) {}

    /// A run is over that no planner has followed to its end.
    fn closed(&mut self, _closed: &ClosedRun<'_>) {}

    /// All is done for the moment, and events are waited for.
    fn waits(&mut self) {}
}

/// A job that is over without having been run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotRun<'a> {
    /// Number of the run.
    pub run: RunId,
    /// Name of the job.
    pub job: &'a str,
    /// Reason.
    pub why: &'a str,
}

/// A run that no planner has followed to its end: its machine was rebooted, or it ended while no
/// planner lived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClosedRun<'a> {
    /// Number of the run.
    pub run: RunId,
    /// Name of the job.
    pub job: &'a str,
    /// Kind of the end.
    pub outcome: Outcome,
    /// Whether it kept its deadline; `None`: it had none, or that is not known.
    pub kept: Option<bool>,
    /// Reason for which the run did not complete, if it needs words.
    pub why: Option<&'a str>,
}

impl ClosedRun<'_> {
    /// Returns the end of the run in words: its outcome, and the reason if it has one.
    pub fn in_words(&self) -> String {
        in_words(self.outcome, self.why)
    }
}

/// Memory of a process beyond what was reserved for it, which is the largest peak of its earlier
/// runs; before the first run, it is the user's figure (Glaß 2024, 5.2.3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewPeak {
    /// Label of the process.
    pub process: String,
    /// Memory of the process.
    pub peak_bytes: u64,
    /// Memory that was reserved.
    pub reserved_bytes: u64,
}

impl fmt::Display for NewPeak {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { process, peak_bytes, reserved_bytes } = self;
        let (peak, reserved) = (bytes(*peak_bytes), bytes(*reserved_bytes));
        write!(
            f,
            "process {process} has {peak} of memory, more than the {reserved} reserved for it"
        )
    }
}

/// Message for people.
#[derive(Debug)]
pub enum News {
    /// A job that was submitted is not run, and why. Others are.
    NotAdmitted(Error),
    /// A run that was not over is, since its record can't be read, and why.
    SetAside(RunId, String),
    /// The record of a run that goes on can't be read or written any more, and why.
    NotFollowed(RunId, String),
    /// Too many results wait to be recorded: of the figures of this run, nothing is left.
    FiguresDropped(RunId),
    /// Too many results wait to be recorded, and this one is lost.
    ResultDropped(RunId),
    /// All runs of users in the history are older than runs become: no run is forgotten for its age.
    OutOfDate,
    /// The record of the plan that was in force can't be read, and why.
    PlanSetAside(String),
    /// Control groups of jobs that an earlier service has left: what was in them is killed.
    GroupsKilled(Vec<String>),
    /// The control groups that an earlier service may have left cannot be listed, and why.
    GroupsUnseen(String),
    /// Jobs that were to be planned together are planned one beside the other, and why.
    NotArranged(String),
    /// The jobs that wait come in an order in which they slow each other least: when all
    /// would end as they were admitted, and when they end so, from now on.
    Beside {
        /// End in the order of their admission.
        unaware_ns: u64,
        /// In the order that was found.
        aware_ns: u64,
    },
    /// The slow-downs of earlier runs cannot be learned, with the reason. Plans are made without
    /// them, or with those of the last time.
    NotLearned(String),
    /// A process waits for another that has ended before its tasks did.
    Cancelled {
        /// Label of the process.
        process: String,
        /// Name of its job; `None`: the plan is none of jobs.
        job: Option<String>,
        /// Label of the process that it waits for.
        cut: String,
        /// Whether its programs are children of the node, and were told to end.
        is_told: bool,
    },
    /// Events were lost, as they were read too late.
    EventsLost,
    /// The kernel did not say how a process of a job is, and why.
    NotAsked {
        /// Job of the process.
        job: String,
        /// Label of the process.
        process: String,
        /// Reason.
        why: String,
    },
    /// The node uses more memory than plans may.
    MemoryShort,
    /// A process uses more memory than was reserved for it, and is planned anew.
    Grown {
        /// Job of the process.
        job: String,
        /// Label of the process.
        process: String,
        /// Memory that the process uses.
        used_bytes: u64,
        /// Memory that was reserved.
        reserved_bytes: u64,
    },
    /// A job will miss its deadline by so much; `None`: there is no place left for it.
    WillMiss(String, Option<u64>),
    /// No new plan could be made, and why. The old one goes on.
    NoNewPlan(String),
    /// A process began a task or ended while a plan was made, and the kernel refused that plan,
    /// with the reason. Another plan follows.
    PlanOutdated(String),
    /// The kernel refused a new plan, and why. The old one goes on.
    PlanRefused(String),
    /// A command gave no usable answer to a prediction failure.
    CommandFailed {
        /// The command.
        command: String,
        /// The reason, as words that follow the command.
        why: String,
        /// Whether the built-in planner answers in its place.
        plans_jobs: bool,
        /// Whether the command is not asked any more.
        is_given_up: bool,
    },
    /// A command gave no usable answer about a job that asks for admission.
    AdmissionFailed {
        /// The command.
        command: String,
        /// Name of the job.
        job: String,
        /// The reason, as words that follow the command.
        why: String,
        /// Whether the command is not asked any more.
        is_given_up: bool,
    },
    /// Too many jobs wait for the answer of a command that admits jobs.
    AdmissionBusy {
        /// The command.
        command: String,
        /// Number of jobs about which it is not asked.
        jobs: usize,
    },
    /// The memory of a job that was taken over cannot be limited again, with the reason. The job
    /// continues without its limit.
    Unlimited(String, String),
    /// Number of processes that have ended as children of the node and that it has not started.
    Strangers(usize),
    /// Events can't be recorded any more, with the reason. Running jobs continue.
    NotRecorded(pbs_history::Error),
}

impl News {
    /// Whether somebody should look at it: all messages but those about what the node mends itself.
    pub fn is_alarm(&self) -> bool {
        !matches!(self, Self::PlanOutdated(_))
    }
}

impl fmt::Display for News {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::NotAdmitted(error) => error.to_string(),
            Self::SetAside(run, why) => format!(
                "run {run} is set aside: its record cannot be read ({why}). Programs of it that run \
                 are killed with its control group, or continue outside of plans without one; \
                 submit the job again"
            ),
            Self::NotFollowed(run, why) => format!(
                "the record of run {run} cannot be read or written ({why}) and is set aside: the job \
                 goes on, and its end is not recorded"
            ),
            Self::FiguresDropped(run) => format!(
                "many results cannot be recorded: the figures of run {run} are dropped, and its end \
                 is kept; make room on the disk of the history"
            ),
            Self::ResultDropped(run) => format!(
                "many results cannot be recorded: the end of run {run} is dropped; make room on the \
                 disk of the history"
            ),
            Self::OutOfDate => "the last job in the history ended longer ago than jobs are kept: the \
                 clock may be ahead. No job is forgotten for its age; set the clock"
                .into(),
            Self::PlanSetAside(why) => format!(
                "the record of the plan in force is set aside: it cannot be read ({why}). Runs that \
                 were under way are set aside; submit their jobs again"
            ),
            Self::GroupsKilled(groups) => format!(
                "an earlier service has left {} of jobs that it did not record as running, and all \
                 that was in them is killed: {}",
                if groups.len() == 1 { "the control group" } else { "control groups" },
                groups.join(", ")
            ),
            Self::GroupsUnseen(why) => format!(
                "control groups that an earlier service has left are not removed: {why}; a job \
                 whose group is there waits"
            ),
            Self::NotArranged(why) => {
                format!("the jobs are planned independently of each other: {why}")
            }
            Self::Beside { unaware_ns, aware_ns } => format!(
                "with slow-downs considered, all jobs end after {}; in the order of admission it \
                 would be {}",
                span(*aware_ns),
                span(*unaware_ns)
            ),
            Self::NotLearned(why) => format!("slow-downs of earlier runs cannot be learned: {why}"),
            Self::Cancelled { process, job, cut, is_told } => {
                let of_job = job.as_ref().map_or_else(String::new, |job| format!(" of job {job}"));
                let end = if *is_told {
                    ""
                } else {
                    "; end its program, which was not started by the planner"
                };
                format!(
                    "process {process}{of_job} is cancelled: it waits for process {cut}, which exited \
                     before its tasks ended{end}"
                )
            }
            Self::EventsLost => {
                "events were lost, since they were read too late; the figures of their tasks are \
                 not recorded"
                    .into()
            }
            Self::NotAsked { job, process, why } => {
                format!("the state of process {process} of job {job} is unknown: {why}")
            }
            Self::Unlimited(job, why) => {
                format!("job {job} continues without its memory limit: {why}")
            }
            Self::MemoryShort => "the node uses more memory than plans may use".into(),
            Self::Grown { job, process, used_bytes, reserved_bytes } => format!(
            "process {process} of job {job} uses {}, and {} were reserved; it is planned again \
             with more",
            bytes(*used_bytes),
            bytes(*reserved_bytes)
        ),
            Self::WillMiss(job, Some(ns)) => {
                format!("job {job} will probably miss its deadline by {}", span(*ns))
            }
            Self::WillMiss(job, None) => format!(
                "there is no place left for job {job}; the rest of it continues outside the plan"
            ),
            Self::NoNewPlan(why) => {
                format!("no new plan could be made, and the old one continues: {why}")
            }
            Self::PlanOutdated(why) => format!(
                "a process began a task or ended while a plan was made; another plan follows: {why}"
            ),
            Self::PlanRefused(why) => {
                format!("the kernel refused the new plan, and the old one continues: {why}")
            }
            Self::CommandFailed { command, why, plans_jobs, is_given_up } => {
                let instead = if *plans_jobs {
                    "the built-in planner answers instead"
                } else {
                    "the plan in force continues"
                };
                let from_now_on = if *is_given_up { ", now and from now on" } else { "" };
                format!("\"{command}\" {why}; {instead}{from_now_on}")
            }
            Self::AdmissionFailed { command, job, why, is_given_up } => {
                let for_a_while = if *is_given_up { ", now and for a minute" } else { "" };
                format!("job {job}: \"{command}\" {why}; the built-in planner decides{for_a_while}")
            }
            Self::AdmissionBusy { command, jobs } => format!(
                "\"{command}\" has enough questions; the built-in planner decides about jobs: {jobs}"
            ),
            Self::Strangers(count) => format!(
                "ended children of the node that programs of jobs started (CLONE_PARENT): {count}"
            ),
            Self::NotRecorded(error) => {
                format!("{error}. Running jobs continue, but are not recorded")
            }
        };
        f.write_str(&text)
    }
}
