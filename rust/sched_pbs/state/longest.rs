// SPDX-License-Identifier: GPL-2.0

//! The longest times that were measured on a CPU, for sysfs.

/// The longest times since boot.
#[derive(Default)]
pub(crate) struct LongestTimes {
    stop_ns: u64,
    swap_ns: u64,
}

impl LongestTimes {
    /// Notes the time that a thread took to its waiting place.
    pub(crate) fn note_stop(&mut self, ns: u64) {
        self.stop_ns = self.stop_ns.max(ns);
    }

    /// Notes the time for which the run queue was locked for a change of plans.
    pub(crate) fn note_swap(&mut self, ns: u64) {
        self.swap_ns = self.swap_ns.max(ns);
    }

    /// The longest time that a thread took to its waiting place.
    pub(crate) fn stop_ns(&self) -> u64 {
        self.stop_ns
    }

    /// The longest time for which the run queue was locked at once for a change of plans.
    pub(crate) fn swap_ns(&self) -> u64 {
        self.swap_ns
    }
}
