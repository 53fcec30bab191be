// SPDX-License-Identifier: GPL-2.0
//! What a batch system can be told, and what it tells.

use std::fmt;

use crate::steer::seen::{Key, World};

/// Something has happened: a hint to look. What it says of an end is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A job was submitted, altered, or has begun, or nodes are free: somebody should look.
    Look,
    /// Hints may have been lost, or the batch system was started anew: all has to be looked
    /// at again.
    Resync,
}

/// Why something was not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// There is no such job any more.
    Gone,
    /// It has begun already.
    Started,
    /// The batch system does not allow that; in its words.
    Denied(String),
    /// Not now; a moment later it will do.
    Later,
    /// It does not answer.
    Unreachable(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone => f.write_str("there is no such job any more"),
            Self::Started => f.write_str("it has begun already"),
            Self::Denied(why) => write!(f, "refused: {why}"),
            Self::Later => f.write_str("not now"),
            Self::Unreachable(why) => write!(f, "no answer: {why}"),
        }
    }
}

/// What became of a commitment that was taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Revoked {
    /// It is held, and does not start.
    Held,
    /// It was too late: it runs.
    AlreadyStarted,
}

/// Why a job is to be over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Its time is over, or it is not wanted any more.
    End,
    /// It runs where or when it should not: it is held again, to be started once more.
    Again,
}

/// A batch system. All calls may be repeated: what is so already is not done again. None
/// takes longer than it takes to be told that it is done.
pub trait Controller {
    /// Jobs and nodes as they are.
    ///
    /// # Errors
    ///
    /// [`Fault::Unreachable`].
    fn snapshot(&mut self) -> Result<World, Fault>;

    /// Nobody but an operator can let it go any more. It must not have begun.
    ///
    /// # Errors
    ///
    /// All of [`Fault`].
    fn hold(&mut self, job: Key) -> Result<(), Fault>;

    /// The same of several, each for itself.
    fn hold_all(&mut self, jobs: &[Key]) -> Vec<Result<(), Fault>> {
        jobs.iter().map(|&job| self.hold(job)).collect()
    }

    /// Tells its user when and where it is planned, or why it is not.
    ///
    /// # Errors
    ///
    /// All of [`Fault`].
    fn show(&mut self, job: Key, start_s: Option<u64>, why: &str) -> Result<(), Fault>;

    /// Lets it go: it starts then, on just these nodes; `None`: at once.
    ///
    /// # Errors
    ///
    /// All of [`Fault`].
    fn commit(&mut self, job: Key, nodes: &[String], start_s: Option<u64>) -> Result<(), Fault>;

    /// Holds it again.
    ///
    /// # Errors
    ///
    /// All of [`Fault`] but [`Fault::Started`].
    fn revoke(&mut self, job: Key) -> Result<Revoked, Fault>;

    /// Ends it, or has it wait again.
    ///
    /// # Errors
    ///
    /// All of [`Fault`].
    fn stop(&mut self, job: Key, why: Stop) -> Result<(), Fault>;

    /// It may run for so long.
    ///
    /// # Errors
    ///
    /// All of [`Fault`].
    fn limit(&mut self, job: Key, limit_s: u64) -> Result<(), Fault>;

    /// Tells its user something.
    ///
    /// # Errors
    ///
    /// All of [`Fault`].
    fn notify(&mut self, job: Key, text: &str) -> Result<(), Fault>;

    /// What has happened since it was asked last.
    fn events(&mut self) -> Vec<Event>;
}
