// SPDX-License-Identifier: GPL-2.0
//! Running jobs on one pool of cores, with the ends that a scheduler expects, and what is learned
//! from their run times.

use std::collections::HashMap;

use pbs_cluster_planner::run_times::{corrected_end_s, Estimator, Expect, JobKind};

/// Running jobs and the cores that they leave.
#[derive(Clone, Debug)]
pub(crate) struct RunningJobs {
    free_cores: u64,
    estimator: Estimator<u64>,
    jobs: HashMap<usize, Running>,
}

/// A job that a scheduler starts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Starting {
    pub(crate) job: usize,
    pub(crate) kind: JobKind<u64>,
    /// Run time for which the scheduler books the cores.
    pub(crate) booked_s: u64,
}

#[derive(Clone, Copy, Debug)]
struct Running {
    kind: JobKind<u64>,
    start_s: u64,
    /// Expected end.
    end_s: u64,
    limit_end_s: u64,
}

impl RunningJobs {
    /// Creates a pool of that many idle cores.
    pub(crate) fn new(cores: u64, expect: Expect) -> Self {
        Self { free_cores: cores, estimator: Estimator::new(expect), jobs: HashMap::new() }
    }

    pub(crate) fn free_cores(&self) -> u64 {
        self.free_cores
    }

    /// Returns the run time that is expected of a job.
    pub(crate) fn expected_s(&self, job: &JobKind<u64>) -> u64 {
        self.estimator.expected_s(job)
    }

    pub(crate) fn begin(&mut self, now_s: u64, starting: Starting) {
        let Starting { job, kind, booked_s } = starting;
        self.free_cores -= kind.cores;
        let running = Running {
            kind,
            start_s: now_s,
            end_s: now_s.saturating_add(booked_s),
            limit_end_s: now_s.saturating_add(kind.limit_s),
        };
        self.jobs.insert(job, running);
    }

    pub(crate) fn ended(&mut self, now_s: u64, job: usize) {
        if let Some(of) = self.jobs.remove(&job) {
            self.free_cores += of.kind.cores;
            self.estimator.ended(&of.kind, now_s - of.start_s);
        }
    }

    /// Corrects the ends of jobs that run for longer than was expected.
    pub(crate) fn correct(&mut self, now_s: u64) {
        for of in self.jobs.values_mut() {
            of.end_s = corrected_end_s(now_s, of.start_s, of.end_s, of.limit_end_s);
        }
    }

    /// Returns the expected end of each job and its cores, in no order.
    pub(crate) fn ends(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.jobs.values().map(|of| (of.end_s, of.kind.cores))
    }
}
