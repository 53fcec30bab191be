// SPDX-License-Identifier: GPL-2.0
//! Why something was not done.

use std::fmt;

use pbs_cluster_planner::{Refusal, RequestId};

/// Why an operation was refused, or failed. Nothing is changed then, but for
/// [`Error::Ledger`]: what is in memory is ahead of the file, and the manager has to be
/// opened again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The planner declines.
    Declined(Refusal),
    /// There is no such request that has not ended.
    NoRequest(RequestId),
    /// There is no such node.
    NoNode(String),
    /// It is somebody else's, or only operators may.
    NotPermitted(String),
    /// What is asked makes no sense for that request; what to do.
    Wrong(String),
    /// The site in the ledger can't be read; the first problem.
    Site(String),
    /// The file.
    Ledger(crate::ledger::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Declined(why) => why.fmt(f),
            Self::NoRequest(id) => write!(f, "there is no request {id}, or it has ended"),
            Self::NoNode(name) => write!(f, "there is no node {name}"),
            Self::NotPermitted(what) => write!(f, "you may not: {what}"),
            Self::Wrong(what) => f.write_str(what),
            Self::Site(what) => write!(f, "the site of the ledger: {what}"),
            Self::Ledger(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {}

impl From<Refusal> for Error {
    fn from(why: Refusal) -> Self {
        Self::Declined(why)
    }
}

impl From<crate::ledger::Error> for Error {
    fn from(error: crate::ledger::Error) -> Self {
        Self::Ledger(error)
    }
}
