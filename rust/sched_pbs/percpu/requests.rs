// SPDX-License-Identifier: GPL-2.0

//! Requests to a CPU, which it handles in an interrupt of its own.

use core::sync::atomic::{AtomicU32, Ordering};
use kernel::{cpu::PossibleCpu, irq_work::IrqWork, prelude::*};

/// A request to a CPU, as a bit.
#[derive(Clone, Copy)]
#[repr(u32)]
pub(crate) enum Request {
    /// A thread has to leave the class, which takes process context.
    Eject = 1 << 0,
    /// The counter has failed, which process context may mend.
    Recover = 1 << 1,
    /// The CPU has no tick of its own, and another CPU found it due.
    Tick = 1 << 2,
    /// A task on another CPU has ended that a process here may wait for.
    Order = 1 << 3,
}

/// Handles the requests of a CPU on that CPU, and settles. See
/// [`interrupts`](crate::engine::interrupts).
pub(crate) struct Kick(pub(crate) PossibleCpu);

/// The requests of one CPU.
#[pin_data]
pub(crate) struct Requests {
    cpu: PossibleCpu,
    /// The [`Request`]s that were not handled yet.
    pending: AtomicU32,
    #[pin]
    kick: IrqWork<Kick>,
}

impl Requests {
    /// The absence of requests.
    pub(crate) fn new(cpu: PossibleCpu) -> impl PinInit<Self> {
        pin_init!(Self {
            cpu,
            pending: AtomicU32::new(0),
            kick <- IrqWork::new_hard(Kick(*cpu)),
        })
    }

    /// Adds a request, which the CPU handles soon. Any context but NMI.
    pub(crate) fn add(&self, request: Request) {
        self.pending.fetch_or(request as u32, Ordering::Relaxed);
        self.kick();
    }

    /// Whether that was requested since the last call.
    pub(crate) fn take(&self, request: Request) -> bool {
        let bit = request as u32;
        self.pending.load(Ordering::Relaxed) & bit != 0
            && self.pending.fetch_and(!bit, Ordering::Relaxed) & bit != 0
    }

    /// Settles in interrupt context on the CPU itself.
    pub(crate) fn kick(&self) {
        self.kick.queue_on(self.cpu);
    }
}
