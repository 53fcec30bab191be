// SPDX-License-Identifier: GPL-2.0
//! Errors of expected run times.

/// Sums of the errors of expected run times.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ErrorSums {
    jobs: u64,
    accuracy: f64,
    error_s: f64,
    too_short: u64,
}

impl ErrorSums {
    /// Adds a job that has ended.
    pub fn add(&mut self, expected_s: u64, run_s: u64) {
        let (lesser_s, greater_s) = (expected_s.min(run_s), expected_s.max(run_s).max(1));
        self.jobs += 1;
        self.accuracy += lesser_s as f64 / greater_s as f64;
        self.error_s += (greater_s - lesser_s) as f64;
        self.too_short += u64::from(run_s > expected_s);
    }

    /// Returns the number of jobs.
    pub fn jobs(&self) -> u64 {
        self.jobs
    }

    /// Returns the mean ratio of the expected and the real run time, the lesser over the greater: 1
    /// if all are exact (Tsafrir, Etsion and Feitelson 2007). Of no jobs it is 0.
    pub fn accuracy(&self) -> f64 {
        self.accuracy / self.divisor()
    }

    /// Returns the mean distance between the expected and the real run time. Of no jobs it is 0.
    pub fn mean_error_s(&self) -> f64 {
        self.error_s / self.divisor()
    }

    /// Returns the part of the jobs that ran longer than expected. Of no jobs it is 0.
    pub fn too_short(&self) -> f64 {
        self.too_short as f64 / self.divisor()
    }

    fn divisor(&self) -> f64 {
        self.jobs.max(1) as f64
    }
}
