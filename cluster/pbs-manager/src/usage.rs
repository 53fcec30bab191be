// SPDX-License-Identifier: GPL-2.0
//! What was asked for and used so far: accounting (Keller, 3), and his report by core
//! counts (6, example 3).

use std::collections::BTreeMap;

use crate::ledger::{Row, State};

use crate::engine::Engine;
use crate::error::Error;
use crate::manager::Manager;

/// What some requests had together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// How many there were.
    pub requests: u64,
    /// How many of them have ended after they had run.
    pub ran: u64,
    /// Cores times seconds that they had until now.
    pub core_s: u64,
    /// The same of those that have ended after they had run.
    pub ran_core_s: u64,
    /// And what those had asked for.
    pub asked_core_s: u64,
    /// From submission to start, of those that have started.
    pub wait_s: u64,
    /// How many have started.
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
    /// By user.
    pub users: BTreeMap<String, Usage>,
    /// By group.
    pub groups: BTreeMap<String, Usage>,
    /// By the number of cores.
    pub cores: BTreeMap<u64, Usage>,
    /// How many ended how; a node or a user that is named counts as one.
    pub outcomes: BTreeMap<String, u64>,
}

impl<E: Engine> Manager<E> {
    /// What was asked for and used until now. What is in a reservation counts, and the
    /// reservation does not.
    ///
    /// # Errors
    ///
    /// What the disk says.
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
