// SPDX-License-Identifier: GPL-2.0
//! Size of what a node holds for its users.

use std::iter::Sum;
use std::ops::{Add, AddAssign, Mul};

use pbs_job::Job;

/// Size of open jobs: those that wait and those that are planned or run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Number of the jobs.
    pub jobs: usize,
    /// Number of their tasks.
    pub tasks: usize,
    /// Number of their programs.
    pub programs: usize,
    /// Bytes of their requests, their terms, and what is made of them.
    pub bytes: usize,
}

impl Held {
    /// Size of a job with that request, under terms of that size ([`Terms::held_bytes`]).
    ///
    /// [`Terms::held_bytes`]: crate::Terms::held_bytes
    pub fn of(job: &Job, request: &str, terms_bytes: usize) -> Self {
        Self {
            jobs: 1,
            tasks: job.tasks.len(),
            programs: job.programs(),
            bytes: job.held_bytes() + request.len() + terms_bytes,
        }
    }

    /// Size that is left when another is taken away.
    pub fn without(self, other: Self) -> Self {
        Self {
            jobs: self.jobs.saturating_sub(other.jobs),
            tasks: self.tasks.saturating_sub(other.tasks),
            programs: self.programs.saturating_sub(other.programs),
            bytes: self.bytes.saturating_sub(other.bytes),
        }
    }
}

impl Add for Held {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            jobs: self.jobs.saturating_add(other.jobs),
            tasks: self.tasks.saturating_add(other.tasks),
            programs: self.programs.saturating_add(other.programs),
            bytes: self.bytes.saturating_add(other.bytes),
        }
    }
}

impl AddAssign for Held {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Mul<usize> for Held {
    type Output = Self;

    fn mul(self, times: usize) -> Self {
        Self {
            jobs: self.jobs.saturating_mul(times),
            tasks: self.tasks.saturating_mul(times),
            programs: self.programs.saturating_mul(times),
            bytes: self.bytes.saturating_mul(times),
        }
    }
}

impl Sum for Held {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), Self::add)
    }
}
