// SPDX-License-Identifier: GPL-2.0
//! Expected run times of requests, learned from those that have ended.
//!
//! Only a service learns. The limit of a request stays booked, and ends it: an expected run time
//! only decides what its wait costs in the search for a better plan.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

use pbs_cluster_planner::run_times::{application, ErrorSums, Estimator, Expect, JobKind};
use pbs_cluster_planner::RequestId;
use pbs_resources::Rset;
use pbs_site::User;

use crate::engine::{Engine, COMPLETED};
use crate::error::Error;
use crate::ledger::{Page, Row, State};
use crate::manager::Manager;
use crate::outcome::ABORTED;

/// Size of the parts in which the history is read: other calls wait for one of them.
const PART: Page = Page { rows: 100, bytes: 1 << 20 };
/// Number of ended requests from which the service learns at a time.
const PIECE: usize = 16;
/// Number of ended requests from which run times are learned when a ledger is opened: those that
/// ended last.
const MOST_LEARNED: usize = 100_000;
/// Parts of a request's limit. The search weighs no wait as if the request ran for less than one of
/// them: otherwise many short requests of a user would put a long one before those of others.
const LIMIT_PARTS: u64 = 8;

/// Number of users whose errors are counted apart. Later users only count among all.
const MOST_USERS: usize = 10_000;

/// Run times that are learned from ended requests, and the errors of those that were expected.
#[derive(Debug)]
pub(crate) struct RunTimes {
    estimator: Estimator<User>,
    /// Errors of all users.
    all: UserErrors,
    errors: HashMap<User, UserErrors>,
}

/// Errors of the run times of requests that completed or reached their limit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct UserErrors {
    /// Errors of the limits, as if they were expected.
    pub limit: ErrorSums,
    /// Errors of the run times that were expected just before the end: the limit for the first
    /// request of a user.
    pub learned: ErrorSums,
}

impl UserErrors {
    fn add(&mut self, kind: &JobKind<User>, expected_s: u64, run_s: u64) {
        self.limit.add(kind.limit_s, run_s);
        self.learned.add(expected_s, run_s);
    }
}

impl RunTimes {
    fn learn(&mut self, kind: &JobKind<User>, run_s: u64) {
        let expected_s = self.estimator.expected_s(kind);
        self.all.add(kind, expected_s, run_s);
        if self.errors.len() < MOST_USERS || self.errors.contains_key(&kind.user) {
            self.errors.entry(kind.user.clone()).or_default().add(kind, expected_s, run_s);
        }
        self.estimator.ended(kind, run_s);
    }
}

/// Ended requests from which nothing was learned yet.
#[derive(Debug, Default)]
pub(crate) struct Unlearned {
    /// Number up to which the ledger was read; `None`: all of it was.
    above: Option<RequestId>,
    /// Ends and numbers of requests in the order in which they are learned from.
    ended: BTreeSet<(u64, RequestId)>,
}

impl Unlearned {
    fn add(&mut self, row: &Row) {
        if let (Some(end_s), Some(_)) = (row.end_s, ran(row)) {
            self.ended.insert((end_s, row.id));
            if self.ended.len() > MOST_LEARNED {
                self.ended.pop_first();
            }
        }
    }
}

/// Returns an ended request with its run time; `None`: it did not run until its end, or says
/// nothing of run times.
fn ran(row: &Row) -> Option<(JobKind<User>, u64)> {
    let is_typical = matches!(row.outcome.as_deref(), Some(COMPLETED | ABORTED));
    if row.state != State::Ended || row.is_reservation || !is_typical {
        return None;
    }
    let run_s = row.end_s?.checked_sub(row.ready_s.or(row.start_s)?)?;
    let rset: Rset = row.rset.parse().ok()?;
    let limit_s = row.first_duration_s.saturating_sub(row.allocate_s + row.release_s);
    let application = application(&row.name, row.command.first().map(String::as_str));
    Some((JobKind { user: row.owner(), application, cores: rset.total("ncpus"), limit_s }, run_s))
}

impl<E: Engine> Manager<E> {
    /// Learns run times from each request that ends from now on, and from the ended requests of the
    /// ledger, if the site wants it. The ledger is read by [`Self::learn_some`].
    pub fn learn(&mut self) {
        let learner = self.site.optimise.as_ref().and_then(|of| of.run_times);
        self.run_times = learner.map(|learner| RunTimes {
            estimator: Estimator::new(Expect::Learned(learner)),
            all: UserErrors::default(),
            errors: HashMap::new(),
        });
        self.unlearned = learner.map(|_| Unlearned { above: Some(0), ended: BTreeSet::new() });
    }

    /// Whether [`Self::learn_some`] has something to do.
    pub fn is_learning(&self) -> bool {
        self.unlearned.is_some()
    }

    /// Learns from some ended requests of the ledger, in the order of their ends. At last, a better
    /// plan is sought with what was learned.
    ///
    /// # Errors
    ///
    /// The error that the disk reports, or that a row is damaged. Nothing is learned from requests
    /// with higher numbers that had ended; others are learned from all the same.
    pub fn learn_some(&mut self) -> Result<(), Error> {
        let Some(unlearned) = &mut self.unlearned else {
            return Ok(());
        };
        if let Some(above) = unlearned.above.take() {
            let paged = self.journal.ledger().rows_above(above, PART)?;
            paged.rows.iter().for_each(|row| unlearned.add(row));
            let last = paged.rows.last().filter(|_| !paged.is_last);
            unlearned.above = last.map(|row| row.id);
            return Ok(());
        }
        for _ in 0..PIECE {
            let Some((_, id)) = unlearned.ended.pop_first() else {
                self.unlearned = None;
                self.better_plan.seek_again();
                return Ok(());
            };
            let row = self.journal.row(id)?;
            let learned = row.as_ref().and_then(ran);
            if let (Some(run_times), Some((kind, run_s))) = (&mut self.run_times, learned) {
                run_times.learn(&kind, run_s);
            }
        }
        Ok(())
    }

    /// Learns from a request that has ended: after those that have ended before.
    pub(crate) fn learn_from(&mut self, row: &Row) {
        if let Some(unlearned) = &mut self.unlearned {
            unlearned.add(row);
        } else if let (Some(run_times), Some((kind, run_s))) = (&mut self.run_times, ran(row)) {
            run_times.learn(&kind, run_s);
        }
    }

    /// Returns the errors of the run times of all users together; `None`: nothing is learned.
    pub fn run_time_errors(&self) -> Option<&UserErrors> {
        Some(&self.run_times.as_ref()?.all)
    }

    /// Returns the errors of the run times of a user's requests; `None`: none of them has ended.
    pub fn run_time_errors_of(&self, user: &User) -> Option<(&User, &UserErrors)> {
        self.run_times.as_ref()?.errors.get_key_value(user)
    }

    /// Returns the errors of run times by user, of so many users with the most requests.
    pub fn run_time_errors_by_user(&self, most: usize) -> Vec<(&User, &UserErrors)> {
        let errors = self.run_times.iter().flat_map(|of| &of.errors);
        let mut errors: Vec<_> = errors.collect();
        errors.sort_by_key(|(user, of)| (Reverse(of.limit.jobs()), &user.name, user.uid));
        errors.truncate(most);
        errors
    }

    /// Returns the expected run time of a request; `None`: nothing is known of its user's requests.
    pub(crate) fn expected_run_s(&self, id: RequestId) -> Option<u64> {
        self.expected_of_limit_s(id).map(|(expected_s, _)| expected_s)
    }

    /// Returns the run time by which the search for a better plan weighs the wait of a request: the
    /// expected one, but not less than a part of the limit.
    pub(crate) fn weighed_run_s(&self, id: RequestId) -> Option<u64> {
        let (expected_s, limit_s) = self.expected_of_limit_s(id)?;
        Some(expected_s.max(limit_s / LIMIT_PARTS))
    }

    /// Returns the expected run time of a request with its limit.
    fn expected_of_limit_s(&self, id: RequestId) -> Option<(u64, u64)> {
        let estimator = &self.run_times.as_ref()?.estimator;
        let record = self.records.get(&id)?;
        let user = &record.request.user;
        if record.is_reservation || !estimator.has_history(user) {
            return None;
        }
        let standing = self.planner_of(record.within)?.standing(id)?;
        let margin_s = record.allocate_s + record.release_s;
        let limit_s = standing.first_duration_s.saturating_sub(margin_s);
        let cores = record.request.rset.total("ncpus");
        let application = application(&record.name, record.command.first().map(String::as_str));
        let kind = JobKind { user: user.clone(), application, cores, limit_s };
        Some((estimator.expected_s(&kind), limit_s))
    }
}
