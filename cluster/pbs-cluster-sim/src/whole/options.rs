// SPDX-License-Identifier: GPL-2.0
//! Cluster and jobs of a simulation.

use serde::Serialize;

/// Options of a simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Options {
    /// Nodes, which are alike. 1 to 1,000.
    pub nodes: u32,
    /// Cores of each. 1 to 256.
    pub cores: u32,
    /// Jobs have one process for each of their cores, or up to so many. 1 to 100.
    pub most_processes_per_core: u32,
    /// Number of jobs. 1 to 100,000.
    pub jobs: usize,
    /// Deviation of actual lengths from planned ones, as the standard deviation of each task. Half
    /// of the jobs additionally get the deviations of a `pbs-gen` scenario, which has its default
    /// strength at 100. 0: all tasks take their planned length. Up to 300.
    pub deviation_permille: u64,
    /// Core time that is asked for, of what there is while jobs come. 1 to 10,000.
    pub load_permille: u64,
    /// Deadlines are between the end of a job that starts at once and this share of its
    /// duration later. Up to 100,000.
    pub most_slack_permille: u64,
    /// Seed of the random numbers: another seed yields other jobs.
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
