// SPDX-License-Identifier: GPL-2.0

//! Detection of the way in which a CPU can count: when it comes up, and again while its counter has
//! failed.
//!
//! All of this runs in process context on the CPU itself and sleeps.

use super::control;
use crate::{
    linux::sched_class::{self, RunQueue},
    pbs_core::Rate,
    percpu::cpu::Cpu,
    state::{
        insn_clock::{self, Tier, TierCause},
        State,
    },
};
use kernel::{
    clock::monotonic_ns,
    cpu::without_interrupts,
    perf_event::{CounterOptions, KernelCounter},
    prelude::*,
};

/// Instructions in a turn of [`known_loop`].
const INSNS_PER_TURN: u64 = 2;

/// Turns of one measurement of the rate.
const RATE_TURNS: u64 = 20_000;

/// Measurements of the rate. Interrupts disturb some: the tenth at either end do not count.
const RATE_ROUNDS: usize = 20;

/// Instructions to the overflow that is requested to check whether it interrupts.
const OVERFLOW_INSNS: u64 = 20_000;

/// Number of such requests: one may be in time by chance.
const OVERFLOW_ROUNDS: usize = 8;

/// Permitted lateness of that interrupt: a PMU of a virtual machine may report only when something
/// else interrupts.
const OVERFLOW_SLACK_INSNS: u64 = 5_000;

/// The rate at which a CPU retires instructions, as measured.
#[derive(Clone, Copy)]
pub(crate) struct MeasuredRate {
    /// The median.
    pub(crate) rate: Rate,
    /// The difference of the greatest and the least, in thousandths of the median.
    pub(crate) spread_permille: u64,
}

/// Retires a known number of instructions: [`INSNS_PER_TURN`] a turn.
fn known_loop(turns: u64) {
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

/// Measures the rate of this CPU.
///
/// The rate is measured by the instructions of a loop, not by the counter: therefore it is the same
/// in every tier.
pub(crate) fn measure_rate() -> MeasuredRate {
    let mut rounds = [0; RATE_ROUNDS];
    for round in &mut rounds {
        let start_ns = monotonic_ns();
        known_loop(RATE_TURNS);
        let elapsed_ns = monotonic_ns().saturating_sub(start_ns).max(1);
        *round = RATE_TURNS * INSNS_PER_TURN * 1_000_000 / elapsed_ns;
    }
    rounds.sort_unstable();
    let at = |place: usize| rounds.get(place).copied().unwrap_or(1).max(1);
    let median = at(RATE_ROUNDS / 2);
    let outside = RATE_ROUNDS / 10;
    MeasuredRate {
        rate: Rate::new(median),
        spread_permille: (at(RATE_ROUNDS - 1 - outside) - at(outside)) * 1000 / median,
    }
}

/// Options to count everything that this CPU retires: this way a loop in the kernel is visible.
const ALL: CounterOptions = CounterOptions {
    exclude_kernel: false,
    ..CounterOptions::user_instructions()
};

/// Whether the CPU has a counter of instructions that counts.
fn counts(cpu: &Cpu) -> bool {
    let Ok(counter) = KernelCounter::new(cpu.number(), &ALL) else {
        return false;
    };
    let before = counter.read_local();
    known_loop(RATE_TURNS);
    let after = counter.read_local();
    // The loop can't be counted less, but others may add to it.
    matches!(
        (before, after),
        (Ok(before), Ok(after))
            if after.count.saturating_sub(before.count) >= RATE_TURNS * INSNS_PER_TURN
    )
}

/// Whether the counter interrupts when it overflows, in time and each time.
fn interrupts(cpu: &'static Cpu) -> bool {
    KernelCounter::with_overflow(cpu.number(), &ALL, &cpu.counter)
        .is_ok_and(|counter| (0..OVERFLOW_ROUNDS).all(|_| interrupts_once(cpu, &counter)))
}

fn interrupts_once(cpu: &Cpu, counter: &KernelCounter) -> bool {
    const PIECE: u64 = OVERFLOW_SLACK_INSNS / 5;
    let before = cpu.counter.overflows();
    let set = without_interrupts(|off| counter.overflow_after(off, OVERFLOW_INSNS));
    if set.is_err() {
        return false;
    }
    for _ in 0..(OVERFLOW_INSNS + OVERFLOW_SLACK_INSNS) / PIECE {
        known_loop(PIECE / INSNS_PER_TURN);
    }
    cpu.counter.overflows() != before
}

/// Finds the best way for this CPU to count, or the one that the command line requests. The
/// counters for this search are returned.
pub(crate) fn find(cpu: &'static Cpu) -> Tier {
    let asked = insn_clock::asked();
    if asked == Some(Tier::Clock) || !counts(cpu) {
        return Tier::Clock;
    }
    match asked {
        None if interrupts(cpu) => Tier::PmuOverflow,
        Some(tier) if counter(cpu, tier).is_some() => tier,
        _ => Tier::Pmu,
    }
}

/// The counter of a tier, which counts the user code on a CPU that is online.
pub(crate) fn counter(cpu: &'static Cpu, tier: Tier) -> Option<KernelCounter> {
    let user = CounterOptions::user_instructions();
    match tier {
        // A machine without this counter takes the next tier.
        Tier::PmuOverflow => KernelCounter::with_overflow(cpu.number(), &user, &cpu.counter).ok(),
        // A machine without this counter takes the next tier.
        Tier::Pmu => KernelCounter::new(cpu.number(), &user).ok(),
        Tier::Clock => None,
    }
}

/// Replaces the counter of the CPU by another one, which works. Returns the one before. On the CPU
/// itself.
fn replace_counter(
    rq: &RunQueue,
    cpu: &'static Cpu,
    state: &mut State,
    counter: Option<KernelCounter>,
    tier: Tier,
) -> Option<KernelCounter> {
    state.charge(rq);
    let old = state.insn_clock.install(counter, tier);
    // The new counter begins here.
    state.insn_clock.advance(rq);
    state.tell_tier(cpu, TierCause::Returned);
    state.settle(rq, cpu);
    old
}

/// Tries to return to the tier that the CPU had when it came up. Returns whether it has, or has no
/// use for a counter.
///
/// The caller keeps the CPU online, and used or not.
pub(crate) fn recover(cpu: &'static Cpu) -> bool {
    if !cpu.counter.has_failed() || !cpu.usage.is_used() {
        return true;
    }
    let mut found = None;
    if kernel::cpu::call_on(cpu.number(), || found = Some(find(cpu))).is_err() {
        return false;
    }
    let Some(tier) = found.filter(|tier| *tier < cpu.counter.tier()) else {
        // Not better than the present one.
        return false;
    };
    let Some(counter) = counter(cpu, tier) else {
        return false;
    };
    // On the CPU itself: a plan process that runs there is charged by the clock up to here, and by
    // the counter from here on.
    let mut new = Some(counter);
    let mut old = None;
    let installed = sched_class::call_on(cpu.number(), || {
        old = cpu.lock(|rq, cpu, state| replace_counter(rq, cpu, state, new.take(), tier));
    });
    // Freed here, where that may sleep.
    drop(old);
    installed.is_ok() && tier <= cpu.counter.best_tier()
}

/// Declares the rate of a CPU, 0: as measured. A CPU that is offline begins with it when it comes
/// up. Process context, without the control lock.
pub(crate) fn declare_rate(cpu: &'static Cpu, insns_per_ms: u32) -> Result {
    let control = control::get()?;
    let _hotplug = kernel::cpu::hotplug_read_lock();
    // A plan that is being prepared with the old rate would miss the new one.
    let _control = control.lock_killable()?;
    cpu.counter.set_declared_rate(insns_per_ms);
    if !kernel::cpu::is_online(cpu.number()) {
        return Ok(());
    }
    // On the CPU itself: instructions retired up to here are charged at the old rate.
    sched_class::call_on(cpu.number(), || {
        cpu.lock(|rq, cpu, state| {
            state.charge(rq);
            state.set_rate(cpu);
            state.settle(rq, cpu);
        });
    })
}
