// SPDX-License-Identifier: GPL-2.0
//! Runtimes and transfers that were measured (§5.6.4): what the seed calls its history.

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pbs_cosched::Cost;

use crate::model::Model;
use crate::region::Transferred;

/// Costs are fitted to so many co-schedulings, the last.
const MOST_COSTS: usize = 256;

/// Key of a measured runtime.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// The kind of the task.
    pub task: String,
    /// The programming model.
    pub model: Model,
    /// Threads.
    pub threads: u32,
    /// The type of device.
    pub device: String,
}

/// Storage of measured runtimes. Several threads may use it at once.
pub trait Profiles: Debug + Send + Sync {
    /// The runtime to expect in ns; nothing: it never ran.
    fn runtime_ns(&self, key: &Key) -> Option<u64>;

    /// A variant ran so long.
    fn ran(&self, key: &Key, runtime_ns: u64);

    /// Returns the expected time of a transfer between the host and a device, in ns; `None`: there
    /// was no transfer yet.
    fn transfer_ns(&self, device: &str, bytes: u64) -> Option<u64>;

    /// Records a transfer.
    fn transferred(&self, device: &str, bytes: u64, took_ns: u64);

    /// Returns the cost of co-scheduling with this scheduler (§4.1); `None`: it was never used.
    fn cost(&self, scheduler: &str) -> Option<Cost>;

    /// A co-scheduling of so many tasks took so long, from RUNNING to DONE.
    fn co_scheduled(&self, scheduler: &str, tasks: usize, took_ns: u64);
}

/// Records transfers, except empty ones: their time says nothing of the rate.
pub(crate) fn learn<'a>(
    profiles: &dyn Profiles,
    transfers: impl IntoIterator<Item = &'a Transferred>,
) {
    for of in transfers.into_iter().filter(|of| of.bytes > 0) {
        profiles.transferred(&of.device, of.bytes, of.took_ns);
    }
}

/// Means of what this process has measured, gone with it.
#[derive(Debug, Default)]
pub struct InMemory {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    runtimes: HashMap<Key, RuntimeSum>,
    transfers: HashMap<String, RuntimeSum>,
    costs: HashMap<String, Vec<(usize, u64)>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct RuntimeSum {
    of: u64,
    ns: u128,
}

impl InMemory {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Profiles for InMemory {
    fn runtime_ns(&self, key: &Key) -> Option<u64> {
        let sum = *self.state().runtimes.get(key)?;
        u64::try_from(sum.ns / u128::from(sum.of.max(1))).ok()
    }

    fn ran(&self, key: &Key, runtime_ns: u64) {
        let mut state = self.state();
        let sum = state.runtimes.entry(key.clone()).or_default();
        sum.of += 1;
        sum.ns += u128::from(runtime_ns);
    }

    fn transfer_ns(&self, device: &str, bytes: u64) -> Option<u64> {
        let sum = *self.state().transfers.get(device)?;
        // Empty transfers alone say nothing of the rate.
        u64::try_from((sum.ns * u128::from(bytes)).checked_div(sum.of.into())?).ok()
    }

    fn transferred(&self, device: &str, bytes: u64, took_ns: u64) {
        let mut state = self.state();
        let sum = state.transfers.entry(device.into()).or_default();
        sum.of += bytes;
        sum.ns += u128::from(took_ns);
    }

    fn cost(&self, scheduler: &str) -> Option<Cost> {
        Cost::fit(self.state().costs.get(scheduler)?)
    }

    fn co_scheduled(&self, scheduler: &str, tasks: usize, took_ns: u64) {
        let mut state = self.state();
        let costs = state.costs.entry(scheduler.into()).or_default();
        if costs.len() == MOST_COSTS {
            costs.remove(0);
        }
        costs.push((tasks, took_ns));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runtimes_and_transfers_are_means() {
        let profiles = InMemory::default();
        let key = Key { task: "t".into(), model: Model::Omp, threads: 2, device: "cpu".into() };
        assert_eq!(profiles.runtime_ns(&key), None);
        profiles.ran(&key, 10);
        profiles.ran(&key, 20);
        assert_eq!(profiles.runtime_ns(&key), Some(15));
        let other = Key { threads: 3, ..key };
        assert_eq!(profiles.runtime_ns(&other), None);
        profiles.transferred("gpu", 100, 50);
        assert_eq!(profiles.transfer_ns("gpu", 10), Some(5));
        assert_eq!(profiles.transfer_ns("cpu", 10), None);
    }

    #[test]
    fn empty_transfers_say_nothing_of_the_rate() {
        let profiles = InMemory::default();
        profiles.transferred("gpu", 0, 50);
        assert_eq!(profiles.transfer_ns("gpu", 10), None);
    }

    #[test]
    fn costs_are_fitted_by_scheduler() {
        let profiles = InMemory::default();
        assert_eq!(profiles.cost("greedy"), None);
        for tasks in [10, 20, 30] {
            profiles.co_scheduled("greedy", tasks, 1000 + 10 * tasks as u64);
        }
        assert_eq!(profiles.cost("greedy").map(|cost| cost.ns(100)), Some(2000));
        assert_eq!(profiles.cost("heft"), None);
    }
}
