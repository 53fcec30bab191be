// SPDX-License-Identifier: GPL-2.0
//! Pairs that were never measured, from those that were: s − 1 is how much the
//! one suffers (its sensitivity) times how much the other disturbs (its
//! pressure).

use std::collections::{BTreeMap, HashMap};

use pbs_random::student;

use crate::{Key, Level, Prediction, Source};

/// Number of rounds in which sensitivities are computed from pressures and vice versa.
const TURNS: usize = 40;
/// Weight of the prior assumption, as a part of a measurement.
const PRIOR: f64 = 1e-6;
/// A guess is out by this part of what it says, at least.
const LEAST_SPREAD: f64 = 0.5;

/// Sensitivities and pressures.
#[derive(Clone, Debug, Default)]
pub(crate) struct Guesses {
    /// Sensitivity and number of the group, by level and task.
    victims: HashMap<(Level, Key), (f64, usize)>,
    /// Pressure, and the number of the group.
    aggressors: HashMap<(Level, Key), (f64, usize)>,
    groups: Vec<Group>,
}

/// Tasks that are connected by pairs that were measured. Nothing follows from
/// one group for another.
#[derive(Clone, Copy, Debug)]
struct Group {
    /// Difference between the measurements and the values that follow from the factors.
    spread: f64,
    /// The least of its pairs.
    samples: u64,
}

/// Places of a victim and an aggressor, and s − 1.
#[derive(Clone, Copy, Debug)]
struct Pair {
    victim: usize,
    aggressor: usize,
    excess: f64,
    samples: u64,
}

impl Guesses {
    /// From pairs that were measured.
    pub(crate) fn new(mut pairs: Vec<(Level, Key, Key, Prediction)>) -> Self {
        // What is reckoned must not depend on the order of a hash table.
        pairs.sort_unstable_by_key(|&(level, victim, aggressor, _)| (level, victim, aggressor));
        let mut victims: BTreeMap<(Level, Key), usize> = BTreeMap::new();
        let mut aggressors: BTreeMap<(Level, Key), usize> = BTreeMap::new();
        let mut known = Vec::new();
        for (level, victim, aggressor, told) in pairs {
            let next = victims.len();
            let victim = *victims.entry((level, victim)).or_insert(next);
            let next = aggressors.len();
            let aggressor = *aggressors.entry((level, aggressor)).or_insert(next);
            known.push(Pair {
                victim,
                aggressor,
                excess: (told.slowdown - 1.0).max(0.0),
                samples: told.samples,
            });
        }
        let (group_of_victim, group_of_aggressor, count) =
            connected(&known, victims.len(), aggressors.len());
        let mut guesses = Self::default();
        let mut sensitivity = vec![0.0; victims.len()];
        let mut pressure = vec![0.0; aggressors.len()];
        for group in 0..count {
            let pairs = known.iter();
            let pairs: Vec<_> =
                pairs.filter(|pair| group_of_victim[pair.victim] == group).copied().collect();
            let group = fit(&pairs, &mut sensitivity, &mut pressure);
            guesses.groups.push(group);
        }
        for (who, place) in victims {
            let factor = (sensitivity[place], group_of_victim[place]);
            guesses.victims.insert(who, factor);
        }
        for (who, place) in aggressors {
            let factor = (pressure[place], group_of_aggressor[place]);
            guesses.aggressors.insert(who, factor);
        }
        guesses
    }

    /// Returns the guess for a pair; `None`: nothing follows for it.
    pub(crate) fn of(&self, level: Level, victim: Key, aggressor: Key) -> Option<Prediction> {
        let &(sensitivity, group) = self.victims.get(&(level, victim))?;
        let &(pressure, same) = self.aggressors.get(&(level, aggressor))?;
        if group != same {
            return None;
        }
        let Group { spread, samples } = self.groups[group];
        let excess = (sensitivity * pressure).min(crate::MOST_SLOWDOWN - 1.0);
        let out = spread.max(LEAST_SPREAD * excess);
        Some(Prediction {
            slowdown: 1.0 + excess,
            low: (1.0 + excess - out).max(crate::LEAST_SLOWDOWN),
            high: (1.0 + excess + out).min(crate::MOST_SLOWDOWN),
            samples,
            source: Source::Guess,
        })
    }
}

/// The group of each victim and of each aggressor, and how many groups there are.
fn connected(pairs: &[Pair], victims: usize, aggressors: usize) -> (Vec<usize>, Vec<usize>, usize) {
    // Each points to one before it, or to itself.
    let mut parent: Vec<usize> = (0..victims + aggressors).collect();
    fn root(parent: &mut [usize], mut at: usize) -> usize {
        while parent[at] != at {
            parent[at] = parent[parent[at]];
            at = parent[at];
        }
        at
    }
    for pair in pairs {
        let one = root(&mut parent, pair.victim);
        let other = root(&mut parent, victims + pair.aggressor);
        let (least, most) = (one.min(other), one.max(other));
        parent[most] = least;
    }
    let mut numbers = HashMap::new();
    let groups: Vec<_> = (0..victims + aggressors)
        .map(|at| {
            let next = numbers.len();
            *numbers.entry(root(&mut parent, at)).or_insert(next)
        })
        .collect();
    let (of_victims, of_aggressors) = groups.split_at(victims);
    (of_victims.to_vec(), of_aggressors.to_vec(), numbers.len())
}

/// Least squares by turns: with the pressures fixed the sensitivities are known,
/// and the other way round.
fn fit(pairs: &[Pair], sensitivity: &mut [f64], pressure: &mut [f64]) -> Group {
    let mean = pairs.iter().map(|pair| pair.excess).sum::<f64>() / pairs.len() as f64;
    for pair in pairs {
        sensitivity[pair.victim] = 1.0;
        pressure[pair.aggressor] = mean;
    }
    for _ in 0..TURNS {
        turn(pairs, pressure, mean, |pair| (pair.aggressor, sensitivity[pair.victim]));
        turn(pairs, sensitivity, 1.0, |pair| (pair.victim, pressure[pair.aggressor]));
    }
    let off = pairs.iter().map(|pair| {
        let off = pair.excess - sensitivity[pair.victim] * pressure[pair.aggressor];
        off * off
    });
    let mut victims: Vec<_> = pairs.iter().map(|pair| pair.victim).collect();
    let mut aggressors: Vec<_> = pairs.iter().map(|pair| pair.aggressor).collect();
    for places in [&mut victims, &mut aggressors] {
        places.sort_unstable();
        places.dedup();
    }
    let freedom = (pairs.len() + 1).saturating_sub(victims.len() + aggressors.len());
    let freedom = freedom.max(1) as f64;
    Group {
        spread: student(freedom) * libm::sqrt(off.sum::<f64>() / freedom),
        samples: pairs.iter().map(|pair| pair.samples).min().unwrap_or(0),
    }
}

/// Sets the factors on one side. `of` tells which of them a pair has, and what it
/// has on the other side; who has only zeros there gets what was thought.
fn turn(pairs: &[Pair], factors: &mut [f64], thought: f64, of: impl Fn(&Pair) -> (usize, f64)) {
    let mut sums: BTreeMap<usize, (f64, f64)> = BTreeMap::new();
    for pair in pairs {
        let (place, other) = of(pair);
        let sum = sums.entry(place).or_insert((PRIOR * thought, PRIOR));
        sum.0 += pair.excess * other;
        sum.1 += other * other;
    }
    for (place, (product, square)) in sums {
        factors[place] = product / square;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(fingerprint: u64) -> Key {
        Key { fingerprint, ..Key::default() }
    }

    fn pair(victim: u64, aggressor: u64, slowdown: f64) -> (Level, Key, Key, Prediction) {
        let told =
            Prediction { slowdown, source: Source::Measured, samples: 4, ..Prediction::ALONE };
        (Level::Llc, key(victim), key(aggressor), told)
    }

    /// Sensitivities 1, 2 and 3, pressures 0.1, 0.2 and 0.4; one pair is left out.
    #[test]
    fn an_unmeasured_pair_is_sensitivity_times_pressure() {
        let mut pairs = Vec::new();
        for (victim, sensitivity) in [(1, 1.0), (2, 2.0), (3, 3.0)] {
            for (aggressor, pressure) in [(11, 0.1), (12, 0.2), (13, 0.4)] {
                pairs.push(pair(victim, aggressor, 1.0 + sensitivity * pressure));
            }
        }
        let left_out = pairs.pop();
        let guesses = Guesses::new(pairs);
        let told = guesses.of(Level::Llc, key(3), key(13));
        let told = told.filter(|told| (told.slowdown - 2.2).abs() < 1e-3);
        let told = told.expect("it is 1 + 3 · 0.4");
        assert_eq!((told.source, told.samples), (Source::Guess, 4));
        assert!(told.low < 2.2 && told.high > 2.2);
        assert!(left_out.is_some());
        // Of another level nothing is known, nor of who was never there.
        assert_eq!(guesses.of(Level::Smt, key(3), key(13)), None);
        assert_eq!(guesses.of(Level::Llc, key(3), key(1)), None);
    }

    #[test]
    fn unconnected_groups_predict_nothing_for_each_other() {
        let guesses = Guesses::new(vec![pair(1, 2, 1.5), pair(3, 4, 1.2)]);
        assert_eq!(guesses.of(Level::Llc, key(1), key(4)), None);
        let guesses = Guesses::new(vec![pair(1, 2, 1.5), pair(3, 4, 1.2), pair(1, 4, 1.1)]);
        let told = guesses.of(Level::Llc, key(3), key(2));
        assert!(told.is_some_and(|told| (told.slowdown - 2.0).abs() < 1e-3));
    }

    #[test]
    fn who_disturbs_nobody_disturbs_nobody() {
        let guesses = Guesses::new(vec![pair(1, 2, 1.0), pair(1, 3, 0.97), pair(4, 2, 1.0)]);
        let told = guesses.of(Level::Llc, key(4), key(3));
        assert!(told.is_some_and(|told| (told.slowdown - 1.0).abs() < 1e-3));
    }
}
