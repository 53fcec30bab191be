// SPDX-License-Identifier: GPL-2.0
//! Jobs of the model of Lublin and Feitelson (2003, *The workload on parallel
//! supercomputers: modeling the characteristics of rigid jobs*), fitted to traces of three
//! machines of the nineties: other jobs than those of [`workload`](crate::workload), so that
//! what is found of a scheduler does not rest on one mix.
//!
//! Published, and kept, with the parameters for jobs of all types together:
//!
//! - Of the cores: a part of the jobs has one, a part a power of two; logarithms are of two
//!   uniform pieces, the upper one up to the size of the machine.
//! - Of the run time: its logarithm is of one of two gamma distributions; which of them, the
//!   cores decide: wide jobs are long more often.
//! - Of the time between two jobs: its logarithm is of a gamma distribution. How many come
//!   at a time of day follows another one, by half hours, with most in the afternoon.
//!
//! Chosen here:
//!
//! - Times between jobs are scaled so that all ask for a given part of the machine.
//! - The model says nothing of users and of what they ask for. Users are those of
//!   [`workload`](crate::workload). A job runs for a part of what is asked for that is
//!   equally distributed about a mean accuracy; for more than a week nobody asks who does
//!   not run for as long.

use pbs_gen::{Random, Stream};

use crate::load::span_s;
use crate::workload::{share, user, GROUPS};
use crate::{Status, TraceJob};

/// Jobs of one core.
const SERIAL: f64 = 0.244;
/// Jobs of a power of two of cores.
const POWER_OF_TWO: f64 = 0.576;
/// Binary logarithm of the fewest cores of a parallel job.
const LEAST_LOG: f64 = 0.8;
/// The pieces meet so far below the logarithm of the machine's size.
const BELOW_MOST_LOG: f64 = 2.5;
/// Parallel jobs of the lower piece.
const LOWER: f64 = 0.86;

/// A gamma distribution: shape and scale.
type Gamma = (f64, f64);

/// Logarithms of run times in seconds, of short jobs and of long ones.
const SHORT: Gamma = (4.2, 0.94);
const LONG: Gamma = (312.0, 0.03);
/// Slope of the probability of a short job, as a linear function of the job's cores.
const SHORT_PER_CORE: f64 = -0.0054;
const SHORT_OF_NONE: f64 = 0.78;
/// No job runs for longer than this, as a logarithm: some two days.
const MOST_RUN_LOG: f64 = 12.0;
/// The logarithm of the time between two jobs, in any unit.
const BETWEEN: Gamma = (10.2303 * 1.0225, 0.4871);
const MOST_BETWEEN_LOG: f64 = 13.0;
/// Distribution of arrivals over the day, in half hours.
const OF_DAY: Gamma = (8.1737, 3.9631);
/// A day of that begins with this half hour, in the night behind it ends.
const FIRST_HALF_HOUR: usize = 11;

const HALF_HOURS: usize = 48;
const HALF_HOUR_S: f64 = 1_800.0;
const DAY_S: f64 = 86_400.0;
/// Users ask for whole minutes.
const ROUND_S: u64 = 60;
/// Largest requested time, unless the job needs more: the limit of new projects on OCuLUS (Keller,
/// 6).
const MOST_REQUESTED_S: u64 = 7 * 86_400;
/// Parts about the mean accuracy, as a part of that.
const ABOUT: f64 = 0.8;

/// Parameters of the generated jobs. Equal parameters produce equal jobs on every machine.
///
/// ```
/// use pbs_cluster_sim::Lublin;
///
/// let jobs = Lublin { jobs: 1_000, cores: 128, load_percent: 90, accuracy_percent: 22, seed: 1 };
/// assert_eq!(jobs.generate().len(), 1_000);
/// assert!(jobs.generate().is_sorted_by_key(|job| job.submit_s));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lublin {
    /// Number of jobs.
    pub jobs: usize,
    /// Cores of the machine that they are for.
    pub cores: u64,
    /// Core time that they ask for while they come, of what there is, in percent.
    pub load_percent: u64,
    /// Run time over what is asked for, on average, in percent.
    pub accuracy_percent: u64,
    /// Seed of the random numbers: another seed yields other jobs.
    pub seed: u64,
}

impl Lublin {
    /// The jobs, in the order in which they come; time begins at midnight.
    pub fn generate(&self) -> Vec<TraceJob> {
        let mut random = Random::new(self.seed, Stream::Trace);
        let mut jobs: Vec<TraceJob> = (0..self.jobs).map(|_| self.job(&mut random)).collect();
        let between: Vec<f64> =
            jobs.iter().map(|_| libm::exp(below(&mut random, BETWEEN, MOST_BETWEEN_LOG))).collect();
        let sum: f64 = between.iter().sum();
        let span_s = span_s(&jobs, self.cores, self.load_percent) as f64;
        let day = Day::new();
        let mut busy_s = 0.0;
        for ((number, job), between) in (1..).zip(&mut jobs).zip(between) {
            job.number = number;
            job.submit_s = day.time_s(busy_s) as u64;
            busy_s += between / sum * span_s;
        }
        jobs
    }

    fn job(&self, random: &mut Random) -> TraceJob {
        let cores = self.job_cores(random);
        let short = (SHORT_PER_CORE * cores as f64 + SHORT_OF_NONE).clamp(0.0, 1.0);
        let of = if share(random) <= short { SHORT } else { LONG };
        let run_s = (libm::exp(below(random, of, MOST_RUN_LOG)) as u64).max(1);
        let mean = self.accuracy_percent.clamp(1, 100) as f64 / 100.0;
        let about = (ABOUT * mean).min(1.0 - mean);
        let accuracy = mean - about + 2.0 * about * share(random);
        let asked_s = ((run_s as f64 / accuracy) as u64).clamp(run_s, MOST_REQUESTED_S.max(run_s));
        let user = user(random);
        TraceJob {
            user,
            group: 1 + (user - 1) % GROUPS,
            status: Status::Completed,
            ..TraceJob::new(0, run_s, asked_s.div_ceil(ROUND_S) * ROUND_S, cores)
        }
    }

    fn job_cores(&self, random: &mut Random) -> u64 {
        let kind = share(random);
        if kind <= SERIAL {
            return 1;
        }
        let most = libm::log2(self.cores.max(1) as f64);
        let middle = (most - BELOW_MOST_LOG).max(LEAST_LOG);
        let (from, to) =
            if share(random) <= LOWER { (LEAST_LOG, middle) } else { (middle, most.max(middle)) };
        let log = from + (to - from) * share(random);
        let is_power = kind <= SERIAL + POWER_OF_TWO;
        let log = if is_power { libm::round(log) } else { log };
        (libm::round(libm::exp2(log)) as u64).clamp(1, self.cores.max(1))
    }
}

/// Distribution of arrivals over a day. *Busy* time passes faster at hours with many arrivals; in
/// busy time, arrivals are uniform.
struct Day {
    /// Busy seconds of each half hour, from midnight on; all together a day's.
    busy_s: [f64; HALF_HOURS],
}

impl Day {
    fn new() -> Self {
        let mut busy_s = [0.0; HALF_HOURS];
        for half_hour in FIRST_HALF_HOUR..FIRST_HALF_HOUR + HALF_HOURS {
            let middle = half_hour as f64;
            let part = part_below(OF_DAY, middle + 0.5) - part_below(OF_DAY, middle - 0.5);
            busy_s[(half_hour - 1) % HALF_HOURS] = part;
        }
        let sum: f64 = busy_s.iter().sum();
        Self { busy_s: busy_s.map(|part| part / sum * DAY_S) }
    }

    /// Returns the time at which that much busy time has passed since a midnight.
    fn time_s(&self, busy_s: f64) -> f64 {
        let days = libm::floor(busy_s / DAY_S);
        let mut rest_s = busy_s - days * DAY_S;
        let mut begin_s = days * DAY_S;
        for &busy_s in &self.busy_s {
            if rest_s < busy_s {
                return begin_s + rest_s / busy_s * HALF_HOUR_S;
            }
            rest_s -= busy_s;
            begin_s += HALF_HOUR_S;
        }
        begin_s
    }
}

/// A value of a gamma distribution that is no more than this.
fn below(random: &mut Random, of: Gamma, most: f64) -> f64 {
    loop {
        let value = gamma(random, of);
        if value <= most {
            return value;
        }
    }
}

/// A value of a gamma distribution whose shape is at least 1 (Marsaglia and Tsang 2000, *A
/// simple method for generating gamma variables*).
fn gamma(random: &mut Random, (shape, scale): Gamma) -> f64 {
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let x = random.normal();
        let v = (1.0 + c * x) * (1.0 + c * x) * (1.0 + c * x);
        if v > 0.0 && libm::log(share(random)) < 0.5 * x * x + d - d * v + d * libm::log(v) {
            return scale * d * v;
        }
    }
}

/// Returns the part of a gamma distribution up to `value`: the series of the incomplete gamma
/// function, whose terms all have the same sign.
fn part_below((shape, scale): Gamma, value: f64) -> f64 {
    let x = value / scale;
    if x <= 0.0 {
        return 0.0;
    }
    let mut term = libm::exp(shape * libm::log(x) - x - libm::lgamma(shape + 1.0));
    let mut sum = 0.0;
    let mut next = shape;
    while term > 1e-17 * sum {
        sum += term;
        next += 1.0;
        term *= x / next;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gamma_values_have_their_mean_and_deviation() {
        let mut random = Random::new(1, Stream::Trace);
        for of @ (shape, scale) in [SHORT, LONG, BETWEEN, (1.0, 2.0)] {
            let values: Vec<f64> = (0..40_000).map(|_| gamma(&mut random, of)).collect();
            let mean = values.iter().sum::<f64>() / 40_000.0;
            let square = values.iter().map(|value| (value - mean) * (value - mean));
            let deviation = (square.sum::<f64>() / 40_000.0).sqrt();
            assert!((mean / (shape * scale) - 1.0).abs() < 0.02, "{of:?}: {mean}");
            let expected = shape.sqrt() * scale;
            assert!((deviation / expected - 1.0).abs() < 0.03, "{of:?}: {deviation}");
        }
    }

    #[test]
    fn parts_are_those_of_the_exponential_and_of_erlang() {
        for x in [0.1, 1.0, 3.0, 20.0] {
            let exponential = 1.0 - libm::exp(-x / 2.0);
            assert!((part_below((1.0, 2.0), x) - exponential).abs() < 1e-12);
            let erlang = 1.0 - libm::exp(-x) * (1.0 + x + x * x / 2.0);
            assert!((part_below((3.0, 1.0), x) - erlang).abs() < 1e-12);
        }
        assert_eq!(part_below(OF_DAY, 0.0), 0.0);
    }

    #[test]
    fn a_day_s_busy_time_is_a_day() {
        let day = Day::new();
        for days in 0..3 {
            let midnight_s = f64::from(days) * DAY_S;
            assert_eq!(day.time_s(midnight_s), midnight_s);
        }
        let times = (0..1_000).map(|part| day.time_s(f64::from(part) * 1_000.0));
        assert!(times.collect::<Vec<_>>().is_sorted());
        // Most come in the afternoon, fewest before dawn.
        let (afternoon, dawn) = (day.busy_s[29], day.busy_s[10]);
        assert!(afternoon > 10.0 * dawn, "{afternoon} and {dawn}");
    }
}
