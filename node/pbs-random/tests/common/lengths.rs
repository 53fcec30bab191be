// SPDX-License-Identifier: GPL-2.0
//! Random lengths of runs.

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
