// SPDX-License-Identifier: GPL-2.0

//! The counter of a CPU: its tier, its rate, and its interrupts.

use crate::{pbs_core::Rate, state::insn_clock::Tier};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use kernel::{cpu::PossibleCpu, irq_work::IrqWork, perf_event::OverflowHandler, prelude::*};

/// The work that the counter's interrupt, which may be an NMI, must not do. See
/// [`interrupts`](crate::engine::interrupts).
pub(crate) struct Overflowed(pub(crate) PossibleCpu);

/// The way in which a CPU counts instructions.
#[pin_data]
pub(crate) struct Counter {
    /// The [`Tier`] of the CPU, and the one that it had when it came up.
    tier: AtomicU32,
    best_tier: AtomicU32,
    /// The rate that was measured when the CPU came up, and its spread.
    measured_insns_per_ms: AtomicU64,
    rate_spread_permille: AtomicU64,
    /// The rate that an operator has declared, 0: none.
    declared_insns_per_ms: AtomicU64,
    /// The number of interrupts.
    overflows: AtomicU64,
    /// Whether a test suppresses the interrupts.
    silent: AtomicBool,
    #[pin]
    overflowed: IrqWork<Overflowed>,
}

impl Counter {
    /// The counter of a CPU which has not come up yet.
    pub(crate) fn new(cpu: PossibleCpu) -> impl PinInit<Self> {
        pin_init!(Self {
            tier: AtomicU32::new(Tier::Clock as u32),
            best_tier: AtomicU32::new(Tier::Clock as u32),
            measured_insns_per_ms: AtomicU64::new(1),
            rate_spread_permille: AtomicU64::new(0),
            declared_insns_per_ms: AtomicU64::new(0),
            overflows: AtomicU64::new(0),
            silent: AtomicBool::new(false),
            overflowed <- IrqWork::new_hard(Overflowed(cpu)),
        })
    }

    /// The present tier of the CPU.
    pub(crate) fn tier(&self) -> Tier {
        Tier::from_number(self.tier.load(Ordering::Relaxed))
    }

    /// The tier that the CPU had when it came up.
    pub(crate) fn best_tier(&self) -> Tier {
        Tier::from_number(self.best_tier.load(Ordering::Relaxed))
    }

    /// Whether the CPU counts in a worse way than when it came up.
    pub(crate) fn has_failed(&self) -> bool {
        self.tier() > self.best_tier()
    }

    /// Sets the tier from now on.
    pub(crate) fn set_tier(&self, tier: Tier) {
        self.silent.store(false, Ordering::Relaxed);
        self.tier.store(tier as u32, Ordering::Relaxed);
    }

    /// Notes the tier and the rate that were found when the CPU came up.
    pub(crate) fn set_found(&self, tier: Tier, rate: Rate, spread_permille: u64) {
        self.set_tier(tier);
        self.best_tier.store(tier as u32, Ordering::Relaxed);
        self.measured_insns_per_ms
            .store(rate.insns_per_ms(), Ordering::Relaxed);
        self.rate_spread_permille
            .store(spread_permille, Ordering::Relaxed);
    }

    /// The rate at which the CPU retires instructions: as an operator has declared it, or else as
    /// measured.
    pub(crate) fn rate(&self) -> Rate {
        match self.declared_insns_per_ms.load(Ordering::Relaxed) {
            0 => Rate::new(self.measured_insns_per_ms.load(Ordering::Relaxed)),
            insns_per_ms => Rate::new(insns_per_ms),
        }
    }

    /// The greatest expected rate of a thread. A CPU that is declared slow may be as fast as was
    /// measured, and its threads must be stopped in time all the same.
    pub(crate) fn fastest_rate(&self) -> Rate {
        let declared = self.declared_insns_per_ms.load(Ordering::Relaxed);
        Rate::new(declared.max(self.measured_insns_per_ms.load(Ordering::Relaxed)))
    }

    /// Notes the rate that an operator has declared, 0: none.
    pub(crate) fn set_declared_rate(&self, insns_per_ms: u32) {
        self.declared_insns_per_ms
            .store(insns_per_ms.into(), Ordering::Relaxed);
    }

    /// Spread of the rate while it was measured.
    pub(crate) fn rate_spread_permille(&self) -> u64 {
        self.rate_spread_permille.load(Ordering::Relaxed)
    }

    /// The number of interrupts.
    pub(crate) fn overflows(&self) -> u64 {
        self.overflows.load(Ordering::Relaxed)
    }

    /// Suppresses the interrupts until the CPU has another counter.
    #[cfg(CONFIG_SCHED_CLASS_PBS_FAULTS)]
    pub(crate) fn silence(&self) {
        self.silent.store(true, Ordering::Relaxed);
    }
}

impl OverflowHandler for Counter {
    fn overflow(&self) {
        if cfg!(CONFIG_SCHED_CLASS_PBS_FAULTS) && self.silent.load(Ordering::Relaxed) {
            return;
        }
        self.overflows.fetch_add(1, Ordering::Relaxed);
        self.overflowed.queue();
    }
}
