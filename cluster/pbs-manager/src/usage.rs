// SPDX-License-Identifier: GPL-2.0
//! Requested and used amounts up to now: accounting (Keller, 3), and his report by core counts (6,
//! example 3).

use std::collections::BTreeMap;

use crate::ledger::{Row, State};

use crate::engine::Engine;
use crate::error::Error;
use crate::manager::Manager;

/// Total usage of some requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Number of requests.
    pub requests: u64,
    /// Number of requests that ran and have ended.
    pub ran: u64,
    /// Cores times seconds that they had until now.
    pub core_s: u64,
    /// Cores times seconds of the requests that ran and have ended.
    pub ran_core_s: u64,
    /// Cores times seconds that the requests that ran and have ended had requested.
    pub asked_core_s: u64,
    /// From submission to start, of those that have started.
    pub wait_s: u64,
    /// Number of requests that have started.
    pub started: u64,
}

impl Usage {
    fn add(&mut self, row: &Row, clock_s: u64) {
        self.requests += 1;
        let has_run = matches!(row.state, State::Running | State::Ended);
        let Some(start_s) = row.start_s.filter(|_| has_run) else {
            return;
        };
        let until_s = row.end_s.unwrap_or(clock_s).min(clock_s);
        self.started += 1;
        self.wait_s += start_s.saturating_sub(row.submit_s);
        let core_s = row.cores.saturating_mul(until_s.saturating_sub(start_s));
        self.core_s += core_s;
        if row.state == State::Ended {
            self.ran += 1;
            self.ran_core_s += core_s;
            self.asked_core_s += row.cores.saturating_mul(row.duration_s);
        }
    }
}

/// All requests that there ever were, sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usages {
    /// All together.
    pub all: Usage,
    /// Usage by user.
    pub users: BTreeMap<String, Usage>,
    /// Usage by group.
    pub groups: BTreeMap<String, Usage>,
    /// Usage by number of cores.
    pub cores: BTreeMap<u64, Usage>,
    /// Number of requests by outcome; outcomes that differ only in the named node or user count as
    /// one.
    pub outcomes: BTreeMap<String, u64>,
}

impl<E: Engine> Manager<E> {
    /// Returns requested and used amounts up to now. Requests inside a reservation count, and the
    /// reservation itself does not.
    ///
    /// # Errors
    ///
    /// The error that the disk reports.
    pub fn usage(&self) -> Result<Usages, Error> {
        let mut usages = Usages::default();
        let rows = self.rows()?;
        for row in rows.iter().filter(|row| !row.is_reservation) {
            let users = usages.users.entry(row.user.clone()).or_default();
            let groups = usages.groups.entry(row.group.clone()).or_default();
            let cores = usages.cores.entry(row.cores).or_default();
            for usage in [&mut usages.all, users, groups, cores] {
                usage.add(row, self.clock_s());
            }
            if let Some(outcome) = &row.outcome {
                let kind = match outcome.split(' ').next() {
                    Some("killed") => "killed",
                    Some("node") => "node failed",
                    _ => outcome,
                };
                *usages.outcomes.entry(kind.into()).or_default() += 1;
            }
        }
        Ok(usages)
    }
}
