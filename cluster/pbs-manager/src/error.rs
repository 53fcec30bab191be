// SPDX-License-Identifier: GPL-2.0
//! Errors of operations.

use std::fmt;

use pbs_cluster_planner::{Refusal, RequestId};
use pbs_site::{format_time, Site};

/// Reason for which an operation was refused, or failed. Nothing has changed then, except for
/// [`Error::Ledger`]: the memory is ahead of the file, and the manager must be opened again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The planner declines.
    Declined(Refusal),
    /// The request does not exist, or it has ended.
    NoRequest(RequestId),
    /// The request has ended and was forgotten; so were all that ended before that time.
    Forgotten(RequestId, u64),
    /// The node does not exist.
    NoNode(String),
    /// The request belongs to another user, or the operation is reserved for operators.
    NotPermitted(String),
    /// The operation makes no sense for that request; the text advises what to do.
    Wrong(String),
    /// The site in the ledger can't be read; the first problem.
    Site(String),
    /// The file.
    Ledger(crate::ledger::Error),
}

impl Error {
    /// Describes the error, with times in the time zone of the site.
    pub fn describe(&self, site: &Site) -> String {
        match self {
            Self::Declined(why) => why.describe(site),
            Self::Forgotten(id, before_s) => {
                forgotten(*id, &format_time(*before_s, &site.time_zone))
            }
            other => other.to_string(),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Declined(why) => why.fmt(f),
            Self::NoRequest(id) => write!(f, "there is no request {id}, or it has ended; pbsctl cluster info --all lists all requests"),
            Self::Forgotten(id, before_s) => f.write_str(&forgotten(*id, &format!("@{before_s}"))),
            Self::NoNode(name) => write!(f, "there is no node {name}; the site file has the names"),
            Self::NotPermitted(what) => write!(f, "not permitted: {what}"),
            Self::Wrong(what) => f.write_str(what),
            Self::Site(what) => write!(f, "the site of the ledger: {what}"),
            Self::Ledger(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {}

fn forgotten(id: RequestId, before: &str) -> String {
    format!(
        "request {id} was forgotten, as were others that ended before {before} (keep_ended and \
         keep_ended_requests of the site); its usage is still in pbsctl cluster stat"
    )
}

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
