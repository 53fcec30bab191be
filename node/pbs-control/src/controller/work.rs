// SPDX-License-Identifier: GPL-2.0
//! Steps of work that admissions may take together.

use pbs_planner::{Budget, Options};

use super::Controller;

/// Part of the steps of an admission that each further question about a declined job may take.
const OF_DECLINED: u64 = 4;

impl Controller {
    /// Allows all admissions from now on together so many steps of work
    /// ([`pbs_planner::Options::max_work`]), with what is done to report why jobs were declined.
    /// `each`: the steps that one admission may take. The questions that follow if it declines the
    /// job may take a quarter of that.
    pub fn allow_work(&mut self, steps: u64, each: u64) {
        self.work_left = Some(steps);
        self.options.planning.max_work = each;
    }

    /// Returns the steps that were allowed and not taken; `None`: they have no common bound.
    pub fn work_left(&self) -> Option<u64> {
        self.work_left
    }

    /// Starts to count the work of an admission.
    pub(super) fn admission_work(&self) -> Budget {
        self.work_of(self.options.planning.max_work)
    }

    /// Starts to count the work of a further question about a job that was declined. Returns also
    /// the options of its tries.
    pub(super) fn declined_work(&self) -> (Budget, Options) {
        let mut options = self.options.planning.clone();
        if self.work_left.is_some() {
            options.max_work = (options.max_work / OF_DECLINED).max(1);
        }
        (self.work_of(options.max_work), options)
    }

    fn work_of(&self, most: u64) -> Budget {
        Budget::new(self.work_left.map_or(most, |left| left.min(most)))
    }

    /// Takes the work of a question from what is allowed.
    pub(super) fn worked(&mut self, work: &Budget) {
        self.work_left = self.work_left.map(|left| left.saturating_sub(work.done()));
    }
}
