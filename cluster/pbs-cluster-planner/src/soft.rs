// SPDX-License-Identifier: GPL-2.0
//! Limits that give way while the cluster is not in full use: Keller's dynamic soft limits
//! (8).

use std::cell::Cell;

use pbs_profile::{Profile, FOREVER};

use crate::budget::PROFILE_LOOKS;

/// Condition of a soft limit on a request at each moment: either the consumer's allowance or the
/// unused amount is large enough.
#[derive(Clone, Copy)]
pub(crate) struct SoftHole<'a> {
    /// Allowance of the consumer.
    pub(crate) allowance: &'a Profile,
    pub(crate) amount: u64,
    /// Unused amount of the resource.
    pub(crate) free: &'a Profile,
    /// Unused amount that is needed.
    pub(crate) free_amount: u64,
}

impl SoftHole<'_> {
    /// Whether it is enough at a time, and until when nothing changes.
    fn at(&self, time_s: u64) -> (bool, u64) {
        let step = |of: &Profile| {
            let step = of.steps_from(time_s).next();
            step.map_or((0, FOREVER), |step| (step.value, step.until))
        };
        let (allowed, free) = (step(self.allowance), step(self.free));
        let is_enough = allowed.0 >= self.amount || free.0 >= self.free_amount;
        (is_enough, allowed.1.min(free.1))
    }

    /// The first time from then on from which it is enough for a duration; [`FOREVER`] if
    /// there is none. Adds the steps that were looked at to `looks`.
    pub(crate) fn next_start_s(&self, duration_s: u64, from_s: u64, looks: &Cell<usize>) -> u64 {
        let (mut start_s, mut at_s) = (from_s, from_s);
        while at_s < start_s.saturating_add(duration_s) && at_s != FOREVER {
            let (is_enough, until_s) = self.at(at_s);
            looks.set(looks.get() + PROFILE_LOOKS);
            if !is_enough {
                start_s = until_s;
            }
            at_s = until_s;
        }
        start_s
    }

    /// Returns the time of the next change.
    pub(crate) fn next_change_s(&self, after_s: u64) -> u64 {
        self.at(after_s).1
    }

    /// Returns the number of times at which something changes, about.
    pub(crate) fn change_count(&self) -> usize {
        self.allowance.step_count() + self.free.step_count()
    }

    /// The times at which something changes.
    pub(crate) fn changes(&self) -> impl Iterator<Item = u64> + '_ {
        let steps = self.allowance.iter().chain(self.free.iter());
        steps.map(|step| step.from)
    }
}
