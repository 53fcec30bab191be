// SPDX-License-Identifier: GPL-2.0
//! Sets of requests of which only some may run at the same time, such as an array of Slurm with
//! `%2`.

use std::collections::HashMap;
use std::ops::Range;

use pbs_profile::{Need as Hole, Profile, FOREVER};

use crate::memory::Memory;
use crate::types::{Who, NOTHING};

/// Number of requests of a set that may still be planned beside each other, over time.
#[derive(Clone, Debug)]
struct Throttled {
    most: u64,
    /// Number of unfinished requests of the set.
    requests: u64,
    free: Profile,
}

impl Throttled {
    fn new(most: u64) -> Self {
        Self { most, requests: 0, free: Profile::new(NOTHING + most) }
    }
}

/// Sets by their names. A set exists as long as one of its requests has not ended.
#[derive(Clone, Debug, Default)]
pub(crate) struct Throttles(HashMap<String, Throttled>);

impl Throttles {
    /// Makes the set of a request that comes, with the limit that the request brings. Another limit
    /// than before is valid for all requests of the set that are planned from now on.
    pub(crate) fn prepare(&mut self, who: &Who) {
        let Some(throttle) = &who.throttle else {
            return;
        };
        let most = throttle.most.max(1);
        let set = self.0.entry(throttle.set.clone()).or_insert_with(|| Throttled::new(most));
        let done = if most >= set.most {
            set.free.add(0..FOREVER, most - set.most)
        } else {
            set.free.subtract(0..FOREVER, set.most - most)
        };
        debug_assert_eq!(done, Ok(()));
        set.most = most;
    }

    /// Whether the set of a request exists.
    pub(crate) fn has(&self, who: &Who) -> bool {
        who.throttle.as_ref().is_some_and(|of| self.0.contains_key(&of.set))
    }

    /// Counts a request of a set, or one that is over.
    pub(crate) fn count(&mut self, who: &Who, is_more: bool) {
        let Some(throttle) = &who.throttle else {
            return;
        };
        if is_more {
            let set = self.0.entry(throttle.set.clone());
            set.or_insert_with(|| Throttled::new(throttle.most.max(1))).requests += 1;
        } else if let Some(set) = self.0.get_mut(&throttle.set) {
            set.requests = set.requests.saturating_sub(1);
            if set.requests == 0 {
                self.0.remove(&throttle.set);
            }
        }
    }

    /// Forgets the set of a request that was declined, if it has no other.
    pub(crate) fn declined(&mut self, who: &Who) {
        if let Some(throttle) = &who.throttle {
            if self.0.get(&throttle.set).is_some_and(|set| set.requests == 0) {
                self.0.remove(&throttle.set);
            }
        }
    }

    /// Books the time of a request in its set, or gives it back.
    pub(crate) fn book(&mut self, who: &Who, over: Range<u64>, is_more: bool) {
        let set = who.throttle.as_ref().and_then(|of| self.0.get_mut(&of.set));
        let Some(set) = set.filter(|_| !over.is_empty()) else {
            return;
        };
        let done = if is_more { set.free.subtract(over, 1) } else { set.free.add(over, 1) };
        debug_assert_eq!(done, Ok(()));
    }

    /// Returns the limit of the set of a request, and the condition for one more of its requests.
    pub(crate) fn hole(&self, who: &Who) -> Option<(u64, Hole<'_>)> {
        let set = self.0.get(&who.throttle.as_ref()?.set)?;
        Some((set.most, Hole { profile: &set.free, amount: NOTHING + 1 }))
    }

    pub(crate) fn count_memory(&self, memory: &mut Memory) {
        for set in self.0.values() {
            let bytes = size_of::<Throttled>() + set.free.heap_bytes();
            memory.consumers.count(set.free.step_count(), bytes);
        }
    }

    pub(crate) fn forget_before(&mut self, time_s: u64) {
        for set in self.0.values_mut() {
            set.free.forget_before(time_s);
        }
    }
}
