// SPDX-License-Identifier: GPL-2.0
//! Prediction failures that somebody else answers.
//!
//! The plan of such an answer is not the controller's: its reservations remain those of its
//! own last plan until it plans again, when the next job is admitted or when it answers itself.

use super::Controller;

/// Whether what was to be answered is somebody else's now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandedOver {
    /// There was no failure, or nothing is left to plan.
    Nothing,
    /// A plan came a moment ago; ask again at this time.
    NotBefore(u64),
    /// The caller answers.
    Now,
}

impl Controller {
    /// Whether a plan is wanted that only the controller can make: something else than a
    /// prediction failure asks for it, or a failure on a CPU that nobody else answers for.
    pub fn needs_own_plan(&self, others: impl Fn(u32) -> bool) -> bool {
        let is_own = self.failed || self.failed_on.iter().any(|&cpu| !others(cpu));
        is_own && !self.has_nothing_to_plan()
    }

    /// Hands over the prediction failures on a CPU that were signalled since the last plan, if the
    /// controller need not plan itself ([`Controller::needs_own_plan`]). Failures on other CPUs
    /// still want an answer. Whoever does not answer calls [`Controller::refused`], or
    /// [`Controller::handed_back`] to be asked again.
    pub fn hand_over(&mut self, cpu: u32, others: impl Fn(u32) -> bool, now_ns: u64) -> HandedOver {
        self.cancel_at_once();
        if !self.is_asked() {
            return HandedOver::Nothing;
        }
        if now_ns < self.pace.next_ns() {
            return HandedOver::NotBefore(self.pace.next_ns());
        }
        self.cancel_cut();
        if self.has_nothing_to_plan() {
            return HandedOver::Nothing;
        }
        if self.needs_own_plan(others) || !self.failed_on.remove(&cpu) {
            return HandedOver::Nothing;
        }
        HandedOver::Now
    }

    /// The prediction failures on a CPU that were handed over want an answer still, from whom
    /// they were handed to.
    pub fn handed_back(&mut self, cpu: u32) {
        self.failed_on.insert(cpu);
    }

    /// Returns the number of a plan that somebody else has made, and that is about to be
    /// written.
    pub fn next_plan_id(&mut self, now_ns: u64) -> u64 {
        let plan_id = self.plan_id;
        self.plan_id += 1;
        self.pace.made(now_ns);
        plan_id
    }
}
