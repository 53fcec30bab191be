// SPDX-License-Identifier: GPL-2.0
//! Expected run times of requests, learned from those that have ended.
//!
//! Only a service learns. The limit of a request stays booked, and ends it: an expected run time
//! only decides what its wait costs in the search for a better plan.

use std::collections::BTreeSet;

use pbs_cluster_planner::run_times::{Estimator, Expect, JobKind};
use pbs_cluster_planner::RequestId;
use pbs_resources::Rset;
use pbs_site::User;

use crate::engine::{Engine, COMPLETED};
use crate::error::Error;
use crate::ledger::{Page, Row, State};
use crate::manager::Manager;
use crate::outcome::ABORTED;

/// Size of the parts in which the history is read.
const PART: Page = Page { rows: 1_000, bytes: 16 << 20 };
/// Number of ended requests from which run times are learned when a ledger is opened: those that
/// ended last.
const MOST_LEARNED: usize = 100_000;

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
    Some((JobKind { user: row.owner(), cores: rset.total("ncpus"), limit_s }, run_s))
}

impl<E: Engine> Manager<E> {
    /// Learns run times from the ended requests of the ledger, and from now on from each that ends,
    /// if the site wants it.
    ///
    /// # Errors
    ///
    /// The error that the disk reports, or that a row is damaged. Requests that end later are learned
    /// from all the same.
    pub fn learn(&mut self) -> Result<(), Error> {
        let Some(learner) = self.site.optimise.as_ref().and_then(|of| of.run_times) else {
            self.run_times = None;
            return Ok(());
        };
        self.run_times = Some(Estimator::new(Expect::Learned(learner)));
        // In the order of their ends, as they are learned later.
        let mut ended: BTreeSet<(u64, RequestId)> = BTreeSet::new();
        self.each_row(|row| {
            if let (Some(end_s), Some(_)) = (row.end_s, ran(row)) {
                ended.insert((end_s, row.id));
                if ended.len() > MOST_LEARNED {
                    ended.pop_first();
                }
            }
        })?;
        for (_, id) in ended {
            if let Some(row) = self.journal.row(id)? {
                self.learn_from(&row);
            }
        }
        Ok(())
    }

    fn each_row(&self, mut of: impl FnMut(&Row)) -> Result<(), Error> {
        let mut above = 0;
        loop {
            let paged = self.journal.ledger().rows_above(above, PART)?;
            paged.rows.iter().for_each(&mut of);
            match paged.rows.last() {
                Some(last) if !paged.is_last => above = last.id,
                _ => return Ok(()),
            }
        }
    }

    /// Learns from a request that has ended.
    pub(crate) fn learn_from(&mut self, row: &Row) {
        if let (Some(estimator), Some((kind, run_s))) = (&mut self.run_times, ran(row)) {
            estimator.ended(&kind, run_s);
        }
    }

    /// Returns the expected run time of a request; `None`: nothing is known of its user's requests.
    pub(crate) fn expected_run_s(&self, id: RequestId) -> Option<u64> {
        let (estimator, record) = (self.run_times.as_ref()?, self.records.get(&id)?);
        let user = &record.request.user;
        if record.is_reservation || !estimator.has_history(user) {
            return None;
        }
        let standing = self.planner_of(record.within)?.standing(id)?;
        let margin_s = record.allocate_s + record.release_s;
        let limit_s = standing.first_duration_s.saturating_sub(margin_s);
        let cores = record.request.rset.total("ncpus");
        Some(estimator.expected_s(&JobKind { user: user.clone(), cores, limit_s }))
    }
}
