// SPDX-License-Identifier: GPL-2.0
//! Estimate of the length of a run, from the lengths of the runs before it.
//!
//! A plan needs one number for each task, around which the real lengths scatter: the node absorbs
//! deviations that average out (Leppert 2021, 3.2 and 3.3). Lengths scatter in proportion.
//! Therefore all computations use logarithms.
//!
//! - The centre is the mean, in which each run has less weight than the one
//!   after it ([`Config::forget_permille`]): this way the estimate follows a drift.
//! - The user's figure has the weight of a small part of a run, since it is much less
//!   certain ([`Config::user_weight_permille`]). It is forgotten like a run
//!   older than all others.
//! - The spread is that of the runs about their centre. The assumed spread
//!   ([`Config::spread_permille`]) has the weight of some runs, and is
//!   forgotten as well.
//! - A run that is far off (a *stray* one) counts for no more than
//!   [`Config::stray_permille`] of the spread. If the next one is far off on the
//!   same side, the task has changed, and the estimate starts again with these two.
//! - The interval is that of Student's t distribution for one further run. Therefore
//!   it is wide while there are few runs.
//!
//! The node's history estimates instructions of tasks this way, and times of variants. The cluster
//! estimates run times of requests. The estimate depends on the given runs alone, in their order.
//! The functions are those of `libm`; this way a plan made from a history is the same on every
//! machine.

use crate::student;

/// A number of the configuration is out of its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfRange {
    /// Name of the number.
    pub name: &'static str,
    /// Least value.
    pub low: u64,
    /// Greatest value.
    pub high: u64,
}

/// Numbers of the estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Reduction of weight from each run to the one before it, in thousandths, 0 to 900. At 200,
    /// the effective number of runs is nine.
    pub forget_permille: u64,
    /// For how much of a run the user's figure counts, in thousandths, 1 to
    /// 1000. The square of how the spread of runs relates to that of users'
    /// figures: at 40 those are out by half as a rule.
    pub user_weight_permille: u64,
    /// Assumed spread before there are any runs, in thousandths of the length, 1 to 1000.
    /// TASK_SIGMA in Leppert 2021, 4.3.1.
    pub spread_permille: u64,
    /// For how many runs that counts, 2 to 100.
    pub spread_runs: u64,
    /// The least spread that is believed, in thousandths of the length, 1 to
    /// 1000, however alike the runs were.
    pub least_spread_permille: u64,
    /// Deviation above which a run is a stray one, in thousandths of the spread, 1000 to 100000.
    pub stray_permille: u64,
}

impl Config {
    /// Default configuration.
    pub const DEFAULT: Self = Self {
        forget_permille: 200,
        user_weight_permille: 40,
        spread_permille: 100,
        spread_runs: 3,
        least_spread_permille: 1,
        stray_permille: 3000,
    };

    /// Checks that the numbers are in their ranges.
    ///
    /// # Errors
    ///
    /// The first number that is not.
    pub fn check(&self) -> Result<(), OutOfRange> {
        for (name, value, low, high) in [
            ("forget_permille", self.forget_permille, 0, 900),
            ("user_weight_permille", self.user_weight_permille, 1, 1000),
            ("spread_permille", self.spread_permille, 1, 1000),
            ("spread_runs", self.spread_runs, 2, 100),
            ("least_spread_permille", self.least_spread_permille, 1, 1000),
            ("stray_permille", self.stray_permille, 1000, 100_000),
        ] {
            if !(low..=high).contains(&value) {
                return Err(OutOfRange { name, low, high });
            }
        }
        Ok(())
    }
}

impl Default for Config {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Estimate of the next run, in the unit of the runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// To plan with: about as many runs are above as below.
    pub centre: u64,
    /// One run of twenty is below.
    pub low: u64,
    /// One run of twenty is above.
    pub high: u64,
}

/// Estimates the next run from the user's figure and from the runs before, the oldest first. All are
/// in one unit: instructions, nanoseconds or seconds. Returns `None` if there is neither.
pub fn estimate(config: &Config, user: Option<u64>, runs: &[u64]) -> Option<Estimate> {
    if user.is_none() && runs.is_empty() {
        return None;
    }
    let keep = 1.0 - share(config.forget_permille);
    let known = recent(config, keep, runs);

    // The user's figure is older than all runs; what was thought of the spread
    // is so than those since the last change.
    let user_weight = share(config.user_weight_permille);
    let of_user = user.map_or(0.0, |_| user_weight * power(keep, runs.len()));
    let weight = of_user + known.weight;
    let user_log = user.map_or(0.0, logarithm);
    let centre = (of_user * user_log + known.weight * known.mean) / weight;

    let (sigma, freedom) = known.sigma(config, keep);
    // Of the centre, as a part of that of a run: the user's figure is less
    // certain by as much as it counts for less.
    let uncertain = (known.squares + of_user * of_user / user_weight) / (weight * weight);
    let reach = student(freedom) * sigma * libm::sqrt(1.0 + uncertain);
    Some(Estimate {
        centre: whole(centre, libm::round),
        low: whole(centre - reach, libm::floor),
        high: whole(centre + reach, libm::ceil),
    })
}

/// Evaluates the runs since the last change.
fn recent(config: &Config, keep: f64, all: &[u64]) -> Runs {
    let mut runs = Runs::default();
    // The run before, if it was a stray one, and whether it was above.
    let mut stray = None;
    for &run in all {
        let log = logarithm(run);
        let off = log - runs.mean;
        let reach = runs.reach(config, keep);
        if off.abs() <= reach {
            stray = None;
            runs.add(keep, log);
            continue;
        }
        let above = off > 0.0;
        match stray {
            Some((before, same)) if same == above => {
                runs = Runs::default();
                runs.add(keep, before);
                runs.add(keep, log);
                stray = None;
            }
            _ => {
                stray = Some((log, above));
                runs.add(keep, runs.mean + libm::copysign(reach, off));
            }
        }
    }
    runs
}

/// Logarithms of the runs, each with a weight, which is less the older the run is.
#[derive(Clone, Copy, Debug, Default)]
struct Runs {
    count: usize,
    /// Sum of the weights.
    weight: f64,
    /// Sum of their squares.
    squares: f64,
    mean: f64,
    /// Sum of the squared deviations from the mean, each by its weight.
    deviations: f64,
}

impl Runs {
    fn add(&mut self, keep: f64, log: f64) {
        let before = keep * self.weight;
        let off = log - self.mean;
        self.count += 1;
        self.weight = before + 1.0;
        self.squares = keep * keep * self.squares + 1.0;
        self.mean += off / self.weight;
        self.deviations = keep * self.deviations + off * off * before / self.weight;
    }

    /// Returns the effective number of runs: as many runs of equal weight would give an equally
    /// certain mean.
    fn effective(&self) -> f64 {
        if self.count == 0 {
            0.0
        } else {
            self.weight * self.weight / self.squares
        }
    }

    /// The standard deviation of a run, and its degrees of freedom.
    fn sigma(&self, config: &Config, keep: f64) -> (f64, f64) {
        let thought = config.spread_runs as f64 * power(keep, self.count);
        let spread = share(config.spread_permille);
        let seen = (self.effective() - 1.0).max(0.0);
        let mut square = thought * spread * spread;
        if seen > 0.0 {
            square += seen * self.deviations / (self.weight - self.squares / self.weight);
        }
        let freedom = thought + seen;
        let least = share(config.least_spread_permille);
        // Not even what was thought is left after very many runs of weight 0.
        let sigma = libm::sqrt(square / freedom.max(f64::MIN_POSITIVE));
        (sigma.max(least), freedom)
    }

    /// Returns the deviation above which a run is a stray one. With only two runs, neither can be
    /// recognized as stray.
    fn reach(&self, config: &Config, keep: f64) -> f64 {
        if self.count < 3 {
            return f64::INFINITY;
        }
        let (sigma, _) = self.sigma(config, keep);
        share(config.stray_permille) * sigma * libm::sqrt(1.0 + 1.0 / self.effective())
    }
}

fn share(permille: u64) -> f64 {
    permille as f64 / 1000.0
}

fn power(base: f64, exponent: usize) -> f64 {
    libm::pow(base, exponent as f64)
}

/// A run of length 0 counts as one of length 1.
fn logarithm(run: u64) -> f64 {
    libm::log(run.max(1) as f64)
}

/// Saturates at the largest figure that can be kept.
fn whole(log: f64, round: fn(f64) -> f64) -> u64 {
    (round(libm::exp(log)) as u64).min(i64::MAX as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quantile_is_student_s() {
        for (freedom, quantile) in [
            (1.0, 6.3138),
            (2.0, 2.9200),
            (5.0, 2.0150),
            (12.0, 1.7823),
            (30.0, 1.6973),
            (1e9, 1.6449),
        ] {
            let found = student(freedom);
            assert!((found - quantile).abs() < 0.006, "{freedom}: {found}");
        }
        let mut before = f64::INFINITY;
        for tenth in 10..300 {
            let found = student(f64::from(tenth) / 10.0);
            assert!(found < before, "{tenth}");
            before = found;
        }
    }

    #[test]
    fn without_forgetting_it_is_the_mean_and_the_deviation() {
        let keep = 1.0;
        let mut runs = Runs::default();
        for log in [1.0, 2.0, 4.0, 9.0] {
            runs.add(keep, log);
        }
        assert!((runs.mean - 4.0).abs() < 1e-12);
        assert!((runs.effective() - 4.0).abs() < 1e-12);
        assert!((runs.deviations - 38.0).abs() < 1e-12);
    }

    #[test]
    fn numbers_out_of_range_are_named() {
        assert_eq!(Config::DEFAULT.check(), Ok(()));
        let config = Config { spread_runs: 1, ..Config::DEFAULT };
        assert_eq!(config.check(), Err(OutOfRange { name: "spread_runs", low: 2, high: 100 }));
    }
}
