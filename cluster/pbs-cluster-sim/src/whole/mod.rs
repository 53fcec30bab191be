// SPDX-License-Identifier: GPL-2.0
//! The whole system in virtual time: a cluster that is planned, of nodes that run plans.
//!
//! Jobs come ([`jobs`]), each a chunk of cores on one node with a deadline. The planner of
//! `pbs-cluster-planner` accepts or declines them; what starts is planned by `pbs-control` on just
//! its cores and run by `pbs-sim`, with the policy that the kernel compiles: t1, t2, signals
//! and new plans. What a node predicts to end late is told upwards, and what ends early is
//! given back ([`planned`]). Beside it stand the same cluster without plans on its nodes, and
//! EASY backfilling and FCFS ([`yardstick`]), with the same jobs. [`compare`] puts all into one
//! table.
//!
//! Pure: no clock and no files. The same options give the same numbers on every machine.

mod figures;
mod job;
mod node;
mod planned;
mod yardstick;

use std::fmt;

use serde::Serialize;

pub use figures::{Comparison, Figures};
pub use job::{jobs, Length, WholeJob};
pub use node::{course, list_s, span_s, Course, Prediction};
pub use pbs_text::Format;
pub use planned::{planned, Nodes, MOST_EXTENSION_PERMILLE};
pub use yardstick::{yardstick, Yardstick};

/// What is simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Options {
    /// Nodes, which are alike. 1 to 1,000.
    pub nodes: u32,
    /// Cores of each. 1 to 256.
    pub cores: u32,
    /// Jobs have one process for each of their cores, or up to so many. 1 to 100.
    pub most_processes_per_core: u32,
    /// How many jobs come. 1 to 100,000.
    pub jobs: usize,
    /// How much real lengths deviate from planned ones: the standard deviation of every
    /// task; and half of the jobs have besides what a scenario of `pbs-gen` does to them,
    /// which at 100 is as much as it is by default. 0: all take what is planned. Up to 300.
    pub deviation_permille: u64,
    /// Core time that is asked for, of what there is while jobs come. 1 to 10,000.
    pub load_permille: u64,
    /// Deadlines are between the end of a job that starts at once and this share of its
    /// duration later. Up to 100,000.
    pub most_slack_permille: u64,
    /// Another seed, other jobs.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            nodes: 4,
            cores: 8,
            most_processes_per_core: 4,
            jobs: 200,
            deviation_permille: 100,
            load_permille: 1000,
            most_slack_permille: 2000,
            seed: 1,
        }
    }
}

impl Options {
    /// All cores of the cluster.
    pub fn total_cores(&self) -> u64 {
        u64::from(self.nodes) * u64::from(self.cores)
    }
}

/// What became of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Fate {
    /// When it started; `None`: it was declined.
    pub start_s: Option<u64>,
    /// When its cores were given back, in seconds.
    pub end_s: u64,
    /// It was ended before it was over, at the end of its time.
    pub is_aborted: bool,
    /// Its node, if it is known.
    pub node: Option<u32>,
    /// Its cores on that node, if they are known.
    pub cores: Vec<u32>,
    /// What the node signalled while it ran: late or early.
    pub signals: u64,
    /// New plans that the node got while it ran.
    pub replans: u64,
    /// How often it got more time.
    pub extensions: u64,
    /// By how much in all, in seconds.
    pub extended_s: u64,
    /// How often it was to have more time, and others had the cores.
    pub refused_extensions: u64,
}

impl Fate {
    /// It ran to its end, and in time.
    pub fn keeps(&self, deadline_s: u64) -> bool {
        self.start_s.is_some() && !self.is_aborted && self.end_s <= deadline_s
    }
}

/// Something could not be generated, planned or simulated, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(pub(crate) String);

impl Error {
    pub(crate) fn of(what: &impl fmt::Display) -> Self {
        Self(what.to_string())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

/// All policies over the same jobs.
///
/// # Errors
///
/// A job can't be generated, planned or simulated.
pub fn compare(options: &Options) -> Result<Comparison, Error> {
    let jobs = jobs(options)?;
    let mut comparison = Comparison::new(options);
    for (name, nodes) in [("planned", Nodes::Plans), ("no node plans", Nodes::Lists)] {
        comparison.push(name, &jobs, &planned(options, &jobs, nodes)?);
    }
    for policy in [Yardstick::Easy, Yardstick::Fcfs] {
        let fates = yardstick(options, &jobs, policy)?;
        comparison.push(policy.name(), &jobs, &fates);
    }
    Ok(comparison)
}
