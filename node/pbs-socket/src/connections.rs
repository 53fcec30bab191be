// SPDX-License-Identifier: GPL-2.0
//! Connections of users: how many each may have, and whose turn it is.
//!
//! All users together have a limit, which a few of them can reach. Then who has few connections
//! still gets one: a connection of the user with the most of them is closed for it.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::task::AbortHandle;

use crate::caller::Caller;

/// Time for which the calls of a user are answered before it is the next user's turn.
const TURN: Duration = Duration::from_millis(1);

/// Limits of connections at once. Operators, who are to set things right, have none, and their
/// connections do not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// Connections of all users together.
    pub all: usize,
    /// Connections of each user.
    pub of_user: usize,
}

impl ConnectionLimits {
    /// Default limits. Where no more than 1024 files may be open, which is usual, some are left
    /// for others than those who connect.
    pub const DEFAULT: Self = Self { all: 960, of_user: 64 };
}

/// The users that have connections.
#[derive(Clone, Default)]
pub(crate) struct Connections(Arc<Mutex<Users>>);

#[derive(Default)]
struct Users {
    users: HashMap<u32, User>,
    next_id: u64,
}

/// The connections of a user, and the state of their turn.
#[derive(Default)]
struct User {
    is_operator: bool,
    /// Handles to close them, by their numbers, once there are any.
    open: BTreeMap<u64, Option<AbortHandle>>,
    turn: UserTurn,
}

/// Number of a connection, and its user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConnectionId {
    uid: u32,
    number: u64,
}

/// A connection that is counted.
pub(crate) struct CountedConnection {
    connections: Connections,
    id: ConnectionId,
    turn: UserTurn,
}

impl Connections {
    fn lock(&self) -> MutexGuard<'_, Users> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes by what a connection can be closed.
    pub(crate) fn can_close(&self, id: ConnectionId, handle: AbortHandle) {
        let mut users = self.lock();
        let user = users.users.get_mut(&id.uid);
        if let Some(known) = user.and_then(|user| user.open.get_mut(&id.number)) {
            *known = Some(handle);
        }
    }
}

impl Users {
    /// Connections of all users but operators.
    fn count(&self) -> usize {
        let users = self.users.values().filter(|user| !user.is_operator);
        users.map(|user| user.open.len()).sum()
    }

    fn count_of(&self, uid: u32) -> usize {
        self.users.get(&uid).map_or(0, |user| user.open.len())
    }

    /// Closes the newest connection of the user with the most of them, for one who would still
    /// have fewer with `own`. Whether there was such a user.
    fn make_way(&mut self, own: usize) -> bool {
        let users = self.users.iter_mut().filter(|(_, user)| !user.is_operator);
        let Some((&uid, user)) = users.max_by_key(|(&uid, user)| (user.open.len(), uid)) else {
            return false;
        };
        if user.open.len() <= own {
            return false;
        }
        if let Some((_, Some(handle))) = user.open.pop_last() {
            handle.abort();
        }
        self.remove_if_none(uid);
        true
    }

    fn remove_if_none(&mut self, uid: u32) {
        if self.count_of(uid) == 0 {
            self.users.remove(&uid);
        }
    }
}

impl CountedConnection {
    /// Counts a connection of that caller; `None`: the caller can't have another.
    pub(crate) fn of(
        connections: &Connections,
        caller: &Caller,
        limits: ConnectionLimits,
    ) -> Option<Self> {
        let uid = caller.account;
        let mut users = connections.lock();
        // Whoever has to set things right gets in.
        if !caller.is_operator {
            let own = users.count_of(uid);
            if own >= limits.of_user {
                return None;
            }
            if users.count() >= limits.all && !users.make_way(own + 1) {
                return None;
            }
        }
        let number = users.next_id;
        users.next_id += 1;
        let user = users.users.entry(uid).or_default();
        user.is_operator |= caller.is_operator;
        user.open.insert(number, None);
        let turn = user.turn.clone();
        let id = ConnectionId { uid, number };
        Some(Self { connections: connections.clone(), id, turn })
    }

    /// The number by which it can be closed.
    pub(crate) fn id(&self) -> ConnectionId {
        self.id
    }

    /// Turn of the user's connections.
    pub(crate) fn turn(&self) -> &UserTurn {
        &self.turn
    }
}

impl Drop for CountedConnection {
    fn drop(&mut self) {
        let mut users = self.connections.lock();
        // One that was closed for another is not there any more.
        if let Some(user) = users.users.get_mut(&self.id.uid) {
            user.open.remove(&self.id.number);
        }
        users.remove_if_none(self.id.uid);
    }
}

/// Turns of the connections of a user, and the time that they have had.
#[derive(Clone)]
pub(crate) struct UserTurn {
    one: Arc<Semaphore>,
    spent_ns: Arc<AtomicU64>,
}

impl Default for UserTurn {
    fn default() -> Self {
        Self { one: Arc::new(Semaphore::new(1)), spent_ns: Arc::default() }
    }
}

impl UserTurn {
    /// Waits until the user's other connections that came before have had their turn and, if
    /// they have had enough together, all other users too.
    pub(crate) async fn come(&self) {
        let _turn = self.one.acquire().await;
        if self.spent_ns.load(Ordering::Relaxed) >= TURN.as_nanos() as u64 {
            tokio::task::yield_now().await;
            self.spent_ns.store(0, Ordering::Relaxed);
        }
    }

    /// One of them has had so much. It has had something, however little that was.
    pub(crate) fn spend(&self, time: Duration) {
        let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).max(1000);
        let spent_ns = self.spent_ns.load(Ordering::Relaxed);
        self.spent_ns.store(spent_ns.saturating_add(ns), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::rc::Rc;

    /// Each of some connections has ten calls that take so long; says whose calls were handled,
    /// one by one.
    fn handled(connections: &[(&'static str, UserTurn)], time: Duration) -> Vec<&'static str> {
        let order = Rc::new(RefCell::new(Vec::new()));
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let local = tokio::task::LocalSet::new();
        for (whose, turn) in connections {
            let (whose, turn, order) = (*whose, turn.clone(), Rc::clone(&order));
            local.spawn_local(async move {
                for _ in 0..10 {
                    turn.come().await;
                    order.borrow_mut().push(whose);
                    turn.spend(time);
                }
            });
        }
        runtime.block_on(local);
        order.take()
    }

    fn caller(uid: u32, is_operator: bool) -> Caller {
        Caller { uid, gid: uid, groups: Vec::new(), is_operator, pid: 0, account: uid }
    }

    /// Users who hold all connections lose some to those who have fewer, down to an equal share,
    /// and nobody is closed for one who has as many. Operators neither count nor lose any.
    #[test]
    fn a_few_users_do_not_hold_all_connections() {
        let limits = ConnectionLimits::DEFAULT;
        let connections = Connections::default();
        let connect = |uid| CountedConnection::of(&connections, &caller(uid, uid == 0), limits);
        let count = |uid| connections.lock().count_of(uid);
        let mut open: Vec<_> = (0..100).filter_map(|_| connect(0)).collect();
        for uid in 1..=15 {
            open.extend((0..100).filter_map(|_| connect(uid)));
            assert_eq!(count(uid), limits.of_user);
        }
        assert_eq!(connections.lock().count(), limits.all);
        // Another wants as many: all have the same in the end.
        open.extend((0..100).filter_map(|_| connect(16)));
        assert_eq!(count(16), limits.all / 16);
        assert!((1..=15).all(|uid| count(uid) == limits.all / 16));
        // Those who lost some do not get them back from those who have no more.
        assert!((1..=16).all(|uid| connect(uid).is_none()));
        assert!(connect(17).is_some());
        open.extend((0..900).filter_map(|_| connect(0)));
        assert_eq!((count(0), connections.lock().count()), (1000, limits.all - 1));
        drop(open);
        assert!(connections.lock().users.is_empty());
    }

    #[test]
    fn many_connections_of_a_user_get_no_more_done_than_one() {
        // Ten for ten, or ten times as many as there is time for, and what was under way.
        for (time, most) in [(TURN, 30), (TURN / 4, 100)] {
            let (many, one) = (UserTurn::default(), UserTurn::default());
            let mut connections = vec![("many", many); 64];
            connections.push(("one", one));
            let order = handled(&connections, time);
            assert_eq!(order.len(), 650);
            let last = order.iter().rposition(|&whose| whose == "one");
            assert!(last.is_some_and(|last| last < most), "{last:?}");
        }
    }
}
