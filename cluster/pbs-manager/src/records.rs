// SPDX-License-Identifier: GPL-2.0
//! Records of all requests that have not ended, and how much of them each user has.

use std::collections::{BTreeMap, HashMap};
use std::ops::Deref;

use pbs_cluster_planner::RequestId;

use crate::record::RequestRecord;

/// Requests of a user that have not ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Number of requests.
    pub requests: usize,
    /// Number of those that are reservations.
    pub reservations: usize,
    /// Bytes that they take in memory, about.
    pub bytes: usize,
}

/// Records of requests; to be read like a map.
#[derive(Debug, Default)]
pub(crate) struct Records {
    all: BTreeMap<RequestId, RequestRecord>,
    of_users: HashMap<String, Held>,
}

impl Records {
    /// Returns what a user has.
    pub(crate) fn held_by(&self, user: &str) -> Held {
        self.of_users.get(user).copied().unwrap_or_default()
    }

    /// Returns what all users have.
    pub(crate) fn held_by_all(&self) -> Held {
        self.of_users.values().fold(Held::default(), |all, of| Held {
            requests: all.requests + of.requests,
            reservations: all.reservations + of.reservations,
            bytes: all.bytes + of.bytes,
        })
    }

    pub(crate) fn get_mut(&mut self, id: &RequestId) -> Option<&mut RequestRecord> {
        self.all.get_mut(id)
    }

    pub(crate) fn insert(&mut self, id: RequestId, record: RequestRecord) {
        let held = self.of_users.entry(record.request.user.clone()).or_default();
        held.requests += 1;
        held.reservations += usize::from(record.is_reservation);
        held.bytes += record.held_bytes;
        self.all.insert(id, record);
    }

    /// Counts a request again that has changed.
    pub(crate) fn count_again(&mut self, id: RequestId, held_bytes: usize) {
        let Some(record) = self.all.get_mut(&id) else {
            return;
        };
        let before_bytes = std::mem::replace(&mut record.held_bytes, held_bytes);
        if let Some(held) = self.of_users.get_mut(&record.request.user) {
            held.bytes = held.bytes - before_bytes + held_bytes;
        }
    }

    pub(crate) fn remove(&mut self, id: &RequestId) {
        let Some(record) = self.all.remove(id) else {
            return;
        };
        if let Some(held) = self.of_users.get_mut(&record.request.user) {
            held.requests -= 1;
            held.reservations -= usize::from(record.is_reservation);
            held.bytes -= record.held_bytes;
            if held.requests == 0 {
                self.of_users.remove(&record.request.user);
            }
        }
    }
}

impl Deref for Records {
    type Target = BTreeMap<RequestId, RequestRecord>;

    fn deref(&self) -> &Self::Target {
        &self.all
    }
}
