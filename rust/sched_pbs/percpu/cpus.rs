// SPDX-License-Identifier: GPL-2.0

//! All CPUs.

use super::cpu::Cpu;
use crate::{
    linux::published::{leak, Published},
    pbs_core::Rate,
    state::insn_clock::Tier,
};
use kernel::{
    alloc::{KBox, KVec},
    cpu::PossibleCpu,
    prelude::*,
};

/// The CPUs by their numbers.
static CPUS: Published<KVec<Option<&'static Cpu>>> = Published::none();

/// Makes a [`Cpu`] of each possible CPU.
pub(crate) fn publish() -> Result {
    let mut cpus = KVec::new();
    for number in 0..kernel::cpu::nr_cpu_ids() {
        let cpu = match PossibleCpu::new(number) {
            Some(id) => Some(leak(KBox::pin_init(Cpu::new(id), GFP_KERNEL)?)),
            None => None,
        };
        cpus.push(cpu, GFP_KERNEL)?;
    }
    CPUS.publish(KBox::pin(cpus, GFP_KERNEL)?);
    Ok(())
}

/// The CPU of that number, if there can be one.
pub(crate) fn get(number: u32) -> Option<&'static Cpu> {
    CPUS.get()?.get(number as usize).copied().flatten()
}

/// The CPU whose ring is mapped at that offset, where each has `RING_BYTES`. Fails with [`EINVAL`]
/// within a ring, and with [`ENODEV`] where there is no such CPU.
pub(crate) fn of_ring<const RING_BYTES: usize>(offset_bytes: u64) -> Result<&'static Cpu> {
    if offset_bytes % RING_BYTES as u64 != 0 {
        return Err(EINVAL);
    }
    u32::try_from(offset_bytes / RING_BYTES as u64)
        .ok()
        .and_then(get)
        .ok_or(ENODEV)
}

/// All possible CPUs.
pub(crate) fn all() -> impl Iterator<Item = &'static Cpu> {
    CPUS.get().into_iter().flatten().copied().flatten()
}

/// The CPUs that are online.
pub(crate) fn online() -> impl Iterator<Item = &'static Cpu> {
    all().filter(|cpu| kernel::cpu::is_online(cpu.number()))
}

/// The worst tier of any CPU that is online.
pub(crate) fn tier() -> Tier {
    online()
        .map(|cpu| cpu.counter.tier())
        .max()
        .unwrap_or_default()
}

/// The rate of the slowest CPU that is online.
pub(crate) fn rate() -> Rate {
    let rates = online().map(|cpu| cpu.counter.rate().insns_per_ms());
    Rate::new(rates.min().unwrap_or(0))
}

/// The greatest spread of the rate of any CPU that is online.
pub(crate) fn rate_spread_permille() -> u64 {
    online()
        .map(|cpu| cpu.counter.rate_spread_permille())
        .max()
        .unwrap_or(0)
}
