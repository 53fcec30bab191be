// SPDX-License-Identifier: GPL-2.0

//! The watchdog's access to a CPU.

use core::sync::atomic::{AtomicBool, Ordering};
use kernel::{cpu::PossibleCpu, irq_work::IrqWork, prelude::*};

/// Interrupt in which a CPU checks itself. See [`watchdog`](crate::protect::watchdog).
pub(crate) struct WatchdogLook(pub(crate) PossibleCpu);

/// Checks of a CPU for the watchdog, on that CPU.
#[pin_data]
pub(crate) struct Inspection {
    cpu: PossibleCpu,
    /// Whether the CPU is to have the watchdog's timer.
    carries_watchdog: AtomicBool,
    #[pin]
    look: IrqWork<WatchdogLook>,
}

impl Inspection {
    /// An inspection before its first check.
    pub(crate) fn new(cpu: PossibleCpu) -> impl PinInit<Self> {
        pin_init!(Self {
            cpu,
            carries_watchdog: AtomicBool::new(false),
            look <- IrqWork::new_hard(WatchdogLook(*cpu)),
        })
    }

    /// Requests a check of the CPU soon.
    pub(crate) fn queue(&self) {
        self.look.queue_on(self.cpu);
    }

    /// Gives the CPU the watchdog's timer with the next check.
    pub(crate) fn hand_over_watchdog(&self) {
        self.carries_watchdog.store(true, Ordering::Relaxed);
    }

    /// Whether the CPU was given the timer; only the first call returns true.
    pub(crate) fn take_watchdog(&self) -> bool {
        self.carries_watchdog.swap(false, Ordering::Relaxed)
    }
}
