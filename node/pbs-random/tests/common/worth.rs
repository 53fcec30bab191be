// SPDX-License-Identifier: GPL-2.0
//! Random jobs, of which the next run is predicted.

use pbs_random::estimate::{estimate, Config};
use pbs_random::Random;

#[path = "lengths.rs"]
mod lengths;
use lengths::Lengths;

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
        assert!(found.low <= found.centre && found.centre <= found.high);
        covered += usize::from((found.low..=found.high).contains(&next));
        errors.push(libm::fabs(libm::log(next as f64 / found.centre as f64)));
    }
    errors.sort_by(f64::total_cmp);
    Worth { covered_permille: covered * 1000 / JOBS, error: errors[JOBS / 2] }
}
