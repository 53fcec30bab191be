// SPDX-License-Identifier: GPL-2.0
//! A linear regression of run times, which learns from each job that ends.
//!
//! The logarithm of the run time as a part of the limit is a weighted sum of features. The weights
//! descend along the gradient of an asymmetric absolute error: a job that was expected to be too
//! short counts more than one that was expected to be too long, since plans rely on expected ends.
//! Each weight has its own step, which shrinks with the gradients that it has seen (AdaGrad; Duchi,
//! Hazan and Singer 2011). Equal jobs in an equal order give equal weights on every machine.

use std::hash::Hash;

use super::history::{quantile, History};
use super::JobKind;

/// Number of features.
const FEATURES: usize = 9;
/// Feature that is the expected run time before anything is learned: the upper quartile.
const UPPER_QUARTILE: usize = 5;
/// First step of a weight.
const STEP: f64 = 0.01;
/// Weight of a run time above the expected one; one below has the rest of 1.
const TOO_SHORT: f64 = 0.65;
/// Error, as a logarithm, below which the gradient shrinks with it.
const SMALL: f64 = 0.1;

#[derive(Clone, Debug)]
pub(super) struct Regression {
    weights: [f64; FEATURES],
    /// Sums of the squares of the gradients.
    squares: [f64; FEATURES],
}

/// Returns the logarithm of a time. Times of less than a second count like one.
fn log(time_s: u64) -> f64 {
    libm::log(time_s as f64 + 1.0)
}

/// Returns what is known of a job. Times are logarithms, as parts of the limit.
fn features<U: Clone + Eq + Hash>(history: &History<U>, job: &JobKind<U>) -> [f64; FEATURES] {
    let limit = log(job.limit_s);
    let mut all = [0.0; FEATURES];
    // Logarithms of limits and of cores are scaled to about 1.
    (all[0], all[1], all[2]) = (1.0, limit / 10.0, log(job.cores) / 5.0);
    let (Some(alike), Some(of_user)) = (history.alike(job), history.of_user(&job.user)) else {
        all[3] = 1.0;
        return all;
    };
    let part = |time_s: Option<u64>| time_s.map_or(0.0, |time_s| log(time_s) - limit);
    all[4] = part(quantile(alike, 1, 2));
    all[UPPER_QUARTILE] = part(quantile(alike, 3, 4));
    all[6] = part(alike.back().copied());
    all[7] = part(of_user.back().copied());
    all[8] = part(quantile(of_user, 1, 2));
    all
}

impl Regression {
    pub(super) fn new() -> Self {
        let mut weights = [0.0; FEATURES];
        weights[UPPER_QUARTILE] = 1.0;
        Self { weights, squares: [1.0; FEATURES] }
    }

    fn sum(&self, features: &[f64; FEATURES]) -> f64 {
        self.weights.iter().zip(features).map(|(weight, feature)| weight * feature).sum()
    }

    /// Returns the expected run time; `None`: the user has no history.
    pub(super) fn expected_s<U: Clone + Eq + Hash>(
        &self,
        history: &History<U>,
        job: &JobKind<U>,
    ) -> Option<u64> {
        history.of_user(&job.user)?;
        let part = self.sum(&features(history, job)).min(0.0);
        Some((libm::exp(part + log(job.limit_s)) - 1.0) as u64)
    }

    /// Changes the weights by a job that has ended, which is not in the history yet.
    pub(super) fn learn<U: Clone + Eq + Hash>(
        &mut self,
        history: &History<U>,
        job: &JobKind<U>,
        run_s: u64,
    ) {
        let features = features(history, job);
        let error = log(run_s) - log(job.limit_s) - self.sum(&features);
        let slope = if error > 0.0 { -TOO_SHORT } else { 1.0 - TOO_SHORT };
        let slope = slope * (error.abs() / SMALL).min(1.0);
        for ((weight, square), feature) in
            self.weights.iter_mut().zip(&mut self.squares).zip(features)
        {
            let gradient = slope * feature;
            *square += gradient * gradient;
            *weight -= STEP * gradient / square.sqrt();
        }
    }
}
