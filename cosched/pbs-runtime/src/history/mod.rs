// SPDX-License-Identifier: GPL-2.0
//! Measurements of the runtime of co-scheduled task graphs, stored in the history to outlive the
//! process (§5.6.4).
//!
//! Known values are read when the file is opened. New measurements are stored in batches, because
//! each batch is a transaction. The rest is stored when the last user drops its reference. A file
//! that can't be written does not stop a program. The program continues with its own measurements,
//! and [`InHistory::trouble`] returns the reason.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::{InMemory, Key, Profiles};
use pbs_cosched::Cost;
use pbs_history::{
    Decision, DecisionCost, Error, Fingerprint, Options, Store, Transfer, TransferCost, VariantKey,
    VariantRun,
};

/// Measurements that are kept at once.
const BATCH: usize = 256;
/// Name of the CPU's memory among the sources of data.
const HOST: &str = "host";

/// Runtimes, transfers and costs of deciding of one application, in a history.
#[derive(Debug)]
pub struct InHistory {
    application: String,
    runtimes_ns: HashMap<VariantKey, u64>,
    /// Transfer cost of data from the host, by device.
    transfers: HashMap<String, TransferCost>,
    costs: HashMap<String, Cost>,
    /// Measurements of this process.
    own: InMemory,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    store: Store,
    runs: Vec<VariantRun>,
    transfers: Vec<Transfer>,
    decisions: Vec<Decision>,
    trouble: Option<Error>,
}

impl InHistory {
    /// Opens the history in that file, and reads the values of an application. The file is created
    /// if it does not exist.
    ///
    /// # Errors
    ///
    /// The file is not a history, or can't be opened.
    pub fn open(path: &Path, application: &str) -> Result<Self, Error> {
        let store = Store::open(path, Options::DEFAULT)?;
        let variants = store.variants(Some(application))?.into_iter();
        let mut transfers = HashMap::new();
        for Transfer { from, to, .. } in store.transfers()? {
            if from == HOST && !transfers.contains_key(&to) {
                if let Some(cost) = store.transfer_cost(&from, &to)? {
                    transfers.insert(to, cost);
                }
            }
        }
        let mut decided: HashMap<String, Vec<Decision>> = HashMap::new();
        for decision in store.decisions()? {
            let scheduler = decision.scheduler.clone();
            decided.entry(scheduler).or_default().push(decision);
        }
        let costs = decided.into_iter().filter_map(|(scheduler, decisions)| {
            let cost = DecisionCost::of(&decisions)?;
            let cost = Cost { a: cost.square_ns, b: cost.linear_ns, c: cost.constant_ns };
            Some((scheduler, cost))
        });
        Ok(Self {
            application: application.into(),
            runtimes_ns: variants.map(|(key, known)| (key, known.ran_ns)).collect(),
            transfers,
            costs: costs.collect(),
            own: InMemory::default(),
            state: Mutex::new(State {
                store,
                runs: Vec::new(),
                transfers: Vec::new(),
                decisions: Vec::new(),
                trouble: None,
            }),
        })
    }

    /// Returns the reason for which not all measurements could be stored, if there is one.
    pub fn trouble(&self) -> Option<String> {
        self.state().trouble.as_ref().map(ToString::to_string)
    }

    /// Keeps what was measured so far.
    pub fn keep(&self) {
        self.state().keep();
    }

    fn variant(&self, key: &Key) -> VariantKey {
        VariantKey {
            job: self.application.clone(),
            task: key.task.clone(),
            // What a function does is its application's.
            fingerprint: Fingerprint::of::<&str>([]),
            model: key.model.name().into(),
            threads: key.threads,
            device: key.device.clone(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn keep_some(&mut self) {
        if self.runs.len() + self.transfers.len() + self.decisions.len() >= BATCH {
            self.keep();
        }
    }

    fn keep(&mut self) {
        let (runs, transfers) =
            (std::mem::take(&mut self.runs), std::mem::take(&mut self.transfers));
        let decisions = std::mem::take(&mut self.decisions);
        let store = &mut self.store;
        let kept = store
            .record_variant_runs(&runs)
            .and_then(|()| store.record_transfers(&transfers))
            .and_then(|()| store.record_decisions(&decisions));
        self.trouble = kept.err().or(self.trouble.take());
    }
}

impl Drop for InHistory {
    fn drop(&mut self) {
        self.keep();
    }
}

impl Profiles for InHistory {
    fn runtime_ns(&self, key: &Key) -> Option<u64> {
        let known = self.runtimes_ns.get(&self.variant(key)).copied();
        known.or_else(|| self.own.runtime_ns(key))
    }

    fn ran(&self, key: &Key, runtime_ns: u64) {
        self.own.ran(key, runtime_ns);
        let variant = self.variant(key);
        let mut state = self.state();
        state.runs.push(VariantRun { variant, ran_ns: runtime_ns.max(1), insns: 0 });
        state.keep_some();
    }

    fn transfer_ns(&self, device: &str, bytes: u64) -> Option<u64> {
        let known = self.transfers.get(device).map(|cost| cost.ns(bytes));
        known.or_else(|| self.own.transfer_ns(device, bytes))
    }

    fn transferred(&self, device: &str, bytes: u64, took_ns: u64) {
        self.own.transferred(device, bytes, took_ns);
        let mut state = self.state();
        state.transfers.push(Transfer {
            from: HOST.into(),
            to: device.into(),
            bytes,
            took_ns: took_ns.max(1),
        });
        state.keep_some();
    }

    fn cost(&self, scheduler: &str) -> Option<Cost> {
        let known = self.costs.get(scheduler).copied();
        known.or_else(|| self.own.cost(scheduler))
    }

    fn co_scheduled(&self, scheduler: &str, tasks: usize, took_ns: u64) {
        self.own.co_scheduled(scheduler, tasks, took_ns);
        let mut state = self.state();
        state.decisions.push(Decision {
            scheduler: scheduler.into(),
            tasks: tasks as u64,
            took_ns: took_ns.max(1),
        });
        state.keep_some();
    }
}

#[cfg(test)]
mod tests {
    use crate::Model;

    use super::*;

    fn key(task: &str, threads: u32) -> Key {
        Key { task: task.into(), model: Model::Omp, threads, device: String::new() }
    }

    /// Runtimes, transfers and the cost of deciding come from the history.
    #[test]
    fn measurements_outlive_the_process() {
        let directory = std::env::temp_dir().join(format!("pbs-in-history-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let file = directory.join("history.db");
        let first = InHistory::open(&file, "filter").unwrap();
        assert_eq!(first.runtime_ns(&key("a", 2)), None);
        first.ran(&key("a", 2), 2_000);
        // Its own counts at once.
        assert_eq!(first.runtime_ns(&key("a", 2)), Some(2_000));
        for (bytes, took_ns) in [(1_000, 1_100), (2_000, 2_100), (3_000, 3_100)] {
            first.transferred("gpu", bytes, took_ns);
        }
        for tasks in 1..10 {
            first.co_scheduled("greedy", tasks, 1_000 + 50 * tasks as u64);
        }
        assert_eq!(first.trouble(), None);
        drop(first);

        let second = InHistory::open(&file, "filter").unwrap();
        assert_eq!(second.runtime_ns(&key("a", 2)), Some(2_000));
        assert_eq!(second.runtime_ns(&key("a", 4)), None);
        let took_ns = second.transfer_ns("gpu", 10_000).unwrap();
        assert!((10_000..10_200).contains(&took_ns), "{took_ns}");
        let cost_ns = second.cost("greedy").unwrap().ns(100);
        assert!((5_500..6_500).contains(&cost_ns), "{cost_ns}");
        assert_eq!(second.cost("heft"), None);
        // Another application's tasks are others.
        let other = InHistory::open(&file, "other").unwrap();
        assert_eq!(other.runtime_ns(&key("a", 2)), None);
        drop((second, other));

        std::fs::write(&file, "no history").unwrap();
        assert!(InHistory::open(&file, "filter").is_err());
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
