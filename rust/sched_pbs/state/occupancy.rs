// SPDX-License-Identifier: GPL-2.0

//! The thread that is granted the CPU, and the thread that has it.

use super::threads::{SeatNumber, NO_SEAT};

/// The thread that is granted the CPU, and the thread that has it.
#[derive(Default)]
pub(crate) struct Occupancy {
    /// The seat whose thread may run by the last decision.
    granted: SeatNumber,
    /// The seat whose thread the CPU executes.
    running: SeatNumber,
    /// The seat whose thread is granted the CPU where it waits, and has to be woken up.
    wake: SeatNumber,
    /// Whether the class has the CPU, and its time counts as load.
    has_cpu: bool,
}

impl Occupancy {
    /// The seat whose thread may run user code.
    pub(crate) fn granted(&self) -> SeatNumber {
        self.granted
    }

    /// Whether the thread of that seat may run user code.
    pub(crate) fn is_granted(&self, seat: SeatNumber) -> bool {
        seat != NO_SEAT && seat == self.granted
    }

    /// Grants the CPU to the thread of that seat. Returns the seat before.
    pub(crate) fn grant(&mut self, seat: SeatNumber) -> SeatNumber {
        core::mem::replace(&mut self.granted, seat)
    }

    /// Notes that a thread leaves the class, and loses the grant if it had it.
    pub(crate) fn leave(&mut self, seat: SeatNumber) {
        if self.granted == seat {
            self.granted = NO_SEAT;
        }
    }

    /// The seat whose thread has the CPU.
    pub(crate) fn running(&self) -> SeatNumber {
        self.running
    }

    /// Whether a thread of the class has the CPU.
    pub(crate) fn runs(&self) -> bool {
        self.running != NO_SEAT
    }

    /// Whether the CPU executes the thread that is granted it.
    pub(crate) fn runs_granted(&self) -> bool {
        self.is_granted(self.running)
    }

    /// Whether the CPU executes a thread of the class that is not granted it.
    pub(crate) fn runs_another(&self) -> bool {
        self.running != NO_SEAT && self.running != self.granted
    }

    /// Whether the class has the CPU, or a thread of it has just left it.
    pub(crate) fn has_cpu(&self) -> bool {
        self.has_cpu
    }

    /// Notes that a thread gets the CPU. Returns whether the class had it before.
    pub(crate) fn begin_running(&mut self, seat: SeatNumber) -> bool {
        self.running = seat;
        core::mem::replace(&mut self.has_cpu, true)
    }

    /// Notes that the running thread has left the CPU; `class_follows`: for another one of the
    /// class.
    pub(crate) fn end_running(&mut self, class_follows: bool) {
        self.running = NO_SEAT;
        self.has_cpu &= class_follows;
    }

    /// Notes that the granted thread waits, and must be woken up.
    ///
    /// A thread that was noted before is not granted any more; it is woken up when it is again.
    pub(crate) fn note_wake(&mut self) {
        self.wake = self.granted;
    }

    /// Notes that the granted thread has just been executing, and need not be woken up.
    pub(crate) fn forget_wake(&mut self) {
        self.wake = NO_SEAT;
    }

    /// The seat whose thread has to be woken up; only the first call returns it.
    pub(crate) fn take_wake(&mut self) -> SeatNumber {
        core::mem::replace(&mut self.wake, NO_SEAT)
    }
}
