// SPDX-License-Identifier: GPL-2.0
//! Counts of the calls of each method, and of the times until their answers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pbs_node_api::{AnswersWithin, MethodMetrics};

use crate::inbox::METHODS;

/// Bounds of the times of answers that are counted.
const BOUNDS: [Duration; 9] = [
    Duration::from_millis(1),
    Duration::from_millis(5),
    Duration::from_millis(20),
    Duration::from_millis(50),
    Duration::from_millis(100),
    Duration::from_millis(250),
    Duration::from_secs(1),
    Duration::from_secs(5),
    Duration::from_secs(30),
];

/// Counts since the start of the service. All clones have the same ones.
#[derive(Clone, Debug, Default)]
pub struct Calls(Arc<Mutex<BTreeMap<&'static str, Count>>>);

/// Counts of one method.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    calls: u64,
    refused: u64,
    answer_ns: u64,
    /// Answers that took longer than the bound before, and not longer than this one.
    within: [u64; BOUNDS.len()],
}

impl Calls {
    fn counts(&self) -> MutexGuard<'_, BTreeMap<&'static str, Count>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts an answer that came after that time.
    pub fn answered(&self, method: &'static str, after: Duration, is_refused: bool) {
        let mut counts = self.counts();
        let count = counts.entry(method).or_default();
        count.calls += 1;
        count.refused += u64::from(is_refused);
        count.answer_ns = count.answer_ns.saturating_add(after.as_nanos() as u64);
        if let Some(bound) = BOUNDS.iter().position(|&bound| after <= bound) {
            count.within[bound] += 1;
        }
    }

    /// The counts of all methods, also of those that were not called: a counter that appears with
    /// its first call has not grown for who reads it.
    pub fn methods(&self) -> Vec<MethodMetrics> {
        let counts = self.counts();
        let none = Count::default();
        let all: BTreeSet<_> = METHODS.into_iter().chain(counts.keys().copied()).collect();
        let of = |method| counts.get(method).unwrap_or(&none).metrics(method);
        all.into_iter().map(of).collect()
    }
}

impl Count {
    fn metrics(&self, method: &str) -> MethodMetrics {
        let mut calls = 0;
        let within = BOUNDS.iter().zip(self.within).map(|(bound, more)| {
            calls += more;
            AnswersWithin { within_ns: bound.as_nanos() as u64, calls }
        });
        MethodMetrics {
            method: method.into(),
            calls: self.calls,
            refused: self.refused,
            answer_ns: self.answer_ns,
            answers: within.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each bound counts all answers up to it; an answer beyond the last one counts in the sum.
    #[test]
    fn answers_are_counted_up_to_each_bound() {
        let calls = Calls::default();
        for (ms, is_refused) in [(0, false), (1, false), (2, true), (600, false), (60_000, false)] {
            calls.clone().answered("Show", Duration::from_millis(ms), is_refused);
        }
        calls.answered("List", Duration::from_millis(7), false);
        let methods = calls.methods();
        assert_eq!(methods.len(), METHODS.len());
        let called = methods.iter().filter(|it| it.calls > 0);
        let names: Vec<_> = called.map(|it| (&*it.method, it.calls, it.refused)).collect();
        assert_eq!(names, [("List", 1, 0), ("Show", 5, 1)]);
        let show = methods.iter().find(|it| it.method == "Show").unwrap();
        assert_eq!(show.answer_ns, 60_603_000_000);
        let mut within = show.answers.iter().map(|it| (it.within_ns / 1_000_000, it.calls));
        let wanted = [(1, 2), (5, 3), (20, 3), (50, 3), (100, 3), (250, 3), (1000, 4)];
        assert_eq!(within.clone().take(7).collect::<Vec<_>>(), wanted);
        assert_eq!(within.next_back(), Some((30_000, 4)));
    }
}
