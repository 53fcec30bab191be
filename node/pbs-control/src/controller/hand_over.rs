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
    /// Hands over the prediction failures that were signalled since the last plan. Whoever
    /// does not answer calls [`Controller::refused`].
    pub fn hand_over(&mut self, now_ns: u64) -> HandedOver {
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
        self.failed = false;
        HandedOver::Now
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
