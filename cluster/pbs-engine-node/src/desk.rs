// SPDX-License-Identifier: GPL-2.0
//! The thread that talks to the node's service in the name of one owner.
//!
//! The engine writes down what is wanted, and never waits for the thread. The thread compares that
//! with what it has handed over. A request has one entry, however often it is changed, and there
//! are no more entries than requests that have their nodes.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pbs_cluster_planner::RequestId;
use pbs_manager::{Allocation, Engine, Happened};
use pbs_site::User;
use pbs_uapi::clock::unix_s;

use crate::account::Account;
use crate::sweep::PREFIX;
use crate::Local;

/// Interval at which the service is asked what has become of jobs.
pub(crate) const POLL: Duration = Duration::from_secs(1);

/// A request that is to run.
#[derive(Clone, Debug)]
struct Wanted {
    allocation: Arc<Allocation>,
    until_s: u64,
    /// Whether its programs are to be notified.
    is_notified: bool,
}

/// Requests that a thread is to run.
#[derive(Debug, Default)]
struct Orders {
    requests: BTreeMap<RequestId, Wanted>,
    /// Whether something has changed since the thread has looked.
    is_changed: bool,
    /// Whether the thread takes nothing any more.
    is_closed: bool,
}

/// Orders to the thread of an owner.
#[derive(Debug, Default)]
pub(crate) struct Desk {
    orders: Mutex<Orders>,
    changed: Condvar,
}

/// Reports of all threads.
pub(crate) struct Reports {
    happened: Mutex<Vec<Happened>>,
    /// Receiver of errors that end nothing.
    trouble: Box<dyn Fn(&str) + Send + Sync>,
    /// Wakes the thread that has the cluster.
    wake: Box<dyn Fn() + Send + Sync>,
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Reports {
    pub(crate) fn new(
        wake: impl Fn() + Send + Sync + 'static,
        trouble: impl Fn(&str) + Send + Sync + 'static,
    ) -> Self {
        Self { happened: Mutex::default(), trouble: Box::new(trouble), wake: Box::new(wake) }
    }

    /// Adds events, and wakes their reader.
    pub(crate) fn add(&self, events: Vec<Happened>) {
        if !events.is_empty() {
            lock(&self.happened).extend(events);
            (self.wake)();
        }
    }

    /// Ends a request that is not run.
    pub(crate) fn refuse(&self, request: RequestId, why: &str) {
        self.add(vec![Happened::Ended { request, outcome: format!("refused: {why}") }]);
    }

    /// Reports an error that ends nothing.
    pub(crate) fn tell(&self, trouble: &str) {
        (self.trouble)(trouble);
    }

    pub(crate) fn take(&self) -> Vec<Happened> {
        std::mem::take(&mut lock(&self.happened))
    }

    pub(crate) fn is_empty(&self) -> bool {
        lock(&self.happened).is_empty()
    }
}

impl Desk {
    /// Orders the start of a request; false: the thread has ended.
    pub(crate) fn start(&self, allocation: &Allocation) -> bool {
        let mut orders = lock(&self.orders);
        if orders.is_closed {
            return false;
        }
        let known = orders.requests.get(&allocation.request);
        if known.is_none_or(|known| known.allocation.from_s != allocation.from_s) {
            let wanted = Wanted {
                allocation: Arc::new(allocation.clone()),
                until_s: allocation.until_s,
                is_notified: false,
            };
            orders.requests.insert(allocation.request, wanted);
            self.change(orders);
        }
        true
    }

    /// Orders the end of a request.
    pub(crate) fn stop(&self, request: RequestId) {
        let mut orders = lock(&self.orders);
        orders.requests.remove(&request);
        self.change(orders);
    }

    pub(crate) fn extend(&self, request: RequestId, until_s: u64) {
        let mut orders = lock(&self.orders);
        if let Some(wanted) = orders.requests.get_mut(&request) {
            wanted.until_s = until_s;
            self.change(orders);
        }
    }

    pub(crate) fn notify(&self, request: RequestId) {
        let mut orders = lock(&self.orders);
        if let Some(wanted) = orders.requests.get_mut(&request) {
            wanted.is_notified = true;
            self.change(orders);
        }
    }

    fn change(&self, mut orders: MutexGuard<'_, Orders>) {
        orders.is_changed = true;
        self.changed.notify_one();
    }

    /// Whether the thread has ended.
    pub(crate) fn is_closed(&self) -> bool {
        lock(&self.orders).is_closed
    }

    /// Waits for orders, and returns all; for a short time if the service is to be asked, too.
    /// `None`: nothing is wanted, and the thread is to end.
    fn next(&self, is_busy: bool) -> Option<BTreeMap<RequestId, Wanted>> {
        let mut orders = lock(&self.orders);
        if !orders.is_changed && is_busy {
            let waited = self.changed.wait_timeout(orders, POLL);
            orders = waited.map_or_else(|error| error.into_inner().0, |waited| waited.0);
        }
        while !orders.is_changed && !is_busy {
            if orders.requests.is_empty() {
                orders.is_closed = true;
                return None;
            }
            orders = self.changed.wait(orders).unwrap_or_else(PoisonError::into_inner);
        }
        orders.is_changed = false;
        let wanted = orders.requests.clone();
        for request in orders.requests.values_mut() {
            request.is_notified = false;
        }
        Some(wanted)
    }

    /// Refuses all that is wanted: the thread can't act in the owner's name.
    pub(crate) fn close(&self, why: &str, reports: &Reports) {
        let requests = {
            let mut orders = lock(&self.orders);
            orders.is_closed = true;
            std::mem::take(&mut orders.requests)
        };
        for request in requests.into_keys() {
            reports.refuse(request, why);
        }
    }

    /// The thread: acts in the name of the owner until nothing is wanted.
    pub(crate) fn run(&self, owner: &User, socket: PathBuf, reports: &Reports) {
        let entered = Account::of(owner).and_then(|account| {
            let entered = account.enter();
            entered.map_err(|error| format!("programs of {owner} cannot be run: {error}"))?;
            Ok(account)
        });
        let account = match entered {
            Ok(account) => account,
            Err(why) => return self.close(&why, reports),
        };
        let local = Local::new(&socket, None, account.environment());
        let mut local = Local { prefix: PREFIX, ..local };
        let mut known: BTreeMap<RequestId, Wanted> = BTreeMap::new();
        let mut told = None;
        while let Some(wanted) = self.next(local.is_busy()) {
            follow(&mut local, &mut known, wanted);
            reports.add(local.happened(unix_s()));
            let trouble = local.trouble();
            if let Some(new) = trouble.as_ref().filter(|_| trouble != told) {
                reports.tell(&format!("{owner}: {new}"));
            }
            told = trouble;
        }
    }
}

/// Brings an engine from what was wanted before to what is wanted now.
fn follow(
    engine: &mut impl Engine,
    known: &mut BTreeMap<RequestId, Wanted>,
    wanted: BTreeMap<RequestId, Wanted>,
) {
    for (&request, before) in &*known {
        let now = wanted.get(&request);
        if now.is_none_or(|now| now.allocation.from_s != before.allocation.from_s) {
            engine.stop(request);
        }
    }
    for (&request, now) in &wanted {
        let before = known.get(&request);
        match before.filter(|before| before.allocation.from_s == now.allocation.from_s) {
            None => engine.start(&now.allocation),
            Some(before) if before.until_s != now.until_s => engine.extend(request, now.until_s),
            Some(_) => {}
        }
        if now.is_notified {
            engine.notify(request);
        }
    }
    *known = wanted;
}
