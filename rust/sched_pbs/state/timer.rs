// SPDX-License-Identifier: GPL-2.0

//! The timer of a CPU: the moment for which it is set, and the prediction behind that.

use super::threads::{SeatNumber, NO_SEAT};
use crate::pbs_core::{Origin, Predictor, Rate};

/// Length of a tick, about.
const TICK_NS: u64 = 4_000_000;

/// The moment at which the timer expires, and the prediction of a count.
pub(crate) struct Timer {
    /// Time at which the timer will expire, 0: it isn't armed.
    at_ns: u64,
    /// The seat for whose thread the timer was set when it was granted, for the switch to it.
    armed_for: SeatNumber,
    /// Whether the granted process has its own slot, and has not run in it yet.
    slot_begins: bool,
    /// Whether the running thread has ended a task, and the timer was not set yet for the next one.
    task_ended: bool,
    /// Prediction of the moment at which the next count will be reached.
    predictor: Predictor,
}

impl Default for Timer {
    fn default() -> Self {
        Self {
            at_ns: 0,
            armed_for: NO_SEAT,
            slot_begins: false,
            task_ended: false,
            predictor: Predictor::new(Rate::new(0)),
        }
    }
}

impl Timer {
    /// Whether the timer is set.
    pub(crate) fn is_armed(&self) -> bool {
        self.at_ns != 0
    }

    /// Whether the timer will expire by that time.
    pub(crate) fn expires_by(&self, at_ns: u64) -> bool {
        self.at_ns != 0 && self.at_ns <= at_ns
    }

    /// Notes the moment for which the timer is set.
    pub(crate) fn arm(&mut self, at_ns: u64) {
        self.at_ns = at_ns;
    }

    /// Whether the timer has to be set anew, for `at_ns`. `begins`: a slot or a task begins;
    /// `ticks`: a tick has shown how far the thread is.
    pub(crate) fn is_renewed(&self, now_ns: u64, at_ns: u64, begins: bool, ticks: bool) -> bool {
        if at_ns == u64::MAX || self.at_ns == at_ns {
            return false;
        }
        if self.at_ns == 0 || self.at_ns > at_ns {
            return true;
        }
        let first_ns = self.at_ns.saturating_sub(now_ns);
        if begins {
            first_ns < at_ns.saturating_sub(now_ns) / 2
        } else {
            // Earlier ticks than the last one need not.
            ticks && first_ns < TICK_NS
        }
    }

    /// Notes that the timer was set for the thread that is granted the CPU, or for none
    /// ([`NO_SEAT`]).
    pub(crate) fn arm_for(&mut self, seat: SeatNumber) {
        self.armed_for = seat;
    }

    /// Notes that a thread gets the CPU. Returns whether the timer was set for it.
    pub(crate) fn begin_running(&mut self, seat: SeatNumber) -> bool {
        self.task_ended = false;
        core::mem::replace(&mut self.armed_for, NO_SEAT) == seat
    }

    /// Notes that the grant has changed. `begins`: the granted process begins its own slot.
    pub(crate) fn note_grant(&mut self, begins: bool) {
        self.slot_begins = begins;
    }

    /// Notes that the running thread has ended a task.
    pub(crate) fn note_task_end(&mut self) {
        self.task_ended = true;
    }

    /// Whether a slot or a task begins; only the first call returns true.
    pub(crate) fn take_begins(&mut self) -> bool {
        core::mem::take(&mut self.slot_begins) | core::mem::take(&mut self.task_ended)
    }

    /// Sets the rate of the CPU; `fastest`: the rate of the fastest expected thread.
    pub(crate) fn set_rate(&mut self, fastest: Rate) {
        self.predictor = Predictor::new(fastest);
    }

    /// See [`Predictor::expiry_ns`].
    pub(crate) fn count_ns(&self, now_ns: u64, left_insns: u64, origin: Origin) -> u64 {
        self.predictor.expiry_ns(now_ns, left_insns, origin)
    }

    /// See [`Predictor::least_ns`].
    pub(crate) fn least_ns(&self, insns: u64) -> u64 {
        self.predictor.least_ns(insns)
    }

    /// See [`Predictor::earliest_ns`].
    pub(crate) fn earliest_ns(&self, now_ns: u64) -> u64 {
        self.predictor.earliest_ns(now_ns)
    }

    /// Notes a prediction: at the expiry the count shows the way from here, `count_insns`, to the
    /// running thread.
    pub(crate) fn predict(&mut self, now_ns: u64, count_insns: u64, origin: Origin) {
        self.predictor.set(now_ns, self.at_ns, count_insns, origin);
    }

    /// Forgets the prediction: at the expiry the count shows nothing.
    pub(crate) fn forget_prediction(&mut self) {
        self.predictor.forget();
    }

    /// Notes that the thread, or the plan, has made progress.
    pub(crate) fn progress(&mut self) {
        self.predictor.progress();
    }

    /// Notes that the timer has expired.
    pub(crate) fn expire(&mut self) {
        self.at_ns = 0;
    }

    /// See [`Predictor::expired`].
    pub(crate) fn learn(&mut self, now_ns: u64, count_insns: u64, in_user: bool, by_clock: bool) {
        self.predictor
            .expired(now_ns, count_insns, in_user, by_clock);
    }
}
