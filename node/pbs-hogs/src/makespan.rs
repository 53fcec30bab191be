// SPDX-License-Identifier: GPL-2.0
//! Whether slow-downs that were measured predict how long two hogs take that have
//! so much to do each.

use std::io;

use pbs_interference::{Entry, Fluid, Key, Lane, Level, Sharing, Slowdowns, Task};

use crate::measure::{both, pairs, quantile, Hogs, Setup, Slowed, QUIET};
use crate::Kind;

/// Two hogs that began at once, until both were done.
#[derive(Clone, Debug, PartialEq)]
pub struct Makespan {
    /// The one, which has three fifths of a round to do.
    pub one: Kind,
    /// The other one, which has a whole round to do.
    pub other: Kind,
    /// Time predicted by fluid timing from the measurements.
    pub predicted_ns: u64,
    /// If nobody were slowed.
    pub unaware_ns: u64,
    /// Measured time of each round that counts, ascending.
    pub measured_ns: Vec<u64>,
    /// Rounds in which somebody else had a CPU, which are left out where half are
    /// left.
    pub disturbed: usize,
}

impl Makespan {
    /// A quantile of what was measured, as a part of what was predicted.
    pub fn ratio(&self, part: f64) -> f64 {
        let measured: Vec<_> = self.measured_ns.iter().map(|&ns| ns as f64).collect();
        quantile(&measured, part) / self.predicted_ns.max(1) as f64
    }
}

/// Lets each two kinds do a fixed work at once. `tell` as in [`measure`].
///
/// [`measure`]: crate::measure()
pub fn makespans(
    setup: &Setup,
    hogs: &mut Hogs,
    slowed: &[Slowed],
    tell: &mut dyn FnMut(usize, usize) -> bool,
) -> io::Result<Vec<Makespan>> {
    let table = table(slowed);
    let pairs = pairs(&setup.kinds);
    let total = pairs.len() * setup.rounds;
    let mut found: Vec<_> = pairs
        .iter()
        .filter_map(|&(one, other)| Planned::new(setup, &table, slowed, one, other))
        .collect();
    let mut done = 0;
    'all: for number in 0..setup.rounds {
        for planned in &mut found {
            planned.round(setup, hogs, number)?;
            done += 1;
            if !tell(done, total) {
                break 'all;
            }
        }
    }
    Ok(found.into_iter().map(Planned::makespan).collect())
}

/// Two hogs, what they have to do, and what was measured: how long it took, and
/// whether somebody else had a CPU.
struct Planned {
    pair: [Kind; 2],
    pieces: [u64; 2],
    predicted_ns: u64,
    unaware_ns: u64,
    rounds: Vec<(u64, bool)>,
}

impl Planned {
    fn new(
        setup: &Setup,
        table: &Slowdowns,
        slowed: &[Slowed],
        one: Kind,
        other: Kind,
    ) -> Option<Self> {
        let round_ns = setup.round.as_nanos() as u64;
        let mut pieces = [0; 2];
        let mut tasks = Vec::new();
        let (first, second) = ((one, other), (other, one));
        let planned = [(first, 3 * round_ns / 5), (second, round_ns)];
        for (pieces, ((kind, beside), ns)) in pieces.iter_mut().zip(planned) {
            let mut known = slowed.iter();
            let known = known.find(|of| (of.victim, of.aggressor) == (kind, beside))?;
            let rate = known.alone_per_s.max(f64::MIN_POSITIVE);
            *pieces = ((rate * ns as f64 / 1e9) as u64).max(1);
            tasks.push(Task {
                key: key(kind),
                alone_ns: (*pieces as f64 * 1e9 / rate) as u64,
                ..Task::default()
            });
        }
        let lanes = [0, 1].map(|place| Lane { cpu: place as u32, order: vec![place], fixed: 1 });
        let sharing = Sharing::default();
        let timing = Fluid::new(&tasks, table, &sharing).time(&lanes)?;
        Some(Self {
            pair: [one, other],
            pieces,
            predicted_ns: timing.makespan_ns,
            unaware_ns: tasks.iter().map(|task| task.alone_ns).max()?,
            rounds: Vec::new(),
        })
    }

    fn round(&mut self, setup: &Setup, hogs: &mut Hogs, number: usize) -> io::Result<()> {
        let [one, other] = self.pair;
        let Some((one, other)) = hogs.pair(one, other) else {
            return Ok(());
        };
        let [a, b] = setup.cpus;
        let cpus = if number.is_multiple_of(2) { [a, b] } else { [b, a] };
        // One that takes so long is not measured but stuck.
        let most = 20 * setup.round;
        let did = both(one, other, cpus, self.pieces.map(Some), most)?;
        let took_ns = did[0].took_ns.max(did[1].took_ns);
        let quiet = did.iter().all(|did| did.share() >= QUIET);
        self.rounds.push((took_ns, !quiet));
        Ok(())
    }

    fn makespan(self) -> Makespan {
        let disturbed = self.rounds.iter().filter(|&&(_, disturbed)| disturbed);
        let disturbed = disturbed.count();
        let all = 2 * disturbed > self.rounds.len();
        let counted = self.rounds.iter().filter(|&&(_, disturbed)| all || !disturbed);
        let mut measured_ns: Vec<_> = counted.map(|&(took_ns, _)| took_ns).collect();
        measured_ns.sort_unstable();
        Makespan {
            one: self.pair[0],
            other: self.pair[1],
            predicted_ns: self.predicted_ns,
            unaware_ns: self.unaware_ns,
            measured_ns,
            disturbed,
        }
    }
}

fn key(kind: Kind) -> Key {
    Key { fingerprint: kind as u64, ..Key::default() }
}

fn table(slowed: &[Slowed]) -> Slowdowns {
    let entries = slowed.iter().map(|slowed| Entry {
        victim: key(slowed.victim),
        beside: vec![(Level::Node, key(slowed.aggressor))],
        slowdown: slowed.slowdown(),
        low: slowed.quantile(0.05),
        high: slowed.quantile(0.95),
        samples: slowed.slowdowns.len() as u64,
    });
    Slowdowns::new(entries.collect())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::Sizes;

    fn slowed(victim: Kind, aggressor: Kind, slowdown: f64) -> Slowed {
        Slowed {
            victim,
            aggressor,
            slowdowns: vec![slowdown],
            disturbed: 0,
            alone_per_s: 100_000.0,
        }
    }

    fn setup() -> Setup {
        let cpus = crate::allowed_cpus().unwrap();
        Setup {
            kinds: vec![Kind::Cache, Kind::Compute],
            cpus: [cpus[0], *cpus.last().unwrap()],
            sizes: Sizes { memory_bytes: 1 << 16, cache_bytes: 1 << 12 },
            rounds: 2,
            round: Duration::from_millis(10),
        }
    }

    /// 6 beside 10 with 2 and 1.25 are 12 and 12.4.
    #[test]
    fn two_real_hogs_are_predicted_by_fluid_timing() {
        let (cache, compute) = (Kind::Cache, Kind::Compute);
        let known = [slowed(cache, compute, 2.0), slowed(compute, cache, 1.25)];
        let setup = setup();
        let planned = Planned::new(&setup, &table(&known), &known, cache, compute);
        let planned = planned.expect("all is known");
        assert_eq!(planned.pieces, [600, 1000]);
        assert_eq!(planned.unaware_ns, 10_000_000);
        assert_eq!(planned.predicted_ns, 12_400_000);
        let mut hogs = Hogs::new(&setup).unwrap();
        let found = makespans(&setup, &mut hogs, &known, &mut |_, _| true).unwrap();
        // Of the pairs with themselves nothing is known.
        assert_eq!(found.len(), 1);
        // Of two rounds one is left out if somebody else used the CPUs.
        assert!((1..=2).contains(&found[0].measured_ns.len()));
        assert!(found[0].ratio(0.0) > 0.0 && found[0].ratio(0.0) <= found[0].ratio(1.0));
    }

    #[test]
    fn rounds_with_others_are_left_out_where_enough_are_left() {
        let known = [slowed(Kind::Cache, Kind::Cache, 1.0)];
        let planned = || {
            Planned::new(&setup(), &table(&known), &known, Kind::Cache, Kind::Cache)
                .expect("it is known")
        };
        let mut one = planned();
        one.rounds = vec![(30, false), (90, true), (20, false)];
        let one = one.makespan();
        assert_eq!((one.measured_ns, one.disturbed), (vec![20, 30], 1));
        let mut all = planned();
        all.rounds = vec![(30, true), (90, true), (20, false)];
        assert_eq!(all.makespan().measured_ns, [20, 30, 90]);
    }
}
