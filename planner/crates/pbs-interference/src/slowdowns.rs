// SPDX-License-Identifier: GPL-2.0
//! The table of slow-downs, and what it says of others than it has.

use std::collections::HashMap;

use crate::{Key, Level, Neighbour};

/// Where a slow-down comes from, the surest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// There is nobody to be slowed by.
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

/// By how much a task is slowed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    /// Its time over its time alone.
    pub slowdown: f64,
    /// One of twenty is below.
    pub low: f64,
    /// One of twenty is above.
    pub high: f64,
    /// Runs that it rests on; of a sum that of the least known pair.
    pub samples: u64,
    /// Where it comes from.
    pub source: Source,
}

/// What was measured of one task beside some others. `W` says who they are:
/// a [`Key`], or a name in a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry<W> {
    /// Who is slowed.
    pub victim: W,
    /// By whom: one, or several at once.
    pub beside: Vec<(Level, W)>,
    /// Its time over its time alone.
    pub slowdown: f64,
    /// One of twenty is below.
    pub low: f64,
    /// One of twenty is above.
    pub high: f64,
    /// Runs that it rests on.
    pub samples: u64,
}

/// The table of slow-downs.
#[derive(Clone, Debug, Default)]
pub struct Slowdowns {
    entries: Vec<Entry<Key>>,
    /// By the victim and one neighbour.
    pairs: HashMap<(Key, Neighbour), Prediction>,
}

impl Slowdowns {
    /// The table of those entries; of two for the same the later one counts.
    pub fn new(entries: Vec<Entry<Key>>) -> Self {
        let mut table = Self::default();
        for entry in &entries {
            if let [(level, key)] = entry.beside[..] {
                let neighbour = Neighbour { level, key };
                let prediction = Prediction {
                    slowdown: entry.slowdown,
                    low: entry.low,
                    high: entry.high,
                    samples: entry.samples,
                    source: Source::Measured,
                };
                table.pairs.insert((entry.victim, neighbour), prediction);
            }
        }
        table.entries = entries;
        table
    }

    /// What was measured.
    pub fn entries(&self) -> &[Entry<Key>] {
        &self.entries
    }

    /// By how much `victim` is slowed beside those, in whatever order.
    pub fn of(&self, victim: Key, beside: &[Neighbour]) -> Prediction {
        let mut sum = Prediction {
            slowdown: 1.0,
            low: 1.0,
            high: 1.0,
            samples: 0,
            source: Source::Alone,
        };
        for &neighbour in beside {
            if let Some(pair) = self.pairs.get(&(victim, neighbour)) {
                sum.slowdown += pair.slowdown - 1.0;
            }
        }
        sum
    }
}
