// SPDX-License-Identifier: GPL-2.0
//! Slow-downs from runs.
//!
//! A task that runs for d_c beside the others c, and retires ρ_c instructions a
//! nanosecond then, has retired I = Σ d_c·ρ_c at its end. Of runs I and all d_c
//! are known, so the ρ_c can be solved for; the slow-down beside c is ρ_∅/ρ_c.
//!
//! - All is reckoned on logarithms, as lengths are in the history: runs scatter
//!   in proportion, log I = log Σ d_c·ρ_c + noise, and log(ρ_∅/ρ_c) is what is
//!   sought. It is solved by the method of Gauss and Newton.
//! - The slow-down is drawn towards 1 (a ridge) as if it had been measured once
//!   with the uncertainty [`Config::slowdown_spread_permille`]. So it is 1 where
//!   nothing is known, and what is told by less than that is not learnt.
//! - Each run counts for less than the one after it, and one that is far off for
//!   no more than [`Config::stray_permille`] of the spread.
//! - The interval is that of Student's t distribution for one further run.
//!
//! On the clock tier the count is the time itself. What a run does is then taken
//! for constant ([`Work::Constant`]): T_∅ = Σ d_c/s_c, which is the same system
//! with I the same for all runs.

use std::collections::BTreeMap;

use pbs_random::student;

use crate::solve::{inverse, solve};
use crate::{Entry, Key, Neighbour, Sample, LEAST_SLOWDOWN, MOST_SLOWDOWN};

/// Numbers of learning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Reduction of weight from each run to the one before it, in thousandths, 0 to 900. It is less
    /// than for lengths, since those change with every input.
    pub forget_permille: u64,
    /// Assumed spread of runs before there are any, in thousandths, 1 to 1000.
    pub spread_permille: u64,
    /// For how many runs that counts, 2 to 100.
    pub spread_runs: u64,
    /// The least spread that is believed, in thousandths, 1 to 1000.
    pub least_spread_permille: u64,
    /// Deviation above which a run is a stray one, in thousandths of the spread, 1000 to 100000.
    pub stray_permille: u64,
    /// Assumed deviation of slow-downs from 1, in thousandths, 1 to 10000.
    pub slowdown_spread_permille: u64,
}

impl Config {
    /// Default configuration.
    pub const DEFAULT: Self = Self {
        forget_permille: 50,
        spread_permille: 50,
        spread_runs: 3,
        least_spread_permille: 1,
        stray_permille: 3000,
        slowdown_spread_permille: 500,
    };

    /// The variance of slow-downs beforehand, of their logarithms.
    fn thought(&self) -> f64 {
        square(share(self.slowdown_spread_permille.max(1)))
    }
}

impl Default for Config {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Measure of the work of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// The instructions that it retired.
    Retired,
    /// The work is the same in all runs: they are counted by the clock.
    Constant,
}

/// Results from the runs of one task.
#[derive(Clone, Debug, PartialEq)]
pub struct Learnt {
    /// The task.
    pub victim: Key,
    /// Rate alone, from its own runs; `None` if work is constant.
    pub alone_insns_per_s: Option<f64>,
    /// Time alone; `None` if work is not constant.
    pub alone_ns: Option<f64>,
    /// Relative deviation of runs from the result.
    pub spread: f64,
    /// Runs that were looked at.
    pub samples: u64,
    /// Slow-downs of the task, ascending; without neighbours about whom too little is known.
    pub entries: Vec<Entry<Key>>,
}

/// Learns slow-downs from runs; the results are ascending by task. The runs of a task must be in
/// their order, the oldest first.
pub fn learn(config: &Config, work: Work, samples: &[Sample]) -> Vec<Learnt> {
    let mut by_victim: BTreeMap<Key, Vec<&Sample>> = BTreeMap::new();
    for sample in samples {
        let is_some = sample.insns > 0 || work == Work::Constant;
        if is_some && sample.beside.iter().any(|beside| beside.duration_ns > 0) {
            by_victim.entry(sample.victim).or_default().push(sample);
        }
    }
    let by_victim = by_victim.into_iter();
    by_victim.map(|(victim, samples)| learn_one(config, work, victim, &samples)).collect()
}

fn learn_one(config: &Config, work: Work, victim: Key, samples: &[&Sample]) -> Learnt {
    let sets = sets(samples);
    let mut fit = Fit::new(config, work, samples, &sets);
    fit.run();
    let sigma = fit.sigma;
    let reach = |uncertain: f64| {
        student(fit.freedom) * sigma * libm::sqrt(1.0 + uncertain / (sigma * sigma))
    };
    let bounded = |log: f64| libm::exp(log).clamp(LEAST_SLOWDOWN, MOST_SLOWDOWN);
    let thought = config.thought();
    let mut entries = Vec::new();
    for (place, set) in sets.iter().enumerate() {
        let variance = fit.variances[1 + place];
        // More of it is a thought than is known.
        if variance > 0.5 * thought {
            continue;
        }
        let log = -fit.logs[1 + place];
        let reach = reach(variance);
        let with = samples.iter().filter(|sample| {
            let total: u64 = sample.beside.iter().map(|beside| beside.duration_ns).sum();
            let mut here = sample.beside.iter();
            here.any(|beside| &beside.neighbours == set && beside.duration_ns > total / 100)
        });
        entries.push(Entry {
            victim,
            beside: set.iter().map(|by| (by.level, by.key)).collect(),
            slowdown: bounded(log),
            low: bounded(log - reach),
            high: bounded(log + reach),
            samples: with.count() as u64,
        });
    }
    let rate = libm::exp(fit.logs[0]);
    Learnt {
        victim,
        alone_insns_per_s: (work == Work::Retired).then_some(rate * 1e9),
        alone_ns: (work == Work::Constant).then_some(1.0 / rate),
        spread: sigma,
        samples: samples.len() as u64,
        entries,
    }
}

/// All sets of others that it ran beside.
fn sets(samples: &[&Sample]) -> Vec<Vec<Neighbour>> {
    let beside = samples.iter().flat_map(|sample| &sample.beside);
    let beside = beside.filter(|beside| beside.duration_ns > 0 && !beside.neighbours.is_empty());
    let mut sets: Vec<_> = beside.map(|beside| beside.neighbours.clone()).collect();
    sets.sort_unstable();
    sets.dedup();
    sets
}

/// One run: the logarithm of its work, and its times alone and beside each set.
struct RunEquation {
    log: f64,
    durations: Vec<f64>,
    /// Weight by the age of the run.
    weight: f64,
}

/// The solution: `logs` are log ρ_∅ and, for each set, log(ρ_c/ρ_∅).
struct Fit {
    rows: Vec<RunEquation>,
    config: Config,
    logs: Vec<f64>,
    /// Variances of `logs`.
    variances: Vec<f64>,
    /// The standard deviation of a run.
    sigma: f64,
    freedom: f64,
}

/// Maximum number of iterations; some five suffice.
const STEPS: usize = 50;
/// Less is no change.
const STILL: f64 = 1e-10;
/// No factor changes by more than this at once (as logarithm).
const STRIDE: f64 = 1.0;

impl Fit {
    fn new(config: &Config, work: Work, samples: &[&Sample], sets: &[Vec<Neighbour>]) -> Self {
        let keep = 1.0 - share(config.forget_permille);
        let count = samples.len();
        let rows = samples.iter().enumerate().map(|(place, sample)| {
            let mut durations = vec![0.0; 1 + sets.len()];
            for beside in &sample.beside {
                let set = sets.binary_search(&beside.neighbours);
                let column = set.map_or(0, |set| 1 + set);
                durations[column] += beside.duration_ns as f64;
            }
            RunEquation {
                log: match work {
                    Work::Retired => libm::log(sample.insns as f64),
                    Work::Constant => 0.0,
                },
                durations,
                weight: libm::pow(keep, (count - 1 - place) as f64),
            }
        });
        let rows: Vec<_> = rows.collect();
        let mut fit = Self {
            config: *config,
            logs: vec![0.0; 1 + sets.len()],
            variances: vec![f64::INFINITY; 1 + sets.len()],
            sigma: share(config.spread_permille),
            freedom: 1.0,
            rows,
        };
        // As if it had never been slowed.
        let offs: Vec<_> = fit.rows.iter().map(|row| fit.off(row)).collect();
        fit.logs[0] = median(offs);
        fit
    }

    /// Returns the deviation of a run, as logarithm.
    fn off(&self, row: &RunEquation) -> f64 {
        row.log - libm::log(self.insns(row))
    }

    fn insns(&self, row: &RunEquation) -> f64 {
        let columns = row.durations.iter().enumerate();
        let relative = columns.map(|(column, duration)| match column {
            0 => *duration,
            _ => duration * libm::exp(self.logs[column]),
        });
        libm::exp(self.logs[0]) * relative.sum::<f64>()
    }

    fn run(&mut self) {
        for _ in 0..STEPS {
            let weights = self.weigh();
            let normal = self.normal(&weights, |weight| weight);
            let mut right = vec![0.0; self.logs.len()];
            for (row, weight) in self.rows.iter().zip(&weights) {
                let off = self.off(row);
                for (right, slope) in right.iter_mut().zip(self.slopes(row)) {
                    *right += weight * slope * off;
                }
            }
            let ridge = self.ridge();
            for (right, log) in right.iter_mut().zip(&self.logs).skip(1) {
                *right -= ridge * log;
            }
            let step = solve(normal, right);
            let most = step.iter().fold(0.0, |most: f64, part| most.max(part.abs()));
            let scale = if most > STRIDE { STRIDE / most } else { 1.0 };
            for (log, part) in self.logs.iter_mut().zip(&step) {
                *log += scale * part;
            }
            if most < STILL {
                break;
            }
        }
        self.set_variances();
    }

    /// Returns the derivatives of the work's logarithm by each log.
    fn slopes(&self, row: &RunEquation) -> Vec<f64> {
        let whole = self.insns(row);
        let alone = libm::exp(self.logs[0]);
        let columns = row.durations.iter().enumerate();
        columns
            .map(|(column, duration)| match column {
                0 => 1.0,
                _ => duration * alone * libm::exp(self.logs[column]) / whole,
            })
            .collect()
    }

    /// The weight of a run's variance in that of a slow-down which is only thought.
    fn ridge(&self) -> f64 {
        square(self.sigma) / self.config.thought()
    }

    /// Σ w·J·Jᵀ and the ridge, with `of` each weight.
    fn normal(&self, weights: &[f64], of: impl Fn(f64) -> f64) -> Vec<Vec<f64>> {
        let size = self.logs.len();
        let mut normal = vec![vec![0.0; size]; size];
        for (row, &weight) in self.rows.iter().zip(weights) {
            let slopes = self.slopes(row);
            for (line, one) in normal.iter_mut().zip(&slopes) {
                for (cell, other) in line.iter_mut().zip(&slopes) {
                    *cell += of(weight) * one * other;
                }
            }
        }
        let ridge = self.ridge();
        for (place, line) in normal.iter_mut().enumerate().skip(1) {
            line[place] += ridge;
        }
        normal
    }

    /// The weight of each run, by its age and, if it is a stray one, by how far it
    /// is off. Sets `sigma` on the way.
    fn weigh(&mut self) -> Vec<f64> {
        let offs: Vec<_> = self.rows.iter().map(|row| self.off(row)).collect();
        let config = self.config;
        // Of a normal distribution half is within 0.6745 of its deviation.
        let usual = median(offs.iter().map(|off| off.abs()).collect()) / 0.6745;
        let usual = usual.max(share(config.least_spread_permille));
        let reach = share(config.stray_permille) * usual.max(self.sigma);
        let keep = 1.0 - share(config.forget_permille);
        let (mut sum, mut squares, mut deviations) = (0.0, 0.0, 0.0);
        let mut weights = Vec::new();
        for (row, off) in self.rows.iter().zip(&offs) {
            let within = off.abs().min(reach);
            sum += row.weight;
            squares += square(row.weight);
            deviations += row.weight * square(within);
            let stray = if off.abs() > reach { reach / off.abs() } else { 1.0 };
            weights.push(row.weight * stray);
        }
        // As many runs of the same weight would tell as much; each factor that was
        // learnt takes one away, as far as it was not only thought.
        let effective = square(sum) / squares;
        let seen = (effective - 1.0 - self.learnt()).max(0.0);
        let thought = config.spread_runs as f64 * libm::pow(keep, self.rows.len() as f64);
        let mut variance = thought * square(share(config.spread_permille));
        if seen > 0.0 {
            variance += effective * deviations / sum;
        }
        self.freedom = (thought + seen).max(f64::MIN_POSITIVE);
        let sigma = libm::sqrt(variance / self.freedom);
        self.sigma = sigma.max(share(config.least_spread_permille));
        weights
    }

    /// For how many factors runs tell more than was thought.
    fn learnt(&self) -> f64 {
        let thought = self.config.thought();
        let parts = self.variances.iter().skip(1);
        parts.map(|variance| (1.0 - variance / thought).clamp(0.0, 1.0)).sum()
    }

    fn set_variances(&mut self) {
        for _ in 0..3 {
            let weights = self.weigh();
            let bread = inverse(self.normal(&weights, |weight| weight));
            let meat = self.normal(&weights, square);
            let size = self.logs.len();
            let variance = square(self.sigma);
            self.variances = (0..size)
                .map(|place| {
                    let side = &bread[place];
                    let mut sum = 0.0;
                    for (line, one) in meat.iter().zip(side) {
                        for (cell, other) in line.iter().zip(side) {
                            sum += one * cell * other;
                        }
                    }
                    variance * sum
                })
                .collect();
        }
    }
}

fn share(permille: u64) -> f64 {
    permille as f64 / 1000.0
}

fn square(number: f64) -> f64 {
    number * number
}

/// The middle one; 0 of none.
fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_unstable_by(f64::total_cmp);
    let half = numbers.len() / 2;
    match numbers.len() {
        0 => 0.0,
        count if count % 2 == 0 => (numbers[half - 1] + numbers[half]) / 2.0,
        _ => numbers[half],
    }
}
