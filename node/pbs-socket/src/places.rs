// SPDX-License-Identifier: GPL-2.0
//! Places of things that the service holds for callers, and the bytes that they have: calls that
//! wait, and answers that were not read yet.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::caller::Caller;

/// Limits of the calls that wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallLimits {
    /// Number of calls of all users.
    pub calls: usize,
    /// Number of these that are left to operators.
    pub of_operators: usize,
    /// Bytes of the calls of a user, unless an operator's.
    pub user_bytes: usize,
    /// Bytes of the calls of all users, unless an operator's.
    pub all_bytes: usize,
}

/// Limits of the answers that were not read yet. A user who has none can have one in any case:
/// those of others keep nobody from an answer.
pub(crate) const UNREAD_ANSWERS: CallLimits =
    CallLimits { calls: usize::MAX, of_operators: 0, user_bytes: 16 << 20, all_bytes: 64 << 20 };

/// Places of things that are held, and the bytes that those of each user have.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    limits: CallLimits,
    /// Whether a user who has nothing can have one thing of any size.
    one_fits: bool,
    /// Number and bytes of the things of each user.
    pub(crate) users: Arc<Mutex<HashMap<u32, (usize, usize)>>>,
}

/// The place of a thing, until it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    places: Places,
    account: u32,
    bytes: usize,
}

impl Places {
    /// Places of calls that wait.
    pub(crate) fn of_calls(limits: CallLimits) -> Self {
        Self { limits, one_fits: false, users: Arc::default() }
    }

    /// Places of answers that were not read yet.
    pub(crate) fn of_answers() -> Self {
        Self { limits: UNREAD_ANSWERS, one_fits: true, users: Arc::default() }
    }

    /// Takes a place for so many bytes; `None`: there is none for that user. Some places are left
    /// to operators.
    pub(crate) fn take(&self, caller: &Caller, bytes: usize) -> Option<Place> {
        let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        let all = users.values().fold((0, 0), |all, user| (all.0 + user.0, all.1 + user.1));
        let own = users.entry(caller.account).or_default();
        let is_full = all.0 + self.limits.of_operators >= self.limits.calls
            || own.1 + bytes > self.limits.user_bytes
            || all.1 + bytes > self.limits.all_bytes;
        let fits = !is_full || caller.is_operator || (self.one_fits && own.0 == 0);
        if !fits {
            if own.0 == 0 {
                users.remove(&caller.account);
            }
            return None;
        }
        *own = (own.0 + 1, own.1 + bytes);
        Some(Place { places: self.clone(), account: caller.account, bytes })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut users = self.places.users.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = users.get_mut(&self.account) {
            *own = (own.0 - 1, own.1 - self.bytes);
            if own.0 == 0 {
                users.remove(&self.account);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(uid: u32) -> Caller {
        let (gid, account) = (uid, uid);
        Caller { uid, gid, groups: Vec::new(), is_operator: uid == 0, pid: 0, account }
    }

    /// Answers that a user does not read are bounded, also those of all subordinate users of it.
    /// Unread answers of one user keep nobody else from an answer.
    #[test]
    fn answers_that_are_not_read_have_a_budget() {
        let places = Places::of_answers();
        let large = UNREAD_ANSWERS.user_bytes / 4;
        let take = |uid, account| places.take(&Caller { account, ..caller(uid) }, large);
        let held: Vec<_> = (0..8).filter_map(|number| take(100_000 + number, 1)).collect();
        assert_eq!(held.len(), 4);
        assert!(take(1, 1).is_none() && take(100_000, 1).is_none());
        let others: Vec<_> = (2..100).filter_map(|uid| take(uid, uid)).collect();
        assert_eq!(others.len(), 98);
        assert!(take(2, 2).is_none(), "all have their limit");
        assert!(take(0, 0).is_some() && take(0, 0).is_some());
        drop((held, others));
        assert!(places.users.lock().unwrap().is_empty());
        assert!(places.take(&caller(1), 2 * UNREAD_ANSWERS.user_bytes).is_some());
    }
}
