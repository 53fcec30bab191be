// SPDX-License-Identifier: GPL-2.0
//! Runs whose slow-downs are known, with noise.

#![allow(dead_code)]

use pbs_interference::{learn, Beside, Config, Key, Level, Neighbour, Sample, Slowdowns, Work};
use pbs_random::Random;

/// Numbers that differ from those of the code under test for the same seed.
pub(crate) fn seeded(seed: u64) -> Random {
    Random::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d)
}

/// About normal, with deviation 1: the sum of twelve.
fn normal(random: &mut Random) -> f64 {
    (0..12).map(|_| random.unit()).sum::<f64>() - 6.0
}

pub(crate) fn key(fingerprint: u64) -> Key {
    Key { fingerprint, ..Key::default() }
}

pub(crate) fn by(fingerprint: u64) -> Neighbour {
    Neighbour { level: Level::Llc, key: key(fingerprint) }
}

/// Kinds of runs that are generated.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Design {
    /// Alone and beside another by turns.
    Turns,
    /// Each beside another for a part that chance says.
    Parts,
    /// Beside two others, each for a part, and beside both at once.
    Two,
    /// Like `Parts`, but counted by the clock: the work is the same each time.
    Clock,
}

impl Design {
    pub(crate) const ALL: [Self; 4] = [Self::Turns, Self::Parts, Self::Two, Self::Clock];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Turns => "alone and beside another by turns",
            Self::Parts => "beside another for a part of each",
            Self::Two => "beside two, and both at once, for parts",
            Self::Clock => "beside another for a part, clock tier",
        }
    }
}

/// Generated runs, and the slowdowns behind them.
pub(crate) struct GeneratedRuns {
    work: Work,
    noise: f64,
    samples: Vec<Sample>,
    truth: Vec<(Vec<Neighbour>, f64)>,
}

/// Error of one learnt slowdown.
pub(crate) struct LearntError {
    /// Error relative to the true value.
    pub(crate) error: f64,
    /// Whether one further run is in the interval.
    pub(crate) inside: bool,
}

impl GeneratedRuns {
    pub(crate) fn new(design: Design, seed: u64, runs: usize, noise: f64) -> Self {
        let mut random = seeded(seed);
        let mut slowdown = || 1.0 + 1.5 * random.unit();
        let truth = match design {
            Design::Two => vec![
                (vec![by(2)], slowdown()),
                (vec![by(3)], slowdown()),
                (vec![by(2), by(3)], 1.0 + slowdown()),
            ],
            _ => vec![(vec![by(2)], slowdown())],
        };
        let mut samples = Vec::new();
        for run in 0..runs {
            let mut parts: Vec<f64> = truth.iter().map(|_| random.unit()).collect();
            match design {
                Design::Turns => parts[0] = (run % 2) as f64,
                // A part of the run each, and some of it alone.
                Design::Two => {
                    let sum = parts.iter().sum::<f64>() + random.unit();
                    parts.iter_mut().for_each(|part| *part /= sum);
                }
                _ => {}
            }
            samples.push(sample(design, &truth, &parts, noise, &mut random));
        }
        Self {
            work: match design {
                Design::Clock => Work::Constant,
                _ => Work::Retired,
            },
            noise,
            samples,
            truth,
        }
    }

    /// Returns the errors of the learnt slow-downs; `None` where none was learnt.
    pub(crate) fn errors(&self) -> Vec<Option<LearntError>> {
        let learnt = learn(&Config::DEFAULT, self.work, &self.samples);
        let entries = learnt.into_iter().flat_map(|learnt| learnt.entries);
        let entries: Vec<_> = entries.collect();
        let table = Slowdowns::new(entries.clone());
        let mut random = seeded(self.samples[0].insns);
        let truth = self.truth.iter();
        truth
            .map(|(set, truth)| {
                let beside: Vec<_> = set.iter().map(|by| (by.level, by.key)).collect();
                entries.iter().find(|entry| entry.beside == beside)?;
                let told = table.of(key(1), set);
                let further = truth * (self.noise * normal(&mut random)).exp();
                Some(LearntError {
                    error: (told.slowdown / truth - 1.0).abs(),
                    inside: (told.low..=told.high).contains(&further),
                })
            })
            .collect()
    }
}

/// A run beside others for those parts of its time, the rest alone.
fn sample(
    design: Design,
    truth: &[(Vec<Neighbour>, f64)],
    parts: &[f64],
    noise: f64,
    random: &mut Random,
) -> Sample {
    let alone = 1.0 - parts.iter().sum::<f64>();
    let rate: f64 = truth.iter().zip(parts).map(|((_, s), part)| part / s).sum();
    // 10^9 a second alone.
    let factor = (noise * normal(random)).exp();
    let (ran, insns) = match design {
        // As much work each time takes longer beside others.
        Design::Clock => {
            let ran = 1e10 / (alone + rate) * factor;
            (ran, ran)
        }
        _ => {
            let ran = 1e9 * (1.0 + 9.0 * random.unit());
            (ran, ran * (alone + rate) * factor)
        }
    };
    let beside = truth.iter().zip(parts);
    let mut beside: Vec<_> = beside
        .map(|((set, _), part)| Beside {
            neighbours: set.clone(),
            duration_ns: (part * ran) as u64,
        })
        .collect();
    beside.insert(0, Beside { neighbours: Vec::new(), duration_ns: (alone * ran) as u64 });
    Sample { victim: key(1), insns: insns as u64, ran_ns: ran as u64, beside }
}
