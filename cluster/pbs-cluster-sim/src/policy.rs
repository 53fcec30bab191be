// SPDX-License-Identifier: GPL-2.0
//! Interface of all schedulers.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::{NeverRan, TraceJob};

/// Work of a scheduler that searches for plans.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Work {
    /// Number of times at which something happened.
    pub events: u64,
    /// Number of searches.
    pub plans: u64,
    /// Number of orders of jobs that were tried.
    pub orders: u64,
    /// Number of jobs that were placed, over all orders.
    pub placements: u64,
}

/// A scheduler in virtual time, of the caller's or of this crate.
///
/// Jobs are known by their place in the trace, counted from 0. At each time at which
/// something happens, ends are told first, then what comes, in the order of the trace; then
/// it is asked once what starts.
pub trait Policy {
    /// Name of the policy in tables.
    fn name(&self) -> &str;

    /// A job comes. `what.run_s` is what it asks for: how long it really runs is told to
    /// nobody. What the cluster can never run is not to be kept; it counts as declined.
    fn submit(&mut self, now_s: u64, job: usize, what: &TraceJob);

    /// A job that was started has ended, at the end of the time that it asked for or before.
    fn ended(&mut self, now_s: u64, job: usize);

    /// Adds the jobs that start now to `started`. Each must have been submitted, and must not have
    /// been started before; otherwise [`replay`](crate::replay) ends with a fault.
    fn start(&mut self, now_s: u64, started: &mut Vec<usize>);

    /// Latest time at which the policy must be called again if nothing happens before. A time that
    /// is not after the last call is ignored.
    fn next_s(&self) -> Option<u64> {
        None
    }

    /// Returns the work up to now, for a scheduler that searches for plans.
    fn work(&self) -> Option<Work> {
        None
    }

    /// Returns the jobs that the policy has declined up to now, with the reasons. Jobs that need
    /// more cores than there are can be left out.
    fn declined(&self) -> BTreeMap<usize, NeverRan> {
        BTreeMap::new()
    }

    /// Returns the number of jobs that started later than promised, for a scheduler that promises
    /// starts.
    fn broken_promises(&self) -> Option<usize> {
        None
    }
}
