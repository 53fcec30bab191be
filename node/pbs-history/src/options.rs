// SPDX-License-Identifier: GPL-2.0
//! The numbers of a history.

use std::time::Duration;

use pbs_random::estimate::Config;

use crate::Error;

/// Options of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Runs of each job that are kept, 1 to 10000: so many with a task that has ended, and so many
    /// others. The oldest go first, in the transaction that brings a new one. Those that are not
    /// over are kept besides.
    pub keep_runs: u32,
    /// Measurements that are stored of each variant, of each task with its neighbours, and of
    /// transfers and decisions of one size, 1 to 10000. The oldest are deleted first, in the
    /// transaction that brings a new one.
    pub keep_samples: u32,
    /// Limits of the runs of a user that are over. Runs that nobody has ordered have none.
    pub ended: EndedLimits,
    /// Time to wait for another process that is writing.
    pub wait: Duration,
    /// Numbers of the estimate.
    pub estimate: Config,
}

/// Limits of the runs that are over and were ordered, for each user apart: the runs of one never
/// push out those of another. The oldest are forgotten first ([`Store::forget`](crate::Store)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndedLimits {
    /// Number of runs of a user. Root has no such limit.
    pub user_runs: u64,
    /// Bytes of a user's runs: orders, names and figures. Root has no such limit.
    pub user_bytes: u64,
    /// Bytes of the runs of all users but root. This bounds what somebody with many user ids takes;
    /// whose runs are the oldest loses them first.
    pub all_bytes: u64,
    /// Time since the end of a run; this limit is root's, too.
    pub age_ns: u64,
}

impl EndedLimits {
    /// Default limits: 5,000 runs and 64 MiB of a user, 1 GiB of all, and a year.
    pub const DEFAULT: Self = Self {
        user_runs: 5000,
        user_bytes: 64 << 20,
        all_bytes: 1 << 30,
        age_ns: 365 * 86_400 * 1_000_000_000,
    };

    /// No limits: nothing is forgotten.
    pub const ENDLESS: Self =
        Self { user_runs: u64::MAX, user_bytes: u64::MAX, all_bytes: u64::MAX, age_ns: u64::MAX };
}

impl Default for EndedLimits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl Options {
    /// Default options.
    pub const DEFAULT: Self = Self {
        keep_runs: 32,
        keep_samples: 32,
        ended: EndedLimits::DEFAULT,
        wait: Duration::from_secs(5),
        estimate: Config::DEFAULT,
    };

    /// Whether the numbers are in their ranges.
    pub fn check(&self) -> Result<(), Error> {
        for (name, keep) in [("keep_runs", self.keep_runs), ("keep_samples", self.keep_samples)] {
            if !(1..=10_000).contains(&keep) {
                return Err(Error::Config(name, 1, 10_000));
            }
        }
        let checked = self.estimate.check();
        checked.map_err(|of| Error::Config(of.name, of.low, of.high))
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::DEFAULT
    }
}
