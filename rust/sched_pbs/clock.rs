// SPDX-License-Identifier: GPL-2.0

//! The instruction clock of a CPU.
//!
//! Where the PMU counts, a pinned counter of user instructions; elsewhere the CPU's task time at
//! the calibrated rate. Which of the two is found out when the CPU comes up, by counting a loop
//! whose instructions are known.

use super::pbs_core::Rate;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use kernel::{
    bindings, clock,
    perf_event::{CounterOptions, KernelCounter},
    sched_class::RunQueue,
};

/// Turns of the calibration loop.
const CALIBRATION_TURNS: u64 = 500_000;

/// Instructions in a turn of the calibration loop.
const INSNS_PER_TURN: u64 = 2;

/// Instructions per millisecond, measured when the first CPU came up.
static RATE: AtomicU64 = AtomicU64::new(0);

/// The tier, `PBS_TIER_*`, of all CPUs: the worst of any.
static TIER: AtomicU32 = AtomicU32::new(0);

/// The rate at which a CPU retires instructions.
pub(crate) fn rate() -> Rate {
    Rate::new(RATE.load(Ordering::Relaxed))
}

/// How instructions are counted, `PBS_TIER_*`.
pub(crate) fn tier() -> u32 {
    TIER.load(Ordering::Relaxed)
}

/// The name of the tier.
pub(crate) fn tier_name() -> &'static str {
    match tier() {
        bindings::pbs_tier_PBS_TIER_PMU_OVERFLOW => "pmu_overflow",
        bindings::pbs_tier_PBS_TIER_PMU => "pmu",
        _ => "clock",
    }
}

/// Retires a known number of instructions: `INSNS_PER_TURN` a turn.
fn calibration_loop(turns: u64) {
    #[cfg(CONFIG_ARM64)]
    // SAFETY: Counts a register down.
    unsafe {
        core::arch::asm!("2: subs {n}, {n}, #1", "b.ne 2b", n = inout(reg) turns => _)
    };
    #[cfg(CONFIG_X86_64)]
    // SAFETY: Counts a register down.
    unsafe {
        core::arch::asm!("2: dec {n}", "jnz 2b", n = inout(reg) turns => _)
    };
    #[cfg(not(any(CONFIG_ARM64, CONFIG_X86_64)))]
    for turn in 0..turns {
        core::hint::black_box(turn);
    }
}

/// The counter of a CPU, if it has one that counts.
///
/// Runs on `cpu`, in process context, when it comes up. The first call measures the rate too.
pub(crate) fn probe(cpu: u32) -> Option<KernelCounter> {
    let all = CounterOptions {
        exclude_kernel: false,
        ..CounterOptions::user_instructions()
    };
    let probe = KernelCounter::new(cpu, &all).ok();
    let read = || probe.as_ref().and_then(|counter| counter.read_local().ok());
    let (start_insns, start_ns) = (read(), clock::monotonic_ns());
    calibration_loop(CALIBRATION_TURNS);
    let (end_insns, end_ns) = (read(), clock::monotonic_ns());
    drop(probe);

    let loop_insns = CALIBRATION_TURNS * INSNS_PER_TURN;
    let elapsed_ns = end_ns.saturating_sub(start_ns).max(1);
    // What was counted in this time says more than the loop, as interrupts may have come.
    let insns = match (start_insns, end_insns) {
        (Some(start), Some(end)) => end.saturating_sub(start).max(loop_insns),
        _ => loop_insns,
    };
    let measured = (insns * 1_000_000 / elapsed_ns).max(1);
    let _ = RATE.compare_exchange(0, measured, Ordering::Relaxed, Ordering::Relaxed);

    // Nothing can take from the loop.
    let counts = matches!(
        (start_insns, end_insns),
        (Some(start), Some(end)) if end.saturating_sub(start) >= loop_insns
    );
    let counter = if counts {
        KernelCounter::new(cpu, &CounterOptions::user_instructions()).ok()
    } else {
        None
    };
    let tier = if counter.is_some() {
        bindings::pbs_tier_PBS_TIER_PMU
    } else {
        bindings::pbs_tier_PBS_TIER_CLOCK
    };
    TIER.fetch_max(tier, Ordering::Relaxed);
    counter
}

/// The instruction clock of a CPU, under the lock of its run queue.
#[derive(Default)]
pub(crate) struct InsnClock {
    counter: Option<KernelCounter>,
    last_insns: u64,
}

impl InsnClock {
    /// Takes the CPU's counter, and returns the one that it had before.
    pub(crate) fn set_counter(&mut self, counter: Option<KernelCounter>) -> Option<KernelCounter> {
        core::mem::replace(&mut self.counter, counter)
    }

    /// Whether there is a counter; otherwise the clock counts.
    pub(crate) fn has_counter(&self) -> bool {
        self.counter.is_some()
    }

    /// The instructions retired on this CPU since the last call.
    ///
    /// The run queue is this CPU's.
    pub(crate) fn advance(&mut self, rq: &RunQueue) -> u64 {
        let now = match &self.counter {
            // A counter that can't be read stands still; the slot's ceiling ends the slot then.
            Some(counter) => counter.read_local().unwrap_or(self.last_insns),
            None => rate().to_insns(rq.clock_task_ns()),
        };
        let delta = now.saturating_sub(self.last_insns);
        self.last_insns = now;
        delta
    }
}
