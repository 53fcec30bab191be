// SPDX-License-Identifier: GPL-2.0
//! The ledger, with the changes that are not in it yet.

use pbs_cluster_planner::RequestId;

use crate::error::Error;
use crate::ledger::{Changes, ClosedRow, DefectRow, Event, Ledger, NodeRow, Row, Total};

/// A ledger and what is to be written there.
#[derive(Debug)]
pub(crate) struct Journal {
    ledger: Ledger,
    changes: Changes,
    /// The clock and the next number that are in the file.
    written: (u64, RequestId),
}

impl Journal {
    /// Creates a journal without pending changes. The file has that clock and that next number.
    pub(crate) fn new(ledger: Ledger, clock_s: u64, next_id: RequestId) -> Self {
        Self { ledger, changes: Changes::default(), written: (clock_s, next_id) }
    }

    /// The ledger, to read.
    pub(crate) fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Lets other processes write ([`Ledger::let_others_write`]).
    pub(crate) fn let_others_write(&mut self) -> Result<bool, Error> {
        Ok(self.ledger.let_others_write()?)
    }

    /// Returns a request as it is noted or written.
    pub(crate) fn row(&self, id: RequestId) -> Result<Option<Row>, Error> {
        let noted = self.changes.rows.iter().rev().find(|row| row.id == id);
        match noted {
            Some(row) => Ok(Some(row.clone())),
            None => Ok(self.ledger.row(id)?),
        }
    }

    /// Returns the events of a request, written or noted.
    pub(crate) fn events_of(&self, id: RequestId) -> Result<Vec<Event>, Error> {
        let mut events = self.ledger.events_of(id)?;
        let noted = self.changes.events.iter().filter(|event| event.request == Some(id));
        events.extend(noted.cloned());
        Ok(events)
    }

    /// Notes an event.
    pub(crate) fn event(&mut self, event: Event) {
        self.changes.events.push(event);
    }

    /// Notes requests as they stand.
    pub(crate) fn rows(&mut self, rows: impl IntoIterator<Item = Row>) {
        self.changes.rows.extend(rows);
    }

    /// Notes a node that is out of use.
    pub(crate) fn node_out(&mut self, node: NodeRow) {
        self.changes.nodes_out.push(node);
    }

    /// Notes a node that is in use again.
    pub(crate) fn node_back(&mut self, name: &str) {
        self.changes.nodes_back.push(name.into());
    }

    /// Notes parts of a node that are out of use, or that the node is repaired.
    pub(crate) fn defect(&mut self, defect: DefectRow) {
        self.changes.defects.push(defect);
    }

    /// Notes the times in which a node is closed, or that it is open.
    pub(crate) fn closed(&mut self, closed: ClosedRow) {
        self.changes.closed.push(closed);
    }

    /// Notes ended requests that are forgotten, of which the last ended then, and the totals that
    /// have their usage from now on.
    pub(crate) fn forget(&mut self, ids: Vec<RequestId>, ended_s: Option<u64>, totals: Vec<Total>) {
        self.changes.forgotten = ids;
        self.changes.forgotten_end_s = ended_s;
        self.changes.totals = totals;
    }

    /// Writes all that was noted, with the clock and the next number. Returns the events.
    pub(crate) fn write(&mut self, clock_s: u64, next_id: RequestId) -> Result<Vec<Event>, Error> {
        self.changes.clock_s = clock_s;
        self.changes.next_id = next_id;
        let changes = std::mem::take(&mut self.changes);
        let numbers = (clock_s, next_id);
        if numbers == self.written && changes.is_empty() {
            return Ok(Vec::new());
        }
        self.ledger.write(&changes)?;
        self.written = numbers;
        Ok(changes.events)
    }
}
