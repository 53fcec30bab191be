// SPDX-License-Identifier: GPL-2.0
//! Time that a scheduler takes in a replay.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use pbs_cluster_sim::{NeverRan, Planning, Policy, TraceJob, Work};

/// A scheduler whose calls are measured.
pub(super) struct Timed<'a> {
    policy: &'a mut dyn Policy,
    events: u32,
    took: Duration,
}

impl<'a> Timed<'a> {
    /// Measures a scheduler from now on.
    pub(super) fn new(policy: &'a mut dyn Policy) -> Self {
        Self { policy, events: 0, took: Duration::ZERO }
    }

    /// Returns the work of the scheduler up to now.
    pub(super) fn planning(&self) -> Planning {
        let event_ns = self.took.checked_div(self.events).map(|of| of.as_nanos());
        Planning::of(self.policy, event_ns.and_then(|ns| u64::try_from(ns).ok()))
    }

    fn measure<T>(&mut self, call: impl FnOnce(&mut dyn Policy) -> T) -> T {
        let begin = Instant::now();
        let answer = call(self.policy);
        self.took += begin.elapsed();
        answer
    }
}

impl Policy for Timed<'_> {
    fn name(&self) -> &str {
        self.policy.name()
    }

    fn submit(&mut self, now_s: u64, job: usize, what: &TraceJob) {
        self.measure(|policy| policy.submit(now_s, job, what));
    }

    fn ended(&mut self, now_s: u64, job: usize) {
        self.measure(|policy| policy.ended(now_s, job));
    }

    fn start(&mut self, now_s: u64, started: &mut Vec<usize>) {
        self.events += 1;
        self.measure(|policy| policy.start(now_s, started));
    }

    fn next_s(&self) -> Option<u64> {
        self.policy.next_s()
    }

    fn work(&self) -> Option<Work> {
        self.policy.work()
    }

    fn declined(&self) -> BTreeMap<usize, NeverRan> {
        self.policy.declined()
    }

    fn broken_promises(&self) -> Option<usize> {
        self.policy.broken_promises()
    }
}
