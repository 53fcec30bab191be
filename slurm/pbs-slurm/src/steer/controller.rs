// SPDX-License-Identifier: GPL-2.0
//! Interface of a batch system: orders to it, and events from it.

use std::fmt;

use crate::steer::seen::{Key, World};

/// Longest text that users are shown; a longer one is cut.
pub(crate) const TOLD_CHARS: usize = 300;

/// Hint that the batch system has changed. The outcome of a job in it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A job was submitted, altered, or has begun, or nodes are free: a check is due.
    Look,
    /// Hints may have been lost, or the batch system was restarted: everything must be checked
    /// again.
    Resync,
}

/// Reason why an order was not carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The job does not exist any more.
    Gone,
    /// The job has begun already.
    Started,
    /// The batch system does not allow that; in its words.
    Denied(String),
    /// The job can never start as it is; in the batch system's words.
    Never(String),
    /// Not now; a moment later it will do.
    Later,
    /// The batch system does not answer.
    Unreachable(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone => f.write_str("the job no longer exists"),
            Self::Started => f.write_str("the job has already started"),
            Self::Denied(why) => write!(f, "refused: {why}"),
            Self::Never(why) => write!(f, "it can't start: {why}"),
            Self::Later => f.write_str("not now"),
            Self::Unreachable(why) => write!(f, "no answer: {why}"),
        }
    }
}

/// Outcome of a revoked commitment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Revoked {
    /// The job is held, and does not start.
    Held,
    /// The revocation was too late: the job runs.
    AlreadyStarted,
}

/// Kind of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderKind {
    /// [`Controller::hold`].
    Hold,
    /// [`Controller::show`].
    Show,
    /// [`Controller::explain`].
    Explain,
    /// [`Controller::commit`].
    Commit,
    /// [`Controller::revoke`].
    Revoke,
    /// [`Controller::stop`].
    Stop,
    /// [`Controller::limit`].
    Limit,
    /// [`Controller::comment`].
    Comment,
    /// [`Controller::notify`].
    Notify,
    /// [`Controller::leave`].
    Leave,
}

impl fmt::Display for OrderKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Hold | Self::Revoke => "hold",
            Self::Show => "show",
            Self::Explain => "explain",
            Self::Commit => "commit",
            Self::Stop => "stop",
            Self::Limit => "limit",
            Self::Comment => "comment",
            Self::Notify => "notify",
            Self::Leave => "release into its reservation",
        })
    }
}

/// Order that was accepted, and could not be carried out later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// Job of the order.
    pub job: Key,
    /// Kind of the order.
    pub kind: OrderKind,
    /// Reason.
    pub why: Fault,
    /// Whether no later order was given for the job.
    pub is_last: bool,
}

/// Place and time with which a job is let go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Commitment {
    /// Nodes on which the job starts, and on no others.
    pub nodes: Vec<String>,
    /// Start of the job; `None`: at once.
    pub start_s: Option<u64>,
    /// Longest run time; `None`: as its user wants.
    pub limit_s: Option<u64>,
    /// Least number of cores that each node gives the job; `None`: as the batch system wants.
    pub least_cpus: Option<u64>,
    /// Text that its user is shown.
    pub told: String,
}

/// Terms on which a job is left to the batch system.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Leaving {
    /// Reservations of the job, as the last look has them.
    pub reservation: String,
    /// Earliest start that its user wants; `None`: at once.
    pub begin_s: Option<u64>,
    /// Text that its user is shown.
    pub told: String,
}

/// A batch system. All calls may be repeated: an order that is fulfilled already has no effect.
/// None takes longer than the confirmation that it is done.
///
/// A controller may also accept orders and carry them out later, in their sequence. A call whose
/// answer is not known yet then returns [`Fault::Later`], and is repeated.
pub trait Controller {
    /// Jobs and nodes as they are.
    ///
    /// # Errors
    ///
    /// [`Fault::Unreachable`], and [`Fault::Later`] while the look is under way.
    fn snapshot(&mut self) -> Result<World, Fault>;

    /// Holds a job that has not begun: only an operator can let it go.
    ///
    /// # Errors
    ///
    /// All of [`Fault`].
    fn hold(&mut self, job: Key) -> Result<(), Fault>;

    /// Holds several jobs, each for itself.
    fn hold_all(&mut self, jobs: &[Key]) -> Vec<Result<(), Fault>> {
        jobs.iter().map(|&job| self.hold(job)).collect()
    }

    /// Shows the user of a job when and where it is planned, or why it is not. Without a start, the
    /// one that was shown before is cleared.
    ///
    /// # Errors
    ///
    /// All of [`Fault`].
    fn show(&mut self, job: Key, start_s: Option<u64>, why: &str) -> Result<(), Fault>;

    /// Shows the user of a job why it is not planned. The start that is shown stays: nobody knows
    /// which one its user wants.
    ///
    /// # Errors
    ///
    /// All of [`Fault`].
    fn explain(&mut self, job: Key, why: &str) -> Result<(), Fault>;

    /// Lets a job go: it starts as the commitment says. A limit that its user has changed in the
    /// meantime is not valid.
    ///
    /// # Errors
    ///
    /// All of [`Fault`].
    fn commit(&mut self, job: Key, of: &Commitment) -> Result<(), Fault>;

    /// Leaves a held job to the batch system, which starts it in its reservation when it can. The
    /// nodes of a commitment are cleared. A job that is in another reservation by now stays held.
    ///
    /// # Errors
    ///
    /// All of [`Fault`].
    fn leave(&mut self, job: Key, of: &Leaving) -> Result<(), Fault>;

    /// Holds a job again.
    ///
    /// # Errors
    ///
    /// All of [`Fault`] but [`Fault::Started`].
    fn revoke(&mut self, job: Key) -> Result<Revoked, Fault>;

    /// Ends a job whose limit is over, or that a user or an operator ended in the planner; its user
    /// is shown why.
    ///
    /// # Errors
    ///
    /// All of [`Fault`].
    fn stop(&mut self, job: Key, why: &str) -> Result<(), Fault>;

    /// Sets the longest run time of a job.
    ///
    /// # Errors
    ///
    /// All of [`Fault`].
    fn limit(&mut self, job: Key, limit_s: u64) -> Result<(), Fault>;

    /// Sets the comment of a job, in which holds of users and operators are written down.
    ///
    /// # Errors
    ///
    /// All of [`Fault`].
    fn comment(&mut self, job: Key, text: &str) -> Result<(), Fault>;

    /// Sends a message to the user of a job.
    ///
    /// # Errors
    ///
    /// All of [`Fault`].
    fn notify(&mut self, job: Key, text: &str) -> Result<(), Fault>;

    /// Returns the events since the last call.
    fn events(&mut self) -> Vec<Event>;

    /// Whether an order for that job was accepted that the last snapshot does not show yet. Such a
    /// snapshot says nothing about the job.
    fn is_ahead(&self, job: Key) -> bool {
        let _ = job;
        false
    }

    /// Whether users may be told of plans now: few orders wait.
    fn has_room(&self) -> bool {
        true
    }

    /// Whether the next [`Self::revoke`] of that job returns the answer to an earlier call.
    fn is_answered(&self, job: Key) -> bool {
        let _ = job;
        false
    }

    /// Returns the orders that were accepted and have failed since the last call.
    fn failed(&mut self) -> Vec<Failed> {
        Vec::new()
    }
}
