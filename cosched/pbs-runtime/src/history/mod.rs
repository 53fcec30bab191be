// SPDX-License-Identifier: GPL-2.0
//! Measurements of the runtime of co-scheduled task graphs, stored in the history to outlive the
//! process (§5.6.4).
//!
//! Known values are read when the file is opened. New measurements are stored in batches, because
//! each batch is a transaction, and by a thread of its own. The rest is stored when the last user
//! drops its reference. A file that can't be written does not stop a program. The program
//! continues with its own measurements, and [`InHistory::trouble`] returns the reason.

mod writer;

use std::collections::HashMap;
use std::path::Path;

use crate::{InMemory, Key, Profiles};
use pbs_cosched::Cost;
use pbs_history::{
    Decision, DecisionCost, Error, Fingerprint, Options, Store, Transfer, TransferCost, VariantKey,
    VariantRun,
};
use writer::Writer;

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
    writer: Writer,
}

impl InHistory {
    /// Opens the history in that file, and reads the values of an application. The file is created
    /// if it does not exist.
    ///
    /// # Errors
    ///
    /// The file is not a history, or can't be opened.
    pub fn open(path: &Path, application: &str) -> Result<Self, Error> {
        Self::with(path, application, Options::DEFAULT)
    }

    fn with(path: &Path, application: &str, options: Options) -> Result<Self, Error> {
        let store = Store::open(path, options)?;
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
            writer: Writer::new(store),
        })
    }

    /// Returns the reason for which not all measurements could be stored, if there is one.
    pub fn trouble(&self) -> Option<String> {
        self.writer.trouble().map(|error| error.to_string())
    }

    /// Keeps what was measured so far.
    pub fn keep(&self) {
        self.writer.store();
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
}

impl Profiles for InHistory {
    fn runtime_ns(&self, key: &Key) -> Option<u64> {
        let known = self.runtimes_ns.get(&self.variant(key)).copied();
        known.or_else(|| self.own.runtime_ns(key))
    }

    fn ran(&self, key: &Key, runtime_ns: u64) {
        self.own.ran(key, runtime_ns);
        let variant = self.variant(key);
        let run = VariantRun { variant, ran_ns: runtime_ns.max(1), insns: 0 };
        self.writer.add(|batch| batch.runs.push(run));
    }

    fn transfer_ns(&self, device: &str, bytes: u64) -> Option<u64> {
        let known = self.transfers.get(device).map(|cost| cost.ns(bytes));
        known.or_else(|| self.own.transfer_ns(device, bytes))
    }

    fn transferred(&self, device: &str, bytes: u64, took_ns: u64) {
        self.own.transferred(device, bytes, took_ns);
        let (from, to) = (HOST.into(), device.into());
        let transfer = Transfer { from, to, bytes, took_ns: took_ns.max(1) };
        self.writer.add(|batch| batch.transfers.push(transfer));
    }

    fn cost(&self, scheduler: &str) -> Option<Cost> {
        let known = self.costs.get(scheduler).copied();
        known.or_else(|| self.own.cost(scheduler))
    }

    fn co_scheduled(&self, scheduler: &str, tasks: usize, took_ns: u64) {
        self.own.co_scheduled(scheduler, tasks, took_ns);
        let (scheduler, tasks) = (scheduler.into(), tasks as u64);
        let decision = Decision { scheduler, tasks, took_ns: took_ns.max(1) };
        self.writer.add(|batch| batch.decisions.push(decision));
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

    /// Stores 300 runs while another connection writes, and returns how many of them are stored.
    fn stored(name: &str, options: Options, meanwhile: impl FnOnce(&InHistory)) -> usize {
        let name = format!("pbs-in-history-{}-{name}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&directory).unwrap();
        let file = directory.join("history.db");
        let history = InHistory::with(&file, "filter", options).unwrap();
        let other = rusqlite::Connection::open(&file).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        for task in 0..300 {
            history.ran(&key(&format!("task-{task}"), 1), 2_000);
        }
        meanwhile(&history);
        other.execute_batch("COMMIT").unwrap();
        history.keep();
        assert_eq!(history.trouble(), None);
        drop(history);
        let runs = Store::open(&file, Options::DEFAULT).unwrap().variant_runs().unwrap();
        std::fs::remove_dir_all(&directory).unwrap();
        runs.len()
    }

    /// A process may be stopped while it writes to the file.
    #[test]
    fn measurements_do_not_wait_for_another_process_that_writes() {
        assert_eq!(stored("writes", Options::DEFAULT, |_| ()), 300);
    }

    #[test]
    fn what_could_not_be_written_is_tried_again() {
        let options = Options { wait: std::time::Duration::from_millis(1), ..Options::DEFAULT };
        let stored = stored("again", options, |history| {
            let trouble = std::iter::repeat_with(|| {
                std::thread::sleep(std::time::Duration::from_millis(1));
                history.trouble()
            });
            let trouble = trouble.take(20_000).flatten().next().expect("it fails");
            assert!(trouble.contains("another process is using it"), "{trouble}");
        });
        assert_eq!(stored, 300);
    }
}
