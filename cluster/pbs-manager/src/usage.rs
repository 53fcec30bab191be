// SPDX-License-Identifier: GPL-2.0
//! Requested and used amounts up to now: accounting (Keller, 3), and his report by core counts (6,
//! example 3).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::ledger::{Row, State, Total};

use crate::engine::Engine;
use crate::error::Error;
use crate::manager::Manager;
use crate::outcome::without_reason;

/// Total usage of some requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
    fn merge(&mut self, other: &Self) {
        self.requests = self.requests.saturating_add(other.requests);
        self.ran = self.ran.saturating_add(other.ran);
        self.core_s = self.core_s.saturating_add(other.core_s);
        self.ran_core_s = self.ran_core_s.saturating_add(other.ran_core_s);
        self.asked_core_s = self.asked_core_s.saturating_add(other.asked_core_s);
        self.wait_s = self.wait_s.saturating_add(other.wait_s);
        self.started = self.started.saturating_add(other.started);
    }

    fn add(&mut self, row: &Row, clock_s: u64) {
        self.requests += 1;
        let has_run = matches!(row.state, State::Running | State::Ended);
        let Some(start_s) = row.start_s.filter(|_| has_run) else {
            return;
        };
        let until_s = row.end_s.unwrap_or(clock_s).min(clock_s);
        self.started += 1;
        let wait_s = start_s.saturating_sub(row.submit_s);
        self.wait_s = self.wait_s.saturating_add(wait_s);
        let core_s = row.cores.saturating_mul(until_s.saturating_sub(start_s));
        self.core_s = self.core_s.saturating_add(core_s);
        if row.state == State::Ended {
            self.ran += 1;
            self.ran_core_s = self.ran_core_s.saturating_add(core_s);
            let asked_core_s = row.cores.saturating_mul(row.duration_s);
            self.asked_core_s = self.asked_core_s.saturating_add(asked_core_s);
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
        let mut usages = self.forgotten.clone();
        for row in &self.rows()? {
            usages.add(row, self.clock_s());
        }
        Ok(usages)
    }
}

/// Largest number of different outcomes of forgotten requests. The others count as one.
const MOST_OUTCOMES: usize = 1000;
/// Largest number of users, and of groups, of forgotten requests. The others count as one.
const MOST_NAMES: usize = 10_000;
const OTHER: &str = "other";

impl Usages {
    /// Adds a request. Reservations are not counted: the requests inside them are.
    pub(crate) fn add(&mut self, row: &Row, clock_s: u64) {
        if row.is_reservation {
            return;
        }
        let users = self.users.entry(row.user.clone()).or_default();
        let groups = self.groups.entry(row.group.clone()).or_default();
        let cores = self.cores.entry(row.cores).or_default();
        for usage in [&mut self.all, users, groups, cores] {
            usage.add(row, clock_s);
        }
        if let Some(outcome) = &row.outcome {
            let outcome = without_reason(outcome);
            let kind = match outcome.split(' ').next() {
                Some("killed") => "killed",
                Some("node") => "node failed",
                _ => outcome,
            };
            *self.outcomes.entry(kind.into()).or_default() += 1;
        }
    }

    /// Adds the usage of forgotten requests. Returns the totals that have changed.
    pub(crate) fn merge(&mut self, other: &Self) -> Vec<Total> {
        let mut totals = Vec::new();
        self.all.merge(&other.all);
        totals.push(Total::new(ALL, "", &self.all));
        for (kind, of, more) in
            [(USER, &mut self.users, &other.users), (GROUP, &mut self.groups, &other.groups)]
        {
            for (name, usage) in more {
                // Where a site lists no groups, anybody may invent some.
                let has_room = of.contains_key(name) || of.len() < MOST_NAMES;
                let name = if has_room { name } else { OTHER };
                let total = of.entry(name.into()).or_default();
                total.merge(usage);
                totals.push(Total::new(kind, name, total));
            }
        }
        for (&cores, usage) in &other.cores {
            let total = self.cores.entry(cores).or_default();
            total.merge(usage);
            totals.push(Total::new(CORES, &cores.to_string(), total));
        }
        for (outcome, count) in &other.outcomes {
            let is_known = self.outcomes.contains_key(outcome);
            let has_room = is_known || self.outcomes.len() < MOST_OUTCOMES;
            let outcome = if has_room { outcome } else { OTHER };
            let total = self.outcomes.entry(outcome.into()).or_default();
            *total += count;
            totals.push(Total::new(OUTCOME, outcome, total));
        }
        totals
    }

    /// Restores the usage of forgotten requests from the totals in a ledger; `None`: one of them
    /// can't be read.
    pub(crate) fn of_totals(totals: &[Total]) -> Option<Self> {
        let mut usages = Self::default();
        for total in totals {
            match total.kind.as_str() {
                ALL => usages.all = total.value()?,
                USER => drop(usages.users.insert(total.name.clone(), total.value()?)),
                GROUP => drop(usages.groups.insert(total.name.clone(), total.value()?)),
                CORES => drop(usages.cores.insert(total.name.parse().ok()?, total.value()?)),
                OUTCOME => drop(usages.outcomes.insert(total.name.clone(), total.value()?)),
                _ => return None,
            }
        }
        Some(usages)
    }
}

const ALL: &str = "all";
const USER: &str = "user";
const GROUP: &str = "group";
const CORES: &str = "cores";
const OUTCOME: &str = "outcome";

#[cfg(test)]
mod tests {
    use super::*;

    /// Names above the largest number of them count as one.
    #[test]
    fn names_have_a_maximum() {
        let of_group = |group: String| {
            let usage = Usage { requests: 1, ..Usage::default() };
            Usages { groups: BTreeMap::from([(group, usage)]), ..Usages::default() }
        };
        let mut usages = Usages::default();
        for at in 0..MOST_NAMES + 5 {
            usages.merge(&of_group(format!("g{at}")));
        }
        usages.merge(&of_group("g7".into()));
        assert_eq!(usages.groups.len(), MOST_NAMES + 1);
        assert_eq!([&usages.groups[OTHER], &usages.groups["g7"]].map(|of| of.requests), [5, 2]);
    }

    /// Sums that are too large to count stay at the greatest number.
    #[test]
    fn sums_do_not_overflow() {
        let most = Usage {
            requests: u64::MAX,
            ran: u64::MAX,
            core_s: u64::MAX,
            ran_core_s: u64::MAX,
            asked_core_s: u64::MAX,
            wait_s: u64::MAX,
            started: u64::MAX,
        };
        let mut sum = most;
        sum.merge(&most);
        assert_eq!(sum, most);
    }
}
