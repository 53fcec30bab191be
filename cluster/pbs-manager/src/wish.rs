// SPDX-License-Identifier: GPL-2.0
//! Submissions of callers.

use pbs_cluster_planner::{RequestId, Throttle, When};
use pbs_resources::Rset;
use pbs_site::{Promise, User};

use crate::ledger::After;
use crate::record::Parts;
use crate::Error;

/// Caller of an operation. Its identity is derived from the socket or from write access to the
/// file, never from the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The user.
    pub user: User,
    /// Whether it may do what operators do.
    pub is_operator: bool,
}

impl Caller {
    /// Permission for what concerns the whole cluster: `what` completes "not permitted: ".
    ///
    /// # Errors
    ///
    /// [`Error::NotPermitted`] for everyone who is not an operator.
    pub fn as_operator(&self, what: &str) -> Result<(), Error> {
        if self.is_operator {
            Ok(())
        } else {
            Err(Error::NotPermitted(format!("{what}; operators may")))
        }
    }
}

/// Submission of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wish {
    /// Resources and place.
    pub rset: Rset,
    /// Maximum duration; 0: the site's default.
    pub duration_s: u64,
    /// Desired time.
    pub when: When,
    /// User who will own the request.
    pub user: User,
    /// Group whose account is charged.
    pub group: String,
    /// Name of the request.
    pub name: String,
    /// Command with its arguments.
    pub command: Vec<String>,
    /// Actual run time of a simulated request; the maximum duration by default.
    pub run_s: Option<u64>,
    /// Minimum time between the notification of the user and the request's end (Keller, 5.4).
    pub notify_s: Option<u64>,
    /// Signal by which programs are notified then: HUP, INT, TERM, USR1 or USR2.
    pub notify_signal: Option<String>,
    /// Whether it may be started again where its node fails (Keller, 5).
    pub is_restartable: bool,
    /// Indices of an array, with one request for each.
    pub array: Option<Vec<u64>>,
    /// Set of requests of which only some run at the same time; `None`: the request is in none.
    pub throttle: Option<Throttle>,
    /// Reservation in which the request runs.
    pub within: Option<RequestId>,
    /// Requests that must end before this one starts, with the required outcomes.
    pub after: Vec<After>,
    /// Promise to the user; `None`: the first one of the site.
    pub promise: Option<Promise>,
}

impl Wish {
    /// Best effort of a user, for as long as the site takes for it.
    pub fn new(rset: Rset, user: impl Into<User>, group: &str) -> Self {
        Self {
            rset,
            duration_s: 0,
            when: When::BestEffort,
            user: user.into(),
            group: group.into(),
            name: String::new(),
            command: Vec::new(),
            run_s: None,
            notify_s: None,
            notify_signal: None,
            is_restartable: false,
            array: None,
            throttle: None,
            within: None,
            after: Vec::new(),
            promise: None,
        }
    }
}

impl Wish {
    /// Returns the parts on which the memory of each request of it depends.
    pub(crate) fn parts(&self, is_reservation: bool) -> Parts<'_> {
        Parts {
            rset: &self.rset,
            texts: [&self.name, &self.user.name, &self.group],
            command: &self.command,
            after: &self.after,
            is_reservation,
            set_bytes: self.throttle.as_ref().map_or(0, |of| of.set.len()),
        }
    }
}

/// Alterations of a request; `None` leaves a value unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// Resources and place.
    pub rset: Option<Rset>,
    /// Maximum duration.
    pub duration_s: Option<u64>,
    /// Desired time.
    pub when: Option<When>,
    /// Set of requests to which it belongs, and number of them that may run at the same time. A
    /// limit is valid for the whole set as soon as one of its requests has it.
    pub throttle: Option<Throttle>,
}
