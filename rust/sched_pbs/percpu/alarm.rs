// SPDX-License-Identifier: GPL-2.0

//! The hrtimer of a CPU.

use core::sync::atomic::{AtomicU64, Ordering};
use kernel::{cpu::PossibleCpu, hrtimer::HrTimer, prelude::*};

/// Expiry of the alarm: the next moment has come. See [`interrupts`](crate::engine::interrupts).
pub(crate) struct Expiry(pub(crate) PossibleCpu);

/// Timer for the next moment that the clock brings, or at which a count is predicted.
#[pin_data]
pub(crate) struct Alarm {
    /// Number of expiries.
    interrupts: AtomicU64,
    #[pin]
    timer: HrTimer<Expiry>,
}

impl Alarm {
    /// An alarm that is not set.
    pub(crate) fn new(cpu: PossibleCpu) -> impl PinInit<Self> {
        pin_init!(Self {
            interrupts: AtomicU64::new(0),
            timer <- HrTimer::new(Expiry(cpu)),
        })
    }

    /// Sets the alarm for that monotonic time. On the CPU itself.
    pub(crate) fn arm(&self, at_ns: u64) {
        self.timer.start_abs(at_ns);
    }

    /// Counts one more expiry.
    pub(crate) fn note_interrupt(&self) {
        self.interrupts.fetch_add(1, Ordering::Relaxed);
    }

    /// Number of expiries.
    pub(crate) fn interrupts(&self) -> u64 {
        self.interrupts.load(Ordering::Relaxed)
    }
}
