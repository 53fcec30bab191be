// SPDX-License-Identifier: GPL-2.0
//! Random jobs, of which the next run is predicted.

use pbs_history::estimate::{estimate, Config};
use pbs_random::Random;

/// Random lengths of runs.
pub(crate) struct Lengths(pub(crate) Random);

impl Lengths {
    /// Above 0, up to 1, each as likely.
    pub(crate) fn share(&mut self) -> f64 {
        ((self.0.next() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// Normally distributed with mean 0 and standard deviation 1: Box and
    /// Muller.
    pub(crate) fn normal(&mut self) -> f64 {
        let radius = libm::sqrt(-2.0 * libm::log(self.share()));
        radius * libm::cos(std::f64::consts::TAU * self.share())
    }

    /// A length that scatters around `insns`.
    pub(crate) fn about(&mut self, insns: f64, sigma: f64) -> u64 {
        (insns * libm::exp(sigma * self.normal())) as u64
    }
}

/// Quality of the predictions of many jobs.
#[derive(Debug)]
pub(crate) struct Worth {
    /// Frequency with which the next run was in the interval.
    pub(crate) covered_permille: usize,
    /// Median deviation of the next run.
    pub(crate) error: f64,
}

/// Jobs of any length, of which the user knows the length to within half and
/// whose runs scatter by `sigma` and grow by `drift` each.
pub(crate) fn worth(sigma: f64, drift: f64, runs: usize) -> Worth {
    const JOBS: usize = 2000;
    let mut random = Lengths(Random::new(runs as u64));
    let mut covered = 0;
    let mut errors = Vec::new();
    for _ in 0..JOBS {
        let insns = 1e5 * libm::exp(13.0 * random.share());
        let user = random.about(insns, 0.5);
        let mut retired: Vec<_> = (0..=runs)
            .map(|run| random.about(insns * libm::exp(drift * run as f64), sigma))
            .collect();
        let next = retired.pop().unwrap();
        let found = estimate(&Config::DEFAULT, Some(user), &retired).unwrap();
        assert!(found.low_insns <= found.insns && found.insns <= found.high_insns);
        covered += usize::from((found.low_insns..=found.high_insns).contains(&next));
        errors.push(libm::fabs(libm::log(next as f64 / found.insns as f64)));
    }
    errors.sort_by(f64::total_cmp);
    Worth { covered_permille: covered * 1000 / JOBS, error: errors[JOBS / 2] }
}
