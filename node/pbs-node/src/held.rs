// SPDX-License-Identifier: GPL-2.0
//! Size of what a node holds for its users.

use std::iter::Sum;
use std::ops::{Add, AddAssign, Mul};

use pbs_job::Job;

use crate::orders::Terms;

/// Bytes of a variable of the environment, or of a limit, in addition to its words.
const ITEM_BYTES: usize = 48;

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
    /// Size of a job with that request; `terms`: under which it was ordered, if it was.
    pub fn of(job: &Job, request: &str, terms: Option<&Terms>) -> Self {
        Self {
            jobs: 1,
            tasks: job.tasks.len(),
            programs: job.programs(),
            bytes: job.held_bytes() + request.len() + terms.map_or(0, terms_bytes),
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

fn terms_bytes(terms: &Terms) -> usize {
    let owner = &terms.owner;
    let variables = owner.environment.iter();
    let variables = variables.map(|(name, value)| ITEM_BYTES + name.len() + value.len());
    let limits = owner.limits.iter().map(|limit| ITEM_BYTES + limit.resource.len());
    size_of::<Terms>()
        + variables.sum::<usize>()
        + limits.sum::<usize>()
        + size_of_val(&owner.groups[..])
        + owner.directory.as_os_str().len()
        + owner.output.as_ref().map_or(0, |output| output.as_os_str().len())
        + terms.name.as_ref().map_or(0, String::len)
        + size_of_val(&terms.after[..])
        + size_of_val(&terms.after_ok[..])
}
