// SPDX-License-Identifier: GPL-2.0
//! Storage of measurements by a thread of its own.
//!
//! Another process may be stopped while it writes to the file, and then each transaction waits
//! until its time is over. The threads of a graph therefore only collect measurements. What could
//! not be written is tried again.

use std::mem::take;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use pbs_history::{Decision, Error, Store, Transfer, VariantRun};

/// Number of measurements that are stored at once.
const BATCH: usize = 256;
/// Maximum number of measurements of a kind that wait. The history stores the last ones of each
/// variant, too.
const MOST: usize = 64 * BATCH;
/// Pause after a failure.
const PAUSE: Duration = Duration::from_millis(100);

/// Measurements that wait, each kind from the oldest to the last.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) runs: Vec<VariantRun>,
    pub(super) transfers: Vec<Transfer>,
    pub(super) decisions: Vec<Decision>,
}

impl Batch {
    fn len(&self) -> usize {
        self.runs.len() + self.transfers.len() + self.decisions.len()
    }

    /// Puts older measurements before these.
    fn put_back(&mut self, mut older: Self) {
        older.runs.append(&mut self.runs);
        older.transfers.append(&mut self.transfers);
        older.decisions.append(&mut self.decisions);
        *self = older;
    }

    /// Drops the oldest measurements of a kind of which there are too many. Returns whether there
    /// were any.
    fn trim(&mut self) -> bool {
        fn trim<T>(all: &mut Vec<T>) -> bool {
            let are_many = all.len() > MOST;
            if are_many {
                // Some more, since the others are moved.
                all.drain(..all.len() - MOST * 3 / 4);
            }
            are_many
        }
        trim(&mut self.runs) | trim(&mut self.transfers) | trim(&mut self.decisions)
    }

    /// Stores the measurements. What is stored is removed.
    fn store(&mut self, store: &mut Store) -> Result<(), Error> {
        store.record_variant_runs(&self.runs)?;
        self.runs.clear();
        store.record_transfers(&self.transfers)?;
        self.transfers.clear();
        store.record_decisions(&self.decisions)?;
        self.decisions.clear();
        Ok(())
    }
}

/// A history that is written, and the measurements that wait for it.
#[derive(Debug)]
pub(super) struct Writer {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
struct Shared {
    /// Locked before the measurements that wait.
    store: Mutex<Store>,
    waiting: Mutex<Waiting>,
    /// Signal to the thread: there is a batch, or the end has come.
    told: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    batch: Batch,
    has_thread: bool,
    is_ending: bool,
    /// Failure of the last attempt, after which the measurements still wait.
    delayed: Option<Error>,
    /// Failure by which measurements were lost.
    lost: Option<Error>,
}

impl Writer {
    pub(super) fn new(store: Store) -> Self {
        let (store, waiting) = (Mutex::new(store), Mutex::default());
        let shared = Shared { store, waiting, told: Condvar::new() };
        Self { shared: Arc::new(shared), thread: Mutex::default() }
    }

    /// Adds a measurement. The first whole batch starts the thread.
    pub(super) fn add(&self, add: impl FnOnce(&mut Batch)) {
        let mut waiting = self.shared.waiting();
        add(&mut waiting.batch);
        waiting.trim();
        let is_whole = waiting.batch.len() >= BATCH;
        if is_whole && !waiting.has_thread {
            let shared = self.shared.clone();
            let thread = Builder::new().name("pbs-history".into()).spawn(move || shared.work());
            waiting.has_thread = true;
            // Without a thread the measurements wait for the end.
            *self.thread.lock().unwrap_or_else(PoisonError::into_inner) = thread.ok();
        } else if waiting.batch.len() == BATCH {
            self.shared.told.notify_one();
        }
    }

    /// Stores all measurements that wait, in this thread.
    pub(super) fn store(&self) {
        self.shared.store();
    }

    /// Returns the reason for which measurements were lost or still wait, if there is one.
    pub(super) fn trouble(&self) -> Option<Error> {
        let waiting = self.shared.waiting();
        waiting.lost.clone().or_else(|| waiting.delayed.clone())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.shared.waiting().is_ending = true;
        self.shared.told.notify_one();
        let thread = self.thread.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(thread) = thread.take() {
            // The measurements of a thread that panicked are stored here, if that is possible.
            let _ = thread.join();
        }
        self.store();
    }
}

impl Shared {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The work of the thread.
    fn work(&self) {
        let mut waiting = self.waiting();
        while !waiting.is_ending {
            if waiting.batch.len() < BATCH {
                waiting = self.told.wait(waiting).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            drop(waiting);
            self.store();
            waiting = self.waiting();
            if waiting.delayed.is_some() && !waiting.is_ending {
                let paused = self.told.wait_timeout(waiting, PAUSE);
                waiting = paused.unwrap_or_else(PoisonError::into_inner).0;
            }
        }
    }

    fn store(&self) {
        let mut store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        let mut batch = take(&mut self.waiting().batch);
        let stored = batch.store(&mut store);
        let mut waiting = self.waiting();
        match stored {
            Ok(()) => waiting.delayed = None,
            Err(busy @ Error::Busy(_)) => {
                waiting.batch.put_back(batch);
                waiting.delayed = Some(busy);
                waiting.trim();
                self.told.notify_one();
            }
            Err(error) => waiting.lost = Some(error),
        }
    }
}

impl Waiting {
    /// Drops the oldest measurements, if there are too many.
    fn trim(&mut self) {
        if self.batch.trim() && self.delayed.is_some() {
            self.lost.clone_from(&self.delayed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decision(tasks: u64) -> Decision {
        Decision { scheduler: "greedy".into(), tasks, took_ns: 1 }
    }

    #[test]
    fn the_last_measurements_wait() {
        let mut batch = Batch::default();
        batch.decisions.extend((0..MOST as u64).map(decision));
        assert!(!batch.trim());
        batch.decisions.push(decision(MOST as u64));
        assert!(batch.trim());
        assert_eq!(batch.len(), MOST * 3 / 4);
        assert_eq!(batch.decisions.last(), Some(&decision(MOST as u64)));
    }

    #[test]
    fn measurements_that_were_put_back_keep_their_order() {
        let mut batch = Batch::default();
        batch.decisions.push(decision(2));
        batch.put_back(Batch { decisions: vec![decision(1)], ..Batch::default() });
        assert_eq!(batch.decisions, [decision(1), decision(2)]);
    }
}
