// SPDX-License-Identifier: GPL-2.0
//! Fairness between users.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{spread, Ran};

/// Fairness between users, by the mean bounded slowdown of each. It judges the policy, not single
/// jobs. Overtaking is not examined, unlike in the fair start times of Sabin and Sadayappan 2005,
/// which take a replay for each job.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Fairness {
    /// Users of whom a job ran.
    pub users: usize,
    /// Jain's index (Jain, Chiu and Hawe 1984): 1 if all fare alike, 1/n if one of n has all
    /// of it.
    pub jain: f64,
    /// The least mean.
    pub best: f64,
    /// The greatest mean.
    pub worst: f64,
    /// Greatest normalised wait of a user: the waits of all jobs, in seconds, over the core seconds
    /// that they used (Klusáček and Chlumský 2015).
    pub worst_normalised_wait: f64,
}

impl Fairness {
    pub(super) fn of(ran: &[Ran<'_>], bound_s: u64) -> Self {
        let mut users: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
        for ran in ran {
            let of_user = users.entry(ran.job.user).or_default();
            of_user.push(ran.bounded_slowdown(bound_s));
        }
        let mut shares: BTreeMap<u64, (u128, u128)> = BTreeMap::new();
        for ran in ran {
            let (wait_s, core_s) = shares.entry(ran.job.user).or_default();
            *wait_s += u128::from(ran.wait_s());
            *core_s += ran.core_seconds(&(0..u64::MAX));
        }
        let normalised = shares.values().map(|&(wait_s, core_s)| wait_s as f64 / core_s as f64);
        let means: Vec<f64> = users.values().map(|of| spread::mean(of)).collect();
        let squares: Vec<f64> = means.iter().map(|mean| mean * mean).collect();
        let square = spread::mean(&squares);
        Self {
            users: means.len(),
            jain: if square > 0.0 { spread::mean(&means).powi(2) / square } else { 1.0 },
            best: means.iter().copied().reduce(f64::min).unwrap_or(0.0),
            worst: means.iter().copied().reduce(f64::max).unwrap_or(0.0),
            worst_normalised_wait: normalised.filter(|of| of.is_finite()).fold(0.0, f64::max),
        }
    }
}
