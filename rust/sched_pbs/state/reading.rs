// SPDX-License-Identifier: GPL-2.0

//! Readings of the counter: whether they belong to the running thread, and which were done.

use super::insn_clock::InsnClock;
use crate::linux::sched_class::RunQueue;

/// The owner of the count since the last reading, and the readings that were done.
#[derive(Default)]
pub(crate) struct CounterReading {
    /// Whether only this class has run since the counter was last read.
    valid: bool,
    /// Whether the counter was read in this section under the lock.
    in_section: bool,
    /// Whether the thread was charged and sampled since it got the CPU, in the same switch.
    in_switch: bool,
}

impl CounterReading {
    /// Begins a section under the lock.
    pub(crate) fn begin_section(&mut self) {
        self.in_section = false;
    }

    /// Reads the counter of this CPU; `None`: others may have run since the last reading, and the
    /// count begins here.
    pub(crate) fn read(&mut self, rq: &RunQueue, insn_clock: &mut InsnClock) -> Option<u64> {
        self.in_section = true;
        let insns = insn_clock.advance(rq);
        core::mem::replace(&mut self.valid, true).then_some(insns)
    }

    /// Whether the counter was read in this section.
    pub(crate) fn is_read(&self) -> bool {
        self.in_section
    }

    /// Begins the count for a thread that gets this CPU, unless the thread before it was charged.
    ///
    /// In that case nothing has been retired in user space since.
    pub(crate) fn begin(&mut self, rq: &RunQueue, insn_clock: &mut InsnClock) {
        if !core::mem::replace(&mut self.valid, true) {
            insn_clock.advance(rq);
        }
        self.in_section = true;
    }

    /// Notes that a thread of the class has left this CPU; `class_follows`: another one follows it.
    pub(crate) fn end(&mut self, class_follows: bool) {
        self.valid &= class_follows;
    }

    /// Notes that others run on this CPU, whose instructions do not count.
    pub(crate) fn lose(&mut self) {
        self.valid = false;
    }

    /// Notes that a thread gets the CPU, and is to be charged in its next switch.
    pub(crate) fn begin_running(&mut self) {
        self.in_switch = false;
    }

    /// Whether the running thread is still to be charged in this switch: only the first call
    /// returns true.
    pub(crate) fn begin_switch(&mut self) -> bool {
        !core::mem::replace(&mut self.in_switch, true)
    }
}
