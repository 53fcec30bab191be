// SPDX-License-Identifier: GPL-2.0
//! The table of slow-downs, and what it says of others than it has.

use std::collections::HashMap;

use crate::guess::Guesses;
use crate::{Key, Level, Neighbour};

/// No slow-down is thought to be less: a task that runs ten times as fast beside
/// others as alone was not measured alone.
pub const LEAST_SLOWDOWN: f64 = 0.1;
/// Nor more.
pub const MOST_SLOWDOWN: f64 = 1000.0;

/// Source of a slow-down, the surest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// The task runs alone.
    Alone,
    /// Just these were measured beside the task.
    Measured,
    /// Each of these was measured beside it, but not all at once:
    /// 1 + Σ(s − 1).
    Sum,
    /// At least one was never measured beside it, but both were beside others:
    /// sensitivity times pressure.
    Guess,
    /// At least one was never measured: 1 is assumed for it.
    Unknown,
}

impl Source {
    /// In tables and in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Alone => "alone",
            Self::Measured => "measured",
            Self::Sum => "sum",
            Self::Guess => "guess",
            Self::Unknown => "unknown",
        }
    }
}

/// Predicted slow-down of a task.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    /// Time of the task divided by its time alone.
    pub slowdown: f64,
    /// One of twenty is below. Where it is a guess or unknown it says no more than
    /// how little is known.
    pub low: f64,
    /// One of twenty is above.
    pub high: f64,
    /// Runs that it rests on; of a sum that of the least known pair.
    pub samples: u64,
    /// Source of the prediction.
    pub source: Source,
}

impl Prediction {
    /// Prediction for a task that runs alone.
    pub const ALONE: Self =
        Self { slowdown: 1.0, low: 1.0, high: 1.0, samples: 0, source: Source::Alone };
}

/// Measurement of one task beside some others. `W` identifies the tasks: a [`Key`], or a name in a
/// file.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry<W> {
    /// Task that is slowed.
    pub victim: W,
    /// Tasks that slow it: one, or several at once, each with the resource that it shares with the
    /// victim.
    pub beside: Vec<(Level, W)>,
    /// Time of the victim divided by its time alone.
    pub slowdown: f64,
    /// One of twenty is below.
    pub low: f64,
    /// One of twenty is above.
    pub high: f64,
    /// Runs that it rests on.
    pub samples: u64,
}

impl<W> Entry<W> {
    fn prediction(&self) -> Prediction {
        let sane = |slowdown: f64| {
            if slowdown.is_nan() {
                1.0
            } else {
                slowdown.clamp(LEAST_SLOWDOWN, MOST_SLOWDOWN)
            }
        };
        Prediction {
            slowdown: sane(self.slowdown),
            low: sane(self.low.min(self.slowdown)),
            high: sane(self.high.max(self.slowdown)),
            samples: self.samples,
            source: Source::Measured,
        }
    }
}

/// The table of slow-downs.
#[derive(Clone, Debug, Default)]
pub struct Slowdowns {
    entries: Vec<Entry<Key>>,
    /// Predictions by the victim and its one neighbour.
    pairs: HashMap<(Key, Neighbour), Prediction>,
    /// Predictions by the victim, for several neighbours, ascending.
    sets: HashMap<Key, Vec<(Vec<Neighbour>, Prediction)>>,
    guesses: Guesses,
    /// The greatest that was measured.
    worst: f64,
}

impl Slowdowns {
    /// The table of those entries. Of two for the same the later one counts; one
    /// beside nobody says nothing.
    pub fn new(entries: Vec<Entry<Key>>) -> Self {
        let mut table = Self::default();
        for entry in &entries {
            let prediction = entry.prediction();
            let neighbours = entry.beside.iter();
            let mut neighbours: Vec<_> =
                neighbours.map(|&(level, key)| Neighbour { level, key }).collect();
            neighbours.sort_unstable();
            match neighbours[..] {
                [] => {}
                [one] => {
                    table.pairs.insert((entry.victim, one), prediction);
                }
                _ => {
                    let sets = table.sets.entry(entry.victim).or_default();
                    sets.retain(|(known, _)| *known != neighbours);
                    sets.push((neighbours, prediction));
                }
            }
        }
        let pairs = table.pairs.values();
        let all = pairs.chain(table.sets.values().flatten().map(|(_, set)| set));
        table.worst = all.map(|known| known.slowdown).fold(1.0, f64::max);
        let pairs = table.pairs.iter();
        let pairs = pairs.map(|(&(victim, by), pair)| (by.level, victim, by.key, *pair));
        table.guesses = Guesses::new(pairs.collect());
        table.entries = entries;
        table
    }

    /// Returns the measurements.
    pub fn entries(&self) -> &[Entry<Key>] {
        &self.entries
    }

    /// Returns the slow-down of `victim` beside these neighbours, in any order.
    ///
    /// A measurement takes precedence. For several neighbours that were not measured at once, the
    /// result is 1 + Σ(s − 1) of each. For a pair that was not measured, the result is a guess from
    /// other measurements of both, or 1.
    pub fn of(&self, victim: Key, beside: &[Neighbour]) -> Prediction {
        match *beside {
            [] => Prediction::ALONE,
            [one] => self.pair(victim, one),
            _ => match self.set(victim, beside) {
                Some(measured) => measured,
                None => self.sum(victim, beside),
            },
        }
    }

    /// The greatest slow-down that was measured; 1 if none was. By it the ceiling of
    /// slots is to be raised.
    pub fn worst(&self) -> f64 {
        self.worst.max(1.0)
    }

    fn pair(&self, victim: Key, by: Neighbour) -> Prediction {
        // Who shares a core shares its caches, too: what is known of two that share less
        // says more than a guess.
        let levels = Level::ALL.into_iter().filter(|level| *level >= by.level);
        for level in levels {
            if let Some(measured) = self.pairs.get(&(victim, Neighbour { level, ..by })) {
                let source = if level == by.level { measured.source } else { Source::Guess };
                return Prediction { source, ..*measured };
            }
        }
        let guess = self.guesses.of(by.level, victim, by.key);
        guess.unwrap_or(Prediction {
            high: self.worst(),
            source: Source::Unknown,
            ..Prediction::ALONE
        })
    }

    fn set(&self, victim: Key, beside: &[Neighbour]) -> Option<Prediction> {
        let sets = self.sets.get(&victim)?;
        let mut beside = beside.to_vec();
        beside.sort_unstable();
        let (_, measured) = sets.iter().find(|(known, _)| *known == beside)?;
        Some(*measured)
    }

    fn sum(&self, victim: Key, beside: &[Neighbour]) -> Prediction {
        let (mut excess, mut below, mut above) = (0.0, 0.0, 0.0);
        let mut samples = u64::MAX;
        let mut source = Source::Sum;
        for &by in beside {
            let pair = self.pair(victim, by);
            excess += pair.slowdown - 1.0;
            // What is not known of one has nothing to do with the others.
            below += (pair.slowdown - pair.low) * (pair.slowdown - pair.low);
            above += (pair.high - pair.slowdown) * (pair.high - pair.slowdown);
            samples = samples.min(pair.samples);
            source = source.max(pair.source);
        }
        let bounded = |slowdown: f64| slowdown.clamp(LEAST_SLOWDOWN, MOST_SLOWDOWN);
        let slowdown = 1.0 + excess;
        Prediction {
            slowdown: bounded(slowdown),
            low: bounded(slowdown - libm::sqrt(below)),
            high: bounded(slowdown + libm::sqrt(above)),
            samples,
            source,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(fingerprint: u64) -> Key {
        Key { fingerprint, ..Key::default() }
    }

    fn entry(victim: u64, beside: &[u64], slowdown: f64) -> Entry<Key> {
        let beside = beside.iter().map(|&by| (Level::Llc, key(by)));
        Entry {
            victim: key(victim),
            beside: beside.collect(),
            slowdown,
            low: slowdown - 0.1,
            high: slowdown + 0.2,
            samples: 8,
        }
    }

    /// A measurement on CPUs that share less also applies to CPUs that share more, but not vice
    /// versa.
    #[test]
    fn closer_sharing_slows_at_least_as_much() {
        let table = Slowdowns::new(vec![entry(1, &[2], 1.5)]);
        let told = |level| {
            let by = Neighbour { level, key: key(2) };
            table.of(key(1), &[by])
        };
        for level in [Level::Smt, Level::L2, Level::Llc] {
            assert_eq!(told(level).slowdown, 1.5, "{level}");
        }
        assert_eq!(told(Level::Node).source, Source::Unknown);
    }

    fn beside(keys: &[u64]) -> Vec<Neighbour> {
        let keys = keys.iter();
        keys.map(|&by| Neighbour { level: Level::Llc, key: key(by) }).collect()
    }

    #[test]
    fn measured_values_take_precedence_over_computed_ones() {
        let table = Slowdowns::new(vec![
            entry(1, &[2], 1.5),
            entry(1, &[3], 1.2),
            entry(2, &[1], 1.05),
            entry(1, &[3, 2, 2], 2.75),
        ]);
        let of = |victim, others: &[u64]| {
            let told = table.of(key(victim), &beside(others));
            (told.slowdown, told.source, told.samples)
        };
        assert_eq!(of(1, &[]), (1.0, Source::Alone, 0));
        // Who slows is not slowed as much.
        assert_eq!(of(1, &[2]), (1.5, Source::Measured, 8));
        assert_eq!(of(2, &[1]), (1.05, Source::Measured, 8));
        // In whatever order, and each as often as it is there.
        assert_eq!(of(1, &[2, 3, 2]), (2.75, Source::Measured, 8));
        let (slowdown, source, _) = of(1, &[3, 2]);
        assert!((slowdown - 1.7).abs() < 1e-12);
        assert_eq!(source, Source::Sum);
        assert_eq!(table.worst(), 2.75);
    }

    #[test]
    fn a_sum_is_less_certain_than_its_parts_and_names_unknown_ones() {
        let table = Slowdowns::new(vec![entry(1, &[2], 1.5), entry(1, &[3], 1.2)]);
        let sum = table.of(key(1), &beside(&[2, 3]));
        assert!((sum.slowdown - sum.low - libm::sqrt(0.02)).abs() < 1e-12);
        assert!((sum.high - sum.slowdown - libm::sqrt(0.08)).abs() < 1e-12);
        let unknown = table.of(key(1), &beside(&[9]));
        assert_eq!(unknown.source, Source::Unknown);
        assert_eq!((unknown.slowdown, unknown.high), (1.0, 1.5));
        // One that is unknown makes the whole unknown.
        let both = table.of(key(1), &beside(&[2, 9]));
        assert_eq!((both.source, both.samples), (Source::Unknown, 0));
        assert!((both.slowdown - 1.5).abs() < 1e-12);
        // Another level is another thing.
        let near = Neighbour { level: Level::Smt, key: key(2) };
        assert_eq!(table.of(key(1), &[near]).source, Source::Guess);
        let far = Neighbour { level: Level::Node, ..near };
        assert_eq!(table.of(key(1), &[far]).source, Source::Unknown);
    }

    #[test]
    fn nonsense_is_bounded() {
        let mut nonsense = entry(1, &[2], f64::NAN);
        (nonsense.low, nonsense.high) = (f64::INFINITY, f64::NEG_INFINITY);
        let table = Slowdowns::new(vec![nonsense, entry(1, &[3], -4.0), entry(1, &[4], 1e9)]);
        for by in [2, 3, 4] {
            let told = table.of(key(1), &beside(&[by, by]));
            assert!((LEAST_SLOWDOWN..=MOST_SLOWDOWN).contains(&told.slowdown));
            assert!(told.low <= told.slowdown && told.slowdown <= told.high);
        }
    }
}
