// SPDX-License-Identifier: GPL-2.0
//! Order in which calls that wait are answered: operators first, then the users in turn.
//!
//! Within a user it is the order of arrival. However many calls one user has waiting, another's
//! first call comes after at most one of each user.

use std::collections::{HashMap, VecDeque};

/// Calls that wait.
#[derive(Debug)]
pub(crate) struct Turns<T> {
    operators: VecDeque<T>,
    users: HashMap<u32, VecDeque<T>>,
    /// Users with calls that wait; the first one is next.
    round: VecDeque<u32>,
}

impl<T> Default for Turns<T> {
    fn default() -> Self {
        Self { operators: VecDeque::new(), users: HashMap::new(), round: VecDeque::new() }
    }
}

impl<T> Turns<T> {
    /// A call has arrived; `user`: whose it is, `None`: an operator's.
    pub(crate) fn push(&mut self, user: Option<u32>, call: T) {
        let Some(uid) = user else {
            self.operators.push_back(call);
            return;
        };
        let own = self.users.entry(uid).or_default();
        if own.is_empty() {
            self.round.push_back(uid);
        }
        own.push_back(call);
    }

    /// Takes the call whose turn it is.
    pub(crate) fn pop(&mut self) -> Option<T> {
        if let Some(call) = self.operators.pop_front() {
            return Some(call);
        }
        let uid = self.round.pop_front()?;
        let own = self.users.get_mut(&uid)?;
        let call = own.pop_front();
        if own.is_empty() {
            self.users.remove(&uid);
        } else {
            self.round.push_back(uid);
        }
        call
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_waits_for_more_than_one_call_of_each_user() {
        let mut turns = Turns::default();
        for number in 0..64 {
            turns.push(Some(1), (1, number));
        }
        assert_eq!(turns.pop(), Some((1, 0)));
        turns.push(Some(2), (2, 0));
        turns.push(Some(2), (2, 1));
        turns.push(None, (0, 0));
        turns.push(Some(3), (3, 0));
        let order: Vec<_> = std::iter::from_fn(|| turns.pop()).take(7).collect();
        assert_eq!(order, [(0, 0), (1, 1), (2, 0), (3, 0), (1, 2), (2, 1), (1, 3)]);
        assert_eq!(std::iter::from_fn(|| turns.pop()).count(), 60);
        assert!(turns.users.is_empty() && turns.round.is_empty());
    }
}
