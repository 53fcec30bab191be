// SPDX-License-Identifier: GPL-2.0
//! Ended requests that are forgotten, and what is kept of them: their part of the usage.

use pbs_cluster_planner::RequestId;

use crate::engine::Engine;
use crate::error::Error;
use crate::ledger::Row;
use crate::manager::Manager;
use crate::usage::Usages;

/// Maximum number of requests that one write to the ledger forgets.
pub(crate) const MOST_FORGOTTEN: usize = 256;

impl<E: Engine> Manager<E> {
    /// Forgets the requests that ended first, as far as the site keeps fewer of them or none that
    /// old. At most [`MOST_FORGOTTEN`] of them: the others follow with the next writes.
    pub(crate) fn forget(&mut self) -> Result<(), Error> {
        let ledger = self.journal.ledger();
        let most = self.site.keep_ended_requests;
        let surplus = ledger.ended_count().saturating_sub(most);
        let before_s = self.clock_s.saturating_sub(self.site.keep_ended_s);
        if surplus == 0 && ledger.first_end_s()?.is_none_or(|end_s| end_s >= before_s) {
            return Ok(());
        }
        let rows = ledger.first_ended(MOST_FORGOTTEN)?;
        let is_over = |(place, row): &(usize, Row)| {
            let is_old = row.end_s.is_none_or(|end_s| end_s < before_s);
            is_old || (*place as u64) < surplus
        };
        let rows = rows.into_iter().enumerate().take_while(is_over).map(|(_, row)| row);
        let rows: Vec<Row> = rows.filter(|row| !self.records.is_referred(row.id)).collect();
        let mut usages = Usages::default();
        for row in &rows {
            usages.add(row, self.clock_s);
        }
        let ended_s = rows.iter().filter_map(|row| row.end_s).max();
        let totals = self.forgotten.merge(&usages);
        self.journal.forget(rows.iter().map(|row| row.id).collect(), ended_s, totals);
        Ok(())
    }

    /// The error for a request that is not in the ledger.
    pub(crate) fn no_request(&self, id: RequestId) -> Error {
        let before_s = self.journal.ledger().forgotten_before_s();
        match before_s.filter(|_| (1..self.planner.next_id()).contains(&id)) {
            Some(before_s) => Error::Forgotten(id, before_s),
            None => Error::NoRequest(id),
        }
    }
}
