// SPDX-License-Identifier: GPL-2.0
//! Errors of a node, and their remedies.

use std::fmt;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use pbs_history::{RunFigures, RunId};
use pbs_job::MAX_AMOUNT;
use pbs_text::{span, underscored, Problem};
use pbs_uapi::Refused;

/// Reason for which a node did not fulfil a request.
#[derive(Debug)]
pub enum Error {
    /// A file could not be read or written, or is not what it should be.
    File(String, io::Error),
    /// The device could not be opened.
    Device(PathBuf, io::Error),
    /// The kernel said no; to what.
    Refused(String, Refused),
    /// The content of the file is not valid.
    Invalid {
        /// Name of the file in messages.
        file: String,
        /// Problems of the file: a dozen, and the number of the others.
        problems: Vec<Problem>,
    },
    /// The job of a file was declined.
    Declined(Declined),
    /// The machine has so many nodes, and one of them is to be planned for.
    SeveralNodes(usize),
    /// The rate of this node is not known, and no machine was named; why.
    NoRate(String),
    /// The programs could not be started.
    Programs(io::Error),
    /// The programs of a run cannot be started before others were executed.
    NoRoom,
    /// The programs of a run cannot be started before others of its user have ended, which were
    /// killed.
    Stuck,
    /// Processes of an earlier service are in the control group of that name, and were killed.
    GroupInUse(String),
    /// A job has more programs than its control group may have processes.
    ManyPrograms(String, usize, u64),
    /// The number of a job's user was that of another user when the job was submitted, and is that
    /// of this one now, or of nobody in /etc/passwd.
    OtherUser {
        /// Number of the user.
        uid: u32,
        /// Name of the user at the submission.
        was: String,
        /// Name of the user now.
        is: Option<String>,
    },
    /// The node runs no jobs, as nobody has told it to.
    NoJobs,
    /// None of the jobs has an instruction.
    NothingToRun,
    /// No job was submitted.
    NothingWaits,
    /// No run is under way that could be taken over.
    NothingLeft,
    /// No plan has come into force as far back as the node remembers.
    NothingSeen,
    /// A run goes on that no planner follows.
    GoesOn(RunId, String),
    /// The order of a run cannot be read, and the run is therefore nobody's.
    UnreadableOrder(RunId, String),
    /// Another user than the owner of a run was to say what it runs.
    NotTheOwner(RunId, String),
    /// A run that was to be withdrawn does not wait.
    DoesNotWait(RunId, String),
    /// A run whose programs were to be notified does not run.
    DoesNotRun(RunId),
    /// The amount of a resource was to be set that the machine does not have; it has those.
    NoResource(String, Vec<String>),
    /// The amount of a resource that was to be set is too great.
    Amount(String, u64),
    /// A run was to save its work whose job declares no way to do so.
    NoCheckpoint(RunId, String),
    /// A run that is over was to be ended.
    IsOver(RunId, String),
    /// The history says itself what to do.
    History(pbs_history::Error),
}

/// A job that was declined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declined {
    /// Name of the job's file in messages.
    pub file: String,
    /// Name of the job.
    pub job: String,
    /// Description of the resource that was lacking.
    pub why: String,
    /// With which it would be admitted; counted from its submission.
    pub earliest_deadline_ns: Option<u64>,
}

impl Error {
    pub(crate) fn file(file: impl AsRef<Path>, error: io::Error) -> Self {
        Self::File(file.as_ref().display().to_string(), error)
    }

    /// A file that does not hold what it should.
    pub(crate) fn not_as_it_should(file: &Path, what: String) -> Self {
        Self::file(file, io::Error::other(what))
    }

    /// The kernel said no to `what`.
    pub(crate) fn refused(what: impl Into<String>) -> impl FnOnce(Refused) -> Self {
        let what = what.into();
        |refused| Self::Refused(what, refused)
    }

    /// Whether only something of the whole system was lacking, which others have and give back:
    /// descriptors, processes or memory.
    pub(crate) fn is_shortage(&self) -> bool {
        let lacking = [libc::EMFILE, libc::ENFILE, libc::EAGAIN, libc::ENOMEM];
        match self {
            Self::NoRoom | Self::Stuck | Self::GroupInUse(_) => true,
            Self::Programs(error) | Self::File(_, error) => {
                error.raw_os_error().is_some_and(|errno| lacking.contains(&errno))
            }
            _ => false,
        }
    }

    /// Whether programs were not ready in time, which may be otherwise later.
    pub(crate) fn is_not_ready(&self) -> bool {
        matches!(self, Self::Programs(error) if error.kind() == io::ErrorKind::TimedOut)
    }

    /// Whether another attempt may succeed: programs were not ready in time, or the history could
    /// not be written.
    pub(crate) fn may_pass(&self) -> bool {
        self.is_not_ready() || matches!(self, Self::History(_))
    }

    pub(crate) fn goes_on(figures: &RunFigures) -> Self {
        Self::GoesOn(figures.run.id, figures.run.job.clone())
    }
}

impl From<pbs_history::Error> for Error {
    fn from(error: pbs_history::Error) -> Self {
        Self::History(error)
    }
}

/// Error number of a call that a device does not know (`ENOTTY`).
const NO_SUCH_CALL: i32 = 25;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(file, error) => write!(f, "{file}: {error}"),
            Self::Device(device, error) => {
                let hint = match error.kind() {
                    ErrorKind::NotFound => {
                        "; this kernel has no SCHED_PBS; boot one built with CONFIG_SCHED_CLASS_PBS"
                    }
                    ErrorKind::PermissionDenied => {
                        "; run pbsctl as root, or get access to the device"
                    }
                    ErrorKind::ResourceBusy => {
                        "; another process uses it; end that process and try again"
                    }
                    _ if error.raw_os_error() == Some(NO_SUCH_CALL) => {
                        "; this is not the device of SCHED_PBS; name another with --device"
                    }
                    _ => "",
                };
                write!(f, "{}: {error}{hint}", device.display())
            }
            Self::Refused(what, refused) => write!(f, "{what}: {refused}"),
            Self::Invalid { file, problems } => {
                let lines = problems.iter().map(|p| p.in_file(file).to_string());
                f.write_str(&lines.collect::<Vec<_>>().join("\n"))
            }
            Self::Declined(declined) => declined.fmt(f),
            Self::SeveralNodes(nodes) => write!(
                f,
                "the machine has {nodes} nodes, and jobs run on one; name a machine file with this \
                 node only"
            ),
            Self::NoRate(why) => write!(
                f,
                "the rate of this node is unknown ({why}); name the machine to plan for with \
                 --machine FILE"
            ),
            Self::Programs(error) => write!(f, "programs of the plan: {error}"),
            Self::NoRoom => f.write_str(
                "it waits for programs of other jobs: the node can start no more at once",
            ),
            Self::Stuck => f.write_str(
                "it waits for earlier programs of its user: they were killed, and wait in the kernel \
                 for a file system that does not answer",
            ),
            Self::GroupInUse(group) => write!(
                f,
                "it waits for processes in the control group {group} that an earlier service has \
                 left: they were killed and have not ended"
            ),
            Self::ManyPrograms(file, programs, most) => write!(
                f,
                "{file}: these are {programs} programs, and a job may have {most} processes \
                 (--job-pids); make several jobs of it"
            ),
            Self::OtherUser { uid, was, is } => write!(
                f,
                "user {uid} was {was} when the job was submitted, and is {} now; submit it again",
                is.as_deref().unwrap_or("nobody")
            ),
            Self::NoJobs => f.write_str("this node runs no jobs: it has no history"),
            Self::NothingToRun => f.write_str(
                "no task of the jobs has instructions, and there is \
                                               nothing to run; add insns to their tasks",
            ),
            Self::NothingWaits => {
                f.write_str("no job waits; submit one with pbsctl job submit, or name its file")
            }
            Self::NothingLeft => {
                f.write_str("there is no run to take over; pbsctl job history lists earlier runs")
            }
            Self::NothingSeen => f.write_str(
                "the kernel holds no event of a plan coming into force; load a plan, or wait for \
                 one with --follow",
            ),
            Self::GoesOn(run, job) => write!(
                f,
                "run {run} of job {job} continues without a planner; take it over with pbsctl run \
                 --resume, or drop its plan with pbsctl plan drop"
            ),
            Self::UnreadableOrder(run, job) => write!(
                f,
                "run {run} of job {job}: the record of its order cannot be read; its user is \
                 unknown, therefore it does not run"
            ),
            Self::NotTheOwner(run, job) => write!(
                f,
                "run {run} of job {job} is another user's; only its owner can change what it \
                 runs. Cancel it and submit another"
            ),
            Self::DoesNotRun(run) => {
                write!(f, "job {run} has no programs now; only those of running jobs are notified")
            }
            Self::DoesNotWait(run, job) => {
                write!(
                    f,
                    "run {run} of job {job} is not waiting; pbsctl job list --state waiting \
                           lists the waiting runs"
                )
            }
            Self::NoResource(name, has) if has.is_empty() => write!(
                f,
                "there is no resource {name}, as the machine has none; declare it as a \
                 [[resource]] in the machine's file"
            ),
            Self::NoResource(name, has) => {
                write!(f, "there is no resource {name}; name one of {}", has.join(", "))
            }
            Self::Amount(name, amount) => write!(
                f,
                "resource {name} can't have the amount {}; write at most {}",
                underscored(*amount),
                underscored(MAX_AMOUNT)
            ),
            Self::NoCheckpoint(run, job) => write!(
                f,
                "job {run} ({job}) cannot be asked to save itself: its file has no checkpoint; \
                 write checkpoint = {{ signal = \"USR1\", within_ns = \"2s\" }} there"
            ),
            Self::IsOver(run, job) => write!(f, "run {run} of job {job} has ended"),
            Self::History(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {}

impl fmt::Display for Declined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: job {} is declined: {}; ", self.file, self.job, self.why)?;
        match self.earliest_deadline_ns {
            Some(ns) => {
                let (written, span) = (underscored(ns), span(ns));
                write!(
                    f,
                    "it would be admitted with deadline_ns = {written} ({span}), or with \
                     --best-effort, which promises nothing"
                )
            }
            None => f.write_str("no deadline was found that would do"),
        }
    }
}
