// SPDX-License-Identifier: GPL-2.0
//! Records of all requests that have not ended, and how much of them each user has.

use std::collections::{BTreeMap, HashMap};
use std::ops::Deref;

use pbs_cluster_planner::RequestId;
use pbs_site::User;

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
    of_users: HashMap<User, Held>,
    /// Requests that others follow or are inside, with the number of those.
    referred: HashMap<RequestId, usize>,
}

/// The requests to which a record refers.
fn references(record: &RequestRecord) -> impl Iterator<Item = RequestId> + '_ {
    record.after.iter().map(|after| after.request).chain(record.within)
}

impl Records {
    /// Returns what a user has.
    pub(crate) fn held_by(&self, user: &User) -> Held {
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
        for to in references(&record) {
            *self.referred.entry(to).or_default() += 1;
        }
        self.all.insert(id, record);
    }

    /// Whether a request that has not ended follows that one, or is inside it.
    pub(crate) fn is_referred(&self, id: RequestId) -> bool {
        self.referred.contains_key(&id)
    }

    /// A request does not follow that other one any more.
    pub(crate) fn unfollow(&mut self, id: RequestId, before: RequestId) {
        let Some(record) = self.all.get_mut(&id) else {
            return;
        };
        let count = record.after.len();
        record.after.retain(|after| after.request != before);
        for _ in record.after.len()..count {
            self.release(before);
        }
    }

    /// A reference to that request is no more.
    fn release(&mut self, to: RequestId) {
        if let Some(count) = self.referred.get_mut(&to) {
            *count -= 1;
            if *count == 0 {
                self.referred.remove(&to);
            }
        }
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
        for to in references(&record) {
            self.release(to);
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::{After, Outcome};
    use crate::wish::{Caller, Wish};

    /// A request is referred to as long as one that has not ended follows it or is inside it.
    #[test]
    fn references_are_counted() {
        let mut records = Records::default();
        let after = |request| After { request, outcome: Outcome::Any };
        let caller = Caller { user: "u".into(), is_operator: false };
        let wish = Wish::new("ncpus=1".parse().unwrap(), "u", "");
        let request = pbs_cluster_planner::Request::new(wish.rset.clone(), 60);
        let record = RequestRecord {
            after: vec![after(1), After { outcome: Outcome::Ok, ..after(1) }, after(2)],
            within: Some(3),
            ..crate::operations::record_of(&caller, &wish, &request, None, false)
        };
        records.insert(7, record.clone());
        records.insert(8, RequestRecord { within: None, ..record });
        let referred = |records: &Records| -> Vec<u64> {
            (0..10).filter(|&id| records.is_referred(id)).collect()
        };
        assert_eq!(referred(&records), [1, 2, 3]);
        records.unfollow(7, 1);
        assert_eq!(referred(&records), [1, 2, 3]);
        records.remove(&7);
        assert_eq!(referred(&records), [1, 2]);
        records.unfollow(8, 1);
        assert_eq!(referred(&records), [2]);
        records.remove(&8);
        assert!(records.referred.is_empty() && records.of_users.is_empty());
    }
}
