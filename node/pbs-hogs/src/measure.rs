// SPDX-License-Identifier: GPL-2.0
//! Measurement of the slow-downs between hogs: each alone, both at once, and each alone again.

use std::collections::TryReserveError;
use std::io;
use std::time::Duration;

use crate::together::together;
use crate::{Did, Hog, Kind, Run, Sizes};

/// Setup of a measurement.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Each with each, and with itself.
    pub kinds: Vec<Kind>,
    /// The two CPUs; hogs change places from round to round.
    pub cpus: [u32; 2],
    /// Amounts of memory that the hogs use.
    pub sizes: Sizes,
    /// Rounds of each pair.
    pub rounds: usize,
    /// Length of a round of a pair: five measurements of equal length.
    pub round: Duration,
}

/// A round counts if both had their CPUs for this part of it: beside others a hog
/// is slowed by them, too.
pub const QUIET: f64 = 0.9;

/// Slow-down of one hog by another.
#[derive(Clone, Debug, PartialEq)]
pub struct Slowed {
    /// Hog that is slowed.
    pub victim: Kind,
    /// Hog that slows the victim.
    pub aggressor: Kind,
    /// Slow-down in each round that counts, ascending.
    pub slowdowns: Vec<f64>,
    /// Rounds in which somebody else had a CPU; they count only where too few are
    /// left.
    pub disturbed: usize,
    /// Pieces in a second, alone: the median.
    pub alone_per_s: f64,
}

impl Slowed {
    /// The median.
    pub fn slowdown(&self) -> f64 {
        quantile(&self.slowdowns, 0.5)
    }

    /// Returns the slow-down below which this part of the rounds was.
    pub fn quantile(&self, part: f64) -> f64 {
        quantile(&self.slowdowns, part)
    }
}

/// Between those that are next to it, of numbers that ascend; 1 of none.
pub fn quantile(ascending: &[f64], part: f64) -> f64 {
    let Some(last) = ascending.len().checked_sub(1) else {
        return 1.0;
    };
    let at = part.clamp(0.0, 1.0) * last as f64;
    let below = at.floor() as usize;
    let (one, other) = (ascending[below], ascending[(below + 1).min(last)]);
    // Who did not come on at all has an infinite slow-down, and the difference of two of those is
    // no number.
    if one == other || at.fract() == 0.0 {
        return one;
    }
    one + (other - one) * at.fract()
}

/// Two hogs of each kind, so that one can run beside itself.
#[derive(Debug)]
pub struct Hogs {
    kinds: Vec<Kind>,
    hogs: [Vec<Hog>; 2],
}

impl Hogs {
    /// Each has touched its memory.
    ///
    /// # Errors
    ///
    /// There is not enough memory for all of them.
    pub fn new(setup: &Setup) -> Result<Self, TryReserveError> {
        let all = |seed| {
            let kinds = setup.kinds.iter();
            kinds.map(|&kind| Hog::new(kind, setup.sizes, seed)).collect::<Result<_, _>>()
        };
        Ok(Self { kinds: setup.kinds.clone(), hogs: [all(1)?, all(2)?] })
    }

    /// The first of one kind and the second of another; `None`: it is not there.
    pub fn pair(&mut self, one: Kind, other: Kind) -> Option<(&mut Hog, &mut Hog)> {
        let place = |kind| self.kinds.iter().position(|&known| known == kind);
        let (one, other) = (place(one)?, place(other)?);
        let [firsts, seconds] = &mut self.hogs;
        Some((&mut firsts[one], &mut seconds[other]))
    }
}

/// Results of both hogs: alone before, together, and alone after.
struct Round {
    before: [Did; 2],
    both: [Did; 2],
    after: [Did; 2],
}

/// Measures all pairs, round by round, so that whatever changes on the machine
/// meanwhile meets all of them. `tell` hears of how many rounds of how many are over; what it
/// answers is whether to go on. What was measured until then is returned.
pub fn measure(
    setup: &Setup,
    hogs: &mut Hogs,
    tell: &mut dyn FnMut(usize, usize) -> bool,
) -> io::Result<Vec<Slowed>> {
    let pairs = pairs(&setup.kinds);
    let mut rounds: Vec<Vec<Round>> = pairs.iter().map(|_| Vec::new()).collect();
    let total = setup.rounds * pairs.len();
    let mut done = 0;
    'all: for number in 0..setup.rounds {
        for (place, &(one, other)) in pairs.iter().enumerate() {
            let Some((one, other)) = hogs.pair(one, other) else {
                continue;
            };
            let [a, b] = setup.cpus;
            let cpus = if number.is_multiple_of(2) { [a, b] } else { [b, a] };
            rounds[place].push(round(one, other, cpus, setup.round / 5)?);
            done += 1;
            if !tell(done, total) {
                break 'all;
            }
        }
    }
    let mut all = Vec::new();
    for (&(one, other), rounds) in pairs.iter().zip(&rounds) {
        if one == other {
            all.push(slowed(one, one, rounds, &[0, 1]));
        } else {
            all.push(slowed(one, other, rounds, &[0]));
            all.push(slowed(other, one, rounds, &[1]));
        }
    }
    all.sort_by_key(|slowed| (slowed.victim, slowed.aggressor));
    Ok(all)
}

/// Each kind with itself and with those after it.
pub(crate) fn pairs(kinds: &[Kind]) -> Vec<(Kind, Kind)> {
    let firsts = kinds.iter().enumerate();
    firsts.flat_map(|(place, &one)| kinds[place..].iter().map(move |&other| (one, other))).collect()
}

fn round(one: &mut Hog, other: &mut Hog, cpus: [u32; 2], each: Duration) -> io::Result<Round> {
    let before = [only(one, cpus[0], each)?, only(other, cpus[1], each)?];
    let both = both(one, other, cpus, [None, None], each)?;
    let after = [only(one, cpus[0], each)?, only(other, cpus[1], each)?];
    Ok(Round { before, both, after })
}

fn only(hog: &mut Hog, cpu: u32, most: Duration) -> io::Result<Did> {
    let run = Run { hog, cpu, pieces: None };
    let did = together(vec![run], most)?;
    did.first().copied().ok_or_else(nobody)
}

/// Both at once, each for as many pieces or as long as the time lasts.
pub(crate) fn both(
    one: &mut Hog,
    other: &mut Hog,
    cpus: [u32; 2],
    pieces: [Option<u64>; 2],
    most: Duration,
) -> io::Result<[Did; 2]> {
    let runs = vec![
        Run { hog: one, cpu: cpus[0], pieces: pieces[0] },
        Run { hog: other, cpu: cpus[1], pieces: pieces[1] },
    ];
    match together(runs, most)?[..] {
        [one, other] => Ok([one, other]),
        _ => Err(nobody()),
    }
}

fn nobody() -> io::Error {
    io::Error::other("a hog did not run")
}

impl Round {
    /// Returns the slow-down of one of the two: its rate alone divided by its rate beside the
    /// other.
    fn slowdown(&self, side: usize) -> f64 {
        self.alone_per_s(side) / self.both[side].rate_per_s().max(f64::MIN_POSITIVE)
    }

    fn alone_per_s(&self, side: usize) -> f64 {
        (self.before[side].rate_per_s() + self.after[side].rate_per_s()) / 2.0
    }

    fn is_quiet(&self) -> bool {
        let all = [self.before, self.both, self.after];
        all.iter().flatten().all(|did| did.share() >= QUIET)
    }
}

fn slowed(victim: Kind, aggressor: Kind, rounds: &[Round], sides: &[usize]) -> Slowed {
    let quiet: Vec<_> = rounds.iter().filter(|round| round.is_quiet()).collect();
    let disturbed = rounds.len() - quiet.len();
    // Too few tell less than many that are somewhat off.
    let counted = if 2 * quiet.len() >= rounds.len() { quiet } else { rounds.iter().collect() };
    let of = |value: &dyn Fn(&Round, usize) -> f64| {
        let rounds = counted.iter();
        let mut values: Vec<_> =
            rounds.flat_map(|round| sides.iter().map(|&side| value(round, side))).collect();
        values.sort_unstable_by(f64::total_cmp);
        values
    };
    Slowed {
        victim,
        aggressor,
        slowdowns: of(&|round, side| round.slowdown(side)),
        disturbed,
        alone_per_s: quantile(&of(&|round, side| round.alone_per_s(side)), 0.5),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn did(pieces: u64, took_ns: u64, ran_ns: u64) -> Did {
        Did { pieces, took_ns, ran_ns }
    }

    /// Alone 100 and 50 pieces a microsecond; beside each other 80 and 40.
    fn quiet(pieces: u64) -> Round {
        let alone = [did(100, 1000, 1000), did(50, 1000, 1000)];
        Round { before: alone, both: [did(pieces, 1000, 1000), did(40, 1000, 1000)], after: alone }
    }

    #[test]
    fn slowdowns_are_of_the_time_that_a_hog_had() {
        let mut disturbed = quiet(10);
        // It had its CPU for an eighth: it is not the aggressor's doing.
        disturbed.both[0] = did(10, 1000, 125);
        let rounds = [quiet(80), quiet(50), disturbed, quiet(100)];
        let found = slowed(Kind::Cache, Kind::Memory, &rounds, &[0]);
        assert_eq!(found.slowdowns, [1.0, 1.25, 2.0]);
        assert_eq!((found.slowdown(), found.disturbed), (1.25, 1));
        assert_eq!(found.alone_per_s, 100.0 * 1e6);
        let other = slowed(Kind::Memory, Kind::Cache, &rounds, &[1]);
        assert_eq!(other.slowdown(), 1.25);
        assert_eq!(slowed(Kind::Memory, Kind::Memory, &rounds, &[0, 1]).slowdowns.len(), 6);
        // Where nearly all were disturbed, they count: it did 10 in 125 of 80 alone.
        let found = slowed(Kind::Cache, Kind::Memory, &rounds[2..3], &[0]);
        assert_eq!(found.slowdowns, [1.25]);
        assert_eq!(slowed(Kind::Cache, Kind::Memory, &[], &[0]).slowdown(), 1.0);
    }

    #[test]
    fn quantiles_lie_between() {
        let numbers = [1.0, 2.0, 4.0];
        assert_eq!(quantile(&numbers, 0.0), 1.0);
        assert_eq!(quantile(&numbers, 0.5), 2.0);
        assert_eq!(quantile(&numbers, 0.75), 3.0);
        let endless = [1.0, f64::INFINITY, f64::INFINITY];
        let found = [0.0, 0.25, 0.5, 0.95].map(|part| quantile(&endless, part));
        assert_eq!(found, [1.0, f64::INFINITY, f64::INFINITY, f64::INFINITY]);
        assert_eq!(quantile(&numbers, 1.0), 4.0);
    }

    /// The test asserts the pairs that are measured, not the values.
    #[test]
    fn each_pair_is_measured_in_both_directions() {
        let cpus = crate::allowed_cpus().unwrap();
        let setup = Setup {
            kinds: vec![Kind::Cache, Kind::Compute],
            cpus: [cpus[0], *cpus.last().unwrap()],
            sizes: Sizes { memory_bytes: 1 << 16, cache_bytes: 1 << 12 },
            rounds: 2,
            round: Duration::from_millis(5),
        };
        let mut hogs = Hogs::new(&setup).unwrap();
        let mut told = Vec::new();
        let found = measure(&setup, &mut hogs, &mut |done, total| {
            told.push((done, total));
            true
        });
        let found = found.unwrap();
        let pairs: Vec<_> = found.iter().map(|of| (of.victim, of.aggressor)).collect();
        let (cache, compute) = (Kind::Cache, Kind::Compute);
        assert_eq!(pairs, [(cache, cache), (cache, compute), (compute, cache), (compute, compute)]);
        assert_eq!(told.last(), Some(&(6, 6)));
        assert!(found.iter().all(|of| of.slowdown() > 0.0));
        // Who does not want to go on gets what there is.
        let found = measure(&setup, &mut hogs, &mut |_, _| false).unwrap();
        assert_eq!(found[0].slowdowns.len(), 2);
        assert!(found[3].slowdowns.is_empty());
        assert!(hogs.pair(Kind::Memory, Kind::Cache).is_none());
    }
}
