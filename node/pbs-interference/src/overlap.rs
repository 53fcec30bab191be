// SPDX-License-Identifier: GPL-2.0
//! Tasks that ran beside each other, and the durations.

use std::collections::{BTreeMap, HashMap};

use crate::{Key, Neighbour, Sample, Sharing};

/// A task had a CPU from one time to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Number of the task's run; all spans of one run have the same number.
    pub run: u64,
    /// Key of the task; `None`: nothing is known of it.
    pub key: Option<Key>,
    /// The CPU.
    pub cpu: u32,
    /// From then on.
    pub start_ns: u64,
    /// Until then.
    pub end_ns: u64,
    /// Instructions retired during the span, in any unit that is the same for the whole run.
    pub insns: u64,
}

/// A sample for each run whose spans these are, with its number, ascending.
///
/// Spans of one CPU must not overlap. A run is left out where it ran beside
/// somebody of whom nothing is known, or was unknown itself.
pub fn samples(spans: &[Span], sharing: &Sharing) -> Vec<(u64, Sample)> {
    let mut levels = HashMap::new();
    let mut level = |one: u32, other: u32| {
        let level = levels.entry((one, other));
        *level.or_insert_with(|| sharing.level(one, other))
    };
    let mut runs: BTreeMap<u64, Run> = BTreeMap::new();
    // Ends before beginnings, so that nobody is beside who only came after it.
    let mut changes: Vec<(u64, bool, usize)> = Vec::new();
    for (place, span) in spans.iter().enumerate() {
        let run = runs.entry(span.run).or_default();
        run.key = span.key;
        run.insns = run.insns.saturating_add(span.insns);
        run.unknown |= span.key.is_none();
        if span.start_ns < span.end_ns {
            changes.push((span.start_ns, true, place));
            changes.push((span.end_ns, false, place));
        }
    }
    changes.sort_unstable();
    // By CPU: the place of who runs.
    let mut running: BTreeMap<u32, usize> = BTreeMap::new();
    let mut before_ns = 0;
    for (at_ns, begins, place) in changes {
        let passed_ns = at_ns - before_ns;
        if passed_ns > 0 {
            for (&cpu, &place) in &running {
                let others = running.iter().filter(|(&other, _)| other != cpu);
                let others = others.map(|(&other, &place)| {
                    let key = spans[place].key?;
                    let level = level(cpu, other);
                    Some(Neighbour { level, key })
                });
                let others: Option<Vec<_>> = others.collect();
                let run = runs.entry(spans[place].run).or_default();
                run.ran(passed_ns, others);
            }
        }
        before_ns = at_ns;
        let cpu = spans[place].cpu;
        if begins {
            running.insert(cpu, place);
        } else if running.get(&cpu) == Some(&place) {
            running.remove(&cpu);
        }
    }
    let runs = runs.into_iter();
    runs.filter_map(|(number, run)| Some((number, run.sample()?))).collect()
}

#[derive(Debug, Default)]
struct Run {
    key: Option<Key>,
    insns: u64,
    unknown: bool,
    beside: BTreeMap<Vec<Neighbour>, u64>,
}

impl Run {
    fn ran(&mut self, passed_ns: u64, others: Option<Vec<Neighbour>>) {
        let Some(mut others) = others else {
            self.unknown = true;
            return;
        };
        others.sort_unstable();
        *self.beside.entry(others).or_default() += passed_ns;
    }

    fn sample(self) -> Option<Sample> {
        if self.unknown || self.beside.is_empty() {
            return None;
        }
        Some(Sample::new(self.key?, self.insns, self.beside))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Level;

    fn key(fingerprint: u64) -> Key {
        Key { fingerprint, ..Key::default() }
    }

    fn span(run: u64, cpu: u32, start_ns: u64, end_ns: u64) -> Span {
        Span { run, key: Some(key(run)), cpu, start_ns, end_ns, insns: end_ns - start_ns }
    }

    fn of(samples: &[(u64, Sample)], fingerprint: u64) -> Vec<(Vec<(Level, u64)>, u64)> {
        let sample = samples.iter().find(|(run, _)| *run == fingerprint);
        let beside = sample.map_or(&[][..], |(_, sample)| &sample.beside);
        let beside = beside.iter().map(|beside| {
            let others = beside.neighbours.iter();
            let others = others.map(|by| (by.level, by.key.fingerprint));
            (others.collect(), beside.duration_ns)
        });
        beside.collect()
    }

    #[test]
    fn a_run_is_cut_wherever_its_co_runners_change() {
        let sharing = Sharing::new(vec![(Level::Llc, vec![0, 1])]);
        let spans = [
            span(1, 0, 0, 100),
            span(2, 1, 20, 50),
            span(3, 1, 50, 70),
            // Beside it, but without a common cache.
            span(4, 2, 60, 130),
        ];
        let found = samples(&spans, &sharing);
        assert_eq!(
            of(&found, 1),
            [
                (vec![], 20),
                (vec![(Level::Llc, 2)], 30),
                (vec![(Level::Llc, 3)], 10),
                (vec![(Level::Llc, 3), (Level::Node, 4)], 10),
                (vec![(Level::Node, 4)], 30),
            ]
        );
        // Who came as it went was not beside it.
        assert_eq!(of(&found, 2), [(vec![(Level::Llc, 1)], 30)]);
        assert_eq!(found[0].1.ran_ns, 100);
        assert_eq!(found[3].1.victim, key(4));
    }

    #[test]
    fn spans_of_one_run_are_one_sample() {
        let spans = [span(1, 0, 0, 10), span(2, 1, 5, 40), span(1, 0, 20, 30), span(1, 0, 50, 60)];
        let found = samples(&spans, &Sharing::default());
        assert_eq!(of(&found, 1), [(vec![], 15), (vec![(Level::Node, 2)], 15)]);
        assert_eq!((found[0].1.insns, found[0].1.ran_ns), (30, 30));
    }

    #[test]
    fn a_span_beside_an_unknown_process_is_discarded() {
        let mut unknown = span(3, 1, 8, 12);
        unknown.key = None;
        let spans = [span(1, 0, 0, 10), unknown, span(2, 0, 12, 20)];
        let found = samples(&spans, &Sharing::default());
        assert_eq!(of(&found, 1), []);
        assert_eq!(of(&found, 2), [(vec![], 8)]);
        assert_eq!(found.len(), 1);
    }
}
