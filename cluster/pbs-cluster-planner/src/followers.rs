// SPDX-License-Identifier: GPL-2.0
//! Requests by the one that they follow.

use std::collections::{BTreeMap, BTreeSet};

use crate::types::RequestId;

/// Followers of each request that has any.
#[derive(Clone, Debug, Default)]
pub(crate) struct Followers(BTreeMap<RequestId, BTreeSet<RequestId>>);

impl Followers {
    /// Whether no request follows another.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether requests may follow that one.
    pub(crate) fn has(&self, id: RequestId) -> bool {
        self.0.contains_key(&id)
    }

    /// Followers of a request.
    pub(crate) fn of(&self, id: RequestId) -> impl Iterator<Item = RequestId> + '_ {
        self.0.get(&id).into_iter().flatten().copied()
    }

    /// Adds a request to the followers of others.
    pub(crate) fn add(&mut self, id: RequestId, after: &[RequestId]) {
        for before in after {
            self.0.entry(*before).or_default().insert(id);
        }
    }

    /// Removes a request that follows those; returns its own followers.
    pub(crate) fn remove(&mut self, id: RequestId, after: &[RequestId]) -> BTreeSet<RequestId> {
        for before in after {
            if let Some(followers) = self.0.get_mut(before) {
                followers.remove(&id);
            }
        }
        self.0.remove(&id).unwrap_or_default()
    }
}
